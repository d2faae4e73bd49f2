"""From graded answers to a guarded chain: a threshold with a guarantee.

python examples/calibrated.py

The guarantee rests on 200 recorded answers; calibration/README.md describes them.
"""

from __future__ import annotations

from pathlib import Path

from langchain_core.prompts import ChatPromptTemplate

from snne_guard import SNNEGuard
from snne_guard.evaluation import calibrate, read_recordings, resolve_grader
from snne_guard.langchain import embedded_model

RECORDING = Path(__file__).parent / "calibration" / "recording.jsonl"
QUESTIONS = (
    ("The clinic in Barr was founded by Ilse Grau.", "Who founded the clinic in Barr?"),
    ("Returns are free for 30 days.", "How long are returns free?"),
    ("The queen of Sarn was fond of music.", "When was the queen of Sarn born?"),
    # A mistake that this model makes every time passes: one of the allowed 20%.
    ("The canal was dug in 1720. It was filled in 1904.", "When was the canal dug?"),
)

# The same as `snne-guard calibrate recording.jsonl --error-rate 0.2 --grader contains`.
result = calibrate(
    read_recordings(RECORDING), error_rate=0.2, grader=resolve_grader("contains")
)
print(result.calibration.threshold.statement)

# The settings of the recording; with others, the guard refuses to start.
model = embedded_model(temperature=0, max_tokens=48, stop=["\n", "."], seed=7)
guard = SNNEGuard(model, calibration=result.calibration, on_uncertain="refuse")

prompt = ChatPromptTemplate.from_messages(
    [
        ("system", "Answer in one short sentence."),
        ("user", "Context: {context}\n\nQuestion: {question}"),
    ]
)
chain = prompt | guard
for context, question in QUESTIONS:
    message = chain.invoke({"context": context, "question": question})
    record = message.response_metadata["snne_guard"]
    print(f"{context} {question}\n  {message.text}")
    if record["p_wrong"] is not None:
        u, p_wrong = record["uncertainty"], record["p_wrong"]
        print(f"  {record['decision']}, u={u:.2f}, wrong with about {p_wrong:.0%}")
