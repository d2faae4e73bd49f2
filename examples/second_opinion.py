"""A second opinion: another model draws one of the replies that are compared.

python examples/second_opinion.py
"""

from __future__ import annotations

from langchain_core.language_models import SimpleChatModel
from langchain_core.messages import BaseMessage

from snne_guard import SNNEGuard
from snne_guard.langchain import embedded_model

KNOWN = {"Canada": "Ottawa", "Pakistan": "Islamabad", "Turkey": "Ankara"}


class Atlas(SimpleChatModel):
    """A very small other model, so that this runs offline; it knows three capitals.

    In its place stands a model of another maker, such as ``ChatAnthropic(...)``.
    """

    @property
    def _llm_type(self) -> str:
        return "atlas"

    def _call(self, messages: list[BaseMessage], *_: object, **__: object) -> str:
        asked = messages[-1].text
        found = [KNOWN[name] for name in KNOWN if name in asked]
        return found[0] if found else "I do not know."


model = embedded_model(temperature=0, seed=1, max_tokens=24, stop=["\n", ".", ","])
# Cooler than usual, for so small a model soon says anything.
alone = SNNEGuard(model, n=3, threshold=0.4, temperature=0.3)
guards = {
    "alone": alone,
    "with a second opinion": alone.model_copy(update={"other_models": [Atlas()]}),
}

system = ("system", "Answer in one short sentence.")
for country in KNOWN:
    question = ("user", f"What is the capital of {country}?")
    for name, guard in guards.items():
        message = guard.invoke([system, question])  # always the model's own answer
        record = message.response_metadata["snne_guard"]
        u, decision = record["uncertainty"], record["decision"]
        print(f"{message.text} | {name}: u = {u:.2f}, {decision}")
