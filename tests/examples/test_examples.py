"""Every program in ``examples/`` runs as a user runs it and prints what it promises."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from snne_guard.langchain.guard import REFUSAL
from tests.support.examples import EXAMPLES, printed, run

PATHS = sorted(EXAMPLES.glob("*.py"))
NAMES = {
    "agent",
    "calibrated",
    "chain",
    "fallback",
    "methods",
    "observer",
    "openai_sdk",
    "rag",
    "streaming",
}


pytestmark = pytest.mark.usefixtures("embedded")  # which skips where there is none


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_it_runs_to_its_end_and_says_something(path: Path) -> None:
    done = run(path.stem)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert len((done.stdout + done.stderr).split()) >= 5


def test_every_example_has_a_test_of_what_it_prints() -> None:
    assert {path.stem for path in PATHS} == NAMES
    source = Path(__file__).read_text(encoding="utf-8")
    assert {name for name in NAMES if f'printed("{name}")' not in source} == set()


def test_the_docstring_says_how_to_run_it() -> None:
    for path in PATHS:
        assert f"python examples/{path.name}" in path.read_text(encoding="utf-8")


def test_the_chain_answers_what_it_knows_and_refuses_what_it_makes_up() -> None:
    gold, answer, cup, refusal = printed("chain")
    assert gold.endswith("for gold?")
    assert "Au" in answer
    assert cup.endswith("of Ebnat?")
    assert refusal == REFUSAL


def test_methods_differ_on_answers_in_other_words_and_on_nothing_else() -> None:
    _, same, reworded, scattered = (
        re.findall(r"\d\.\d\d", line) for line in printed("methods")
    )
    assert [same[0], same[1], same[4]] == ["0.00"] * 3
    assert [scattered[0], scattered[1], scattered[3]] == ["1.00"] * 3
    assert 0 < float(reworded[0]) < 1
    assert reworded[3] == reworded[4] == "1.00"  # other words, other groups


def test_rag_searches_once_and_keeps_its_sources() -> None:
    found = dict(line.split(": ", 1) for line in printed("rag"))
    assert found["answer"]
    assert found["sources"] == "library.txt"
    assert found["searches"] == "1"
    assert 3 <= int(found["replies compared"]) <= 5
    assert found["decision"] in {"accept", "flag"}


def test_the_second_model_answers_only_where_the_first_is_uncertain() -> None:
    _, first, _, second = printed("fallback")
    assert first.startswith("first model: ")
    assert "Au" in first
    assert second.startswith("second model: ")
    assert len(second) > len("second model: ")


def test_streaming_is_in_pieces_only_where_nothing_can_be_withheld() -> None:
    flagging, pieces, found, withholding, whole, found_again = printed("streaming")
    assert (flagging[-1], withholding[-1]) == (":", ":")
    assert pieces.count("|") >= 3
    assert "|" not in whole
    assert whole == pieces.replace("|", "")
    for line in (found, found_again):
        assert re.fullmatch(r"decision accept, uncertainty 0\.\d\d", line)


def test_the_observer_logs_numbers_and_no_text() -> None:
    (answer,) = printed("observer")
    assert "Au" in answer
    log = run("observer").stderr
    assert "my-app: answer: asked for 1, 1 came" in log
    assert "my-app: sample: asked for 4, 4 came" in log
    assert re.search(r"u=0\.\d+ decision=accept reasons=\[.*\] tokens=[1-9]", log)
    assert "Au" not in log


def test_the_agents_tool_runs_once_and_its_answer_is_measured() -> None:
    lines = printed("agent")
    assert lines[:4] == [
        "human: When does the library open?",
        "ai: opening_hours",
        "decision unscored, reasons ['tool_calls']",
        "tool: The library opens at 9 and closes at 17.",
    ]
    assert lines[4].startswith("ai: ")
    assert re.match(r"decision (accept|flag), reasons \[", lines[5])
    assert lines[6] == "tool runs: 1"


def test_the_openai_package_alone_shows_only_what_was_accepted() -> None:
    gold, answer, accepted, cup, withheld, flagged = printed("openai_sdk")
    assert gold.endswith("for gold?")
    assert "Au" in answer
    assert re.fullmatch(r"accept, u=0\.\d+, \(.*\)", accepted)
    assert cup.endswith("of Ebnat?")
    assert withheld == "(not sure)"
    assert flagged.startswith("flag, u=")


def test_a_threshold_from_graded_answers_refuses_what_the_text_does_not_say() -> None:
    lines = printed("calibrated")
    start = lines.index("drawn now: 20, as recorded: 20") + 1
    assert lines[start].startswith("CERTIFIED  With a probability of at least 90 %")
    said = " ".join(lines[start : start + 3])
    assert "at most 20 % of the accepted answers are wrong" in said
    accepted = re.search(r"([1-9]\d*) accepted among 200 graded", said)
    assert accepted is not None
    assert int(accepted[1]) >= 40

    asked = [at for at, line in enumerate(lines) if line.endswith("?")]
    assert len(asked) == 4
    replies = [lines[at + 1] for at in asked]
    found = [lines[at + 2] for at in asked]
    assert "Ilse Grau" in replies[0]
    assert replies[1] == replies[2] == REFUSAL
    for line in found:
        assert re.fullmatch(
            r"(accept|refuse), certified: True, u=\d\.\d\d, wrong with about \d+%", line
        )
    assert [line.split(",")[0] for line in found[:3]] == ["accept", "refuse", "refuse"]
