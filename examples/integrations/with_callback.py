"""Shadow mode: the chain stays as it is, and its answers are assessed later.

python examples/integrations/with_callback.py
"""

from __future__ import annotations

from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate

from snne_guard import Assessment, SNNEGuard
from snne_guard.langchain import embedded_model
from snne_guard_integrations.callback import SNNECallbackHandler


class Print:
    """An observer; one that sends scores to a tracing tool would stand here."""

    def on_assessment(self, assessment: Assessment) -> None:
        print(f"later: u={assessment.uncertainty}, {assessment.decision}")


model = embedded_model(temperature=0, seed=1, max_tokens=64, stop=["\n", "."])
prompt = ChatPromptTemplate.from_messages(
    [("system", "Answer in one short sentence."), ("user", "{question}")]
)
chain = prompt | model | StrOutputParser()

guard = SNNEGuard(model, method="snne", threshold=0.4, observers=[Print()])
with SNNECallbackHandler(guard) as handler:
    for question in (
        "What is the chemical symbol for gold?",
        "Who won the 1907 village chess cup of Ebnat?",
    ):
        answer = chain.invoke({"question": question}, {"callbacks": [handler]})
        print(f"at once: {answer}")

counts = handler.counts
print(f"assessed {counts['assessed']} of {counts['seen']} runs")
