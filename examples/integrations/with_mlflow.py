"""A guarded answer, its uncertainty on the trace in MLflow, and both read back.

mlflow server &
python examples/integrations/with_mlflow.py http://127.0.0.1:5000
"""

from __future__ import annotations

import sys

import mlflow

from snne_guard import SNNEGuard
from snne_guard.langchain.embedded import embedded_model
from snne_guard_integrations.mlflow import MLflowObserver

mlflow.set_tracking_uri(sys.argv[1])
mlflow.set_experiment("snne-guard")
model = embedded_model(temperature=0, seed=1, max_tokens=32, stop=["\n", "."])
guard = SNNEGuard(model, threshold=0.5, observers=[MLflowObserver()])


@mlflow.trace
def ask(question: str) -> str:
    return guard.invoke(
        [("system", "Answer in one short sentence."), ("user", question)]
    ).text


print(ask("What is the chemical symbol for gold?"))

mlflow.flush_trace_async_logging()
trace_id = mlflow.get_last_active_trace_id()
trace = mlflow.get_trace(trace_id) if trace_id else None
if trace is None:
    sys.exit("the trace is not on the server")
spans = {span.span_id: span.name for span in trace.data.spans}
print(f"trace {trace.info.trace_id}, spans {list(spans.values())}")
for found in trace.info.assessments or ():
    value = found.feedback.value if found.feedback else None
    print(f"span {spans[found.span_id or '']}: {found.name} = {value}")
    print(f"  source {found.source.source_type} {found.source.source_id}")
    print(f"  {found.rationale}")
