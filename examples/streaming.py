"""Streaming: the answer as it comes, its assessment in the last chunk.

python examples/streaming.py
"""

from __future__ import annotations

from snne_guard import SNNEGuard
from snne_guard.langchain.embedded import embedded_model

QUESTION = [
    ("system", "Answer in one short sentence."),
    ("user", "What is the chemical symbol for gold?"),
]

model = embedded_model(temperature=0, seed=1, max_tokens=32, stop=["\n", "."])


def show(guard: SNNEGuard) -> None:
    """Print the pieces with a bar between them, then what the last one carries."""
    pieces = []
    last = None
    for last in guard.stream(QUESTION):
        pieces.append(str(last.content))
    print("|".join(piece for piece in pieces if piece))
    if last is not None:
        found = last.response_metadata["snne_guard"]
        print(f"  decision {found['decision']}, uncertainty {found['uncertainty']:.2f}")


print("It can only be flagged, so it streams:")
show(SNNEGuard(model, threshold=0.5, on_uncertain="flag"))

print("It may be refused, so it comes in one piece, after the decision:")
show(SNNEGuard(model, threshold=0.5, on_uncertain="refuse"))
