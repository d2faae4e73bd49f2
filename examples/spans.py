"""Which sentences of an answer are made up: a retrieval chain with marks.

python examples/spans.py
"""

from __future__ import annotations

from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnablePassthrough

from snne_guard import SNNEGuard, Span, render_marks
from snne_guard.langchain import embedded_model

PASSAGE = (
    "The town library of Ebnat opens at 9 and closes at 17. It was built in 1907. "
    "It has 12,000 books."
)
ASK = (
    "Answer from this: {context}\n"
    "Write a short list: opening hours, year, books, architect, director."
)

model = embedded_model(temperature=0, seed=1, max_tokens=400)
guard = SNNEGuard(
    model, spans=True, span_threshold=0.5, context=PASSAGE, question=lambda _: None
)
prompt = ChatPromptTemplate.from_messages([("user", ASK)])
chain = RunnablePassthrough.assign(context=lambda _: PASSAGE) | prompt | guard

message = chain.invoke({})
record = message.response_metadata["snne_guard"]
spans = [Span(**span) for span in record["spans"]]
print(render_marks(message.text, spans, threshold=record["span_threshold"]))
print()
for span in spans:
    print(
        f"uncertainty {span.uncertainty:.2f}",
        f"said by {span.supported} of {record['n_used'] - 1}",
        f"grounded {span.grounded:.2f}",
        message.text[span.start : span.end],
        sep=" | ",
    )
