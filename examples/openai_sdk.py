"""The openai package alone, no LangChain: ask, and look at the decision first.

python examples/openai_sdk.py
"""

from __future__ import annotations

from openai import OpenAI

from snne_guard import OpenAIGuard
from snne_guard.langchain.embedded import MODEL_NAME, embedded_server_url

QUESTIONS = (
    "What is the chemical symbol for gold?",
    "Who won the 1907 village chess cup of Ebnat?",
)

# A server on this machine; OpenAI() without arguments asks OpenAI, with your key.
client = OpenAI(base_url=embedded_server_url(), api_key="none")
guard = OpenAIGuard(
    client,
    model=MODEL_NAME,
    threshold=0.5,
    options={"temperature": 0, "seed": 1, "max_tokens": 32, "stop": ["\n", "."]},
)

for question in QUESTIONS:
    assessment = guard.assess(
        [
            {"role": "system", "content": "Answer in one short sentence."},
            {"role": "user", "content": question},
        ]
    )
    answer = assessment.answer
    shown = answer.text if answer and assessment.decision == "accept" else "(not sure)"
    print(f"{question}\n  {shown}")
    print(f"  {assessment.decision}, u={assessment.uncertainty}, {assessment.reasons}")

client.close()
