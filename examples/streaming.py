"""A stream flows if an answer can only be flagged, and waits if it may be withheld.

python examples/streaming.py
"""

from __future__ import annotations

from typing import Literal

from snne_guard import SNNEGuard
from snne_guard.langchain import embedded_model

MESSAGES = [
    ("system", "Answer in one short sentence."),
    ("user", "What is the chemical symbol for gold?"),
]

model = embedded_model(temperature=0, seed=1, max_tokens=64, stop=["\n", "."])
policies: tuple[Literal["flag", "refuse"], ...] = ("flag", "refuse")
for policy in policies:
    guard = SNNEGuard(model, threshold=0.7, on_uncertain=policy)
    chunks = list(guard.stream(MESSAGES))
    print(f"{policy}: " + "|".join(chunk.text for chunk in chunks if chunk.text))
    carrying = next(
        chunk for chunk in chunks if "snne_guard" in chunk.response_metadata
    )
    print(f"  {carrying.response_metadata['snne_guard']['decision']}")
