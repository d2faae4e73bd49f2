"""A second model answers where the first one is uncertain.

python examples/fallback.py
"""

from __future__ import annotations

from snne_guard import SNNEGuard
from snne_guard.langchain.embedded import embedded_model

INSTRUCTION = "Answer in one short sentence."
QUESTIONS = (
    "What is the chemical symbol for gold?",
    "Who won the 1907 village chess cup of Ebnat?",
)

small = embedded_model(temperature=0, seed=1, max_tokens=32, stop=["\n", "."])
# Stands in for a larger and dearer model, which is asked only where it is needed.
large = embedded_model(temperature=0, seed=1, max_tokens=64, model="large")

guard = SNNEGuard(small, threshold=0.5, on_uncertain="fallback", fallback=large)

for question in QUESTIONS:
    message = guard.invoke([("system", INSTRUCTION), ("user", question)])
    decision = message.response_metadata["snne_guard"]["decision"]
    answered = "second model" if decision == "fallback" else "first model"
    print(f"{question}\n  {answered}: {message.content}")
