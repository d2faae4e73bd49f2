"""The examples of pTrue, letter by letter as in the code of Farquhar et al."""

from benchmarks.paper.p_true import Shot, examples

END = "Is the possible answer:\nA) True\nB) False\nThe possible answer is:"


def test_examples() -> None:
    shots = [
        Shot(question="2 + 2?", answer="5", samples=["4 "], correct=False),
        Shot(question="1 + 1?", answer="2", correct=True),
    ]
    assert examples(shots) == (
        f"Question: 2 + 2?\nBrainstormed Answers: 5 \n4 \nPossible answer: 5\n{END} B\n"
        f"Question: 1 + 1?\nBrainstormed Answers: 2 \nPossible answer: 2\n{END} A"
    )
