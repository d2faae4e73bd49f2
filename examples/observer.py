"""An observer of your own: log the uncertainty and the tokens of every call.

python examples/observer.py
"""

from __future__ import annotations

import logging

from snne_guard import Assessment, SNNEGuard
from snne_guard.langchain import embedded_model

logging.basicConfig(format="%(name)s: %(message)s")
logger = logging.getLogger("my-app")
logger.setLevel(logging.INFO)


class Log:
    def on_assessment(self, assessment: Assessment) -> None:
        # Numbers and codes only. The texts are there too: log them only if you may.
        logger.info(
            "u=%s decision=%s reasons=%s tokens=%d",
            assessment.uncertainty,
            assessment.decision,
            list(assessment.reasons),
            assessment.cost.prompt_tokens + assessment.cost.completion_tokens,
        )


model = embedded_model(temperature=0, seed=1, max_tokens=64, stop=["\n", "."])
guard = SNNEGuard(model, threshold=0.7, observers=[Log()])
message = guard.invoke(
    [
        ("system", "Answer in one short sentence."),
        ("user", "What is the chemical symbol for gold?"),
    ]
)
print(message.text)
