"""Which fields of an object are made up: forms from letters, and a review queue.

python examples/fields.py
"""

from __future__ import annotations

import json

from langchain_core.prompts import ChatPromptTemplate
from pydantic import BaseModel

from snne_guard import SNNEGuard, render_fields
from snne_guard.langchain import embedded_model


class Complaint(BaseModel):
    """What a customer writes."""

    customer: str
    item: str
    city: str
    phone: str


LETTERS = (
    "Customer: Ida Frick. City: Bern. Item: lamp.",
    "Customer: Karl Moser. City: Basel. Item: chair. Phone: 061 555 01 02.",
)
ASK = """Copy this letter into JSON.

Letter: Customer: Anna Berger. City: Chur. Item: desk. Phone: 081 555 03 04.
JSON: {example}

Letter: {letter}
JSON:"""
EXAMPLE = Complaint(
    customer="Anna Berger", item="desk", city="Chur", phone="081 555 03 04"
)

model = embedded_model(temperature=0, seed=1, max_tokens=120)
guard = SNNEGuard(model, field_threshold=0.5, question=lambda _: None)
form = guard.with_structured_output(Complaint, method="json_schema")
prompt = ChatPromptTemplate.from_messages([("user", ASK)])
chain = prompt.partial(example=json.dumps(EXAMPLE.model_dump())) | form

for letter in LETTERS:
    with guard.assessments() as seen:
        filled = chain.invoke({"letter": letter})
    (assessment,) = seen
    print(letter)
    print(render_fields(filled, assessment.fields or (), threshold=0.5))
    print("to a person:", *assessment.uncertain_fields)
    print()
