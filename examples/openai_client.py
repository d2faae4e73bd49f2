"""The openai package without LangChain: a client whose answers are guarded.

python examples/openai_client.py
"""

from __future__ import annotations

from openai import OpenAI

from snne_guard import guard_client
from snne_guard.langchain.embedded import MODEL_NAME, embedded_server_url

# A server in this process; OpenAI() without arguments asks OpenAI, with your key.
with OpenAI(base_url=embedded_server_url(), api_key="none-needed") as own:
    client = guard_client(own, threshold=0.7, on_uncertain="refuse")
    for question in (
        "What is the chemical symbol for gold?",
        "Who won the 1907 village chess cup of Ebnat?",
    ):
        completion = client.chat.completions.create(
            model=MODEL_NAME,
            messages=[
                {"role": "system", "content": "Answer in one short sentence."},
                {"role": "user", "content": question},
            ],
            temperature=0,
            seed=1,
            max_tokens=64,
            stop=["\n", "."],
        )
        print(f"{question}\n  {completion.choices[0].message.content}")
        # Pydantic's models allow extra fields; type checkers do not know this one.
        record = completion.to_dict()["snne_guard"]
        print(f"  {record}")
