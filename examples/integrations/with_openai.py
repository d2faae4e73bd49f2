"""Your openai client with a guard in it: the same calls, the assessment on the answer.

python examples/integrations/with_openai.py
"""

from __future__ import annotations

from openai import OpenAI
from openai.types.chat import ChatCompletionMessageParam

from snne_guard.langchain.embedded import MODEL_NAME, embedded_server_url
from snne_guard_integrations.openai import assessment, guard_client

# A server on this machine; OpenAI() without arguments asks OpenAI, with your key.
own = OpenAI(base_url=embedded_server_url(), api_key="none")
client = guard_client(
    own,
    threshold=0.5,
    on_uncertain="refuse",
    refusal="I would be making that up.",
)


def messages(question: str) -> list[ChatCompletionMessageParam]:
    return [
        {"role": "system", "content": "Answer in one short sentence."},
        {"role": "user", "content": question},
    ]


for question in (
    "What is the chemical symbol for gold?",
    "Who won the 1907 village chess cup of Ebnat?",
):
    completion = client.chat.completions.create(
        model=MODEL_NAME,
        messages=messages(question),
        temperature=0,
        seed=1,
        max_tokens=64,
        stop=["\n", "."],
    )
    found = assessment(completion)
    print(f"{question}\n  {completion.choices[0].message.content}")
    print(f"  {found['decision']}, u={found['uncertainty']}")

stream = client.chat.completions.create(
    model=MODEL_NAME,
    messages=messages("What is the chemical symbol for gold?"),
    temperature=0,
    seed=1,
    max_tokens=64,
    stop=["\n", "."],
    stream=True,
)
print("streamed:", "".join(chunk.choices[0].delta.content or "" for chunk in stream))
print(f"  {assessment(stream)['decision']}")
own.close()
