"""A chain with a guarded model: a made-up answer is refused.

python examples/chain.py
"""

from __future__ import annotations

from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate

from snne_guard import SNNEGuard
from snne_guard.langchain import embedded_model

QUESTIONS = (
    "What is the chemical symbol for gold?",
    "Who won the 1907 village chess cup of Ebnat?",
)

model = embedded_model(temperature=0, seed=1, max_tokens=64, stop=["\n", "."])
prompt = ChatPromptTemplate.from_messages(
    [("system", "Answer in one short sentence."), ("user", "{question}")]
)

guard = SNNEGuard(model, threshold=0.7, on_uncertain="refuse")
chain = prompt | guard | StrOutputParser()  # the guard stands where the model stood

for question in QUESTIONS:
    print(f"{question}\n  {chain.invoke({'question': question})}")
