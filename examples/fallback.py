"""A second model answers where the first one is uncertain.

python examples/fallback.py
"""

from __future__ import annotations

from snne_guard import SNNEGuard
from snne_guard.langchain import embedded_model

QUESTIONS = (
    "What is the chemical symbol for gold?",
    "Who won the 1907 village chess cup of Ebnat?",
)

small = embedded_model(temperature=0, seed=1, max_tokens=64, stop=["\n", "."])
# Stands in for a larger, more expensive model, which is asked only where needed.
large = embedded_model(temperature=0, seed=1, max_tokens=64, model="large")

guard = SNNEGuard(small, threshold=0.7, on_uncertain="fallback", fallback=large)

for question in QUESTIONS:
    message = guard.invoke(
        [("system", "Answer in one short sentence."), ("user", question)]
    )
    decision = message.response_metadata["snne_guard"]["decision"]
    model = "second model" if decision == "fallback" else "first model"
    print(f"{question}\n  {model}: {message.text}")
