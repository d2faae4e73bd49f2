"""A guarded answer, its uncertainty on the span in Phoenix, and both read back.

phoenix serve &
python examples/integrations/with_phoenix.py http://127.0.0.1:6006
"""

from __future__ import annotations

import sys
import time

import httpx
from openinference.instrumentation.langchain import LangChainInstrumentor
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from phoenix.client import Client

from snne_guard import SNNEGuard
from snne_guard.langchain.embedded import embedded_model
from snne_guard_integrations.phoenix import PhoenixObserver

url, project = sys.argv[1], "snne-guard"
# The same in one line, with arize-phoenix-otel: register(auto_instrument=True)
provider = TracerProvider(resource=Resource({"openinference.project.name": project}))
exporter = OTLPSpanExporter(f"{url}/v1/traces")
provider.add_span_processor(BatchSpanProcessor(exporter))
LangChainInstrumentor().instrument(tracer_provider=provider)

model = embedded_model(temperature=0, seed=1, max_tokens=32, stop=["\n", "."])
guard = SNNEGuard(model, threshold=0.5, observers=[PhoenixObserver(url)])
message = guard.invoke(
    [
        ("system", "Answer in one short sentence."),
        ("user", "What is the chemical symbol for gold?"),
    ]
)
print(message.text)
provider.force_flush()

spans = Client(base_url=url).spans
# The annotation was there before its span, and Phoenix looks again every ten seconds.
deadline = time.monotonic() + 120
while True:
    try:
        found = spans.get_spans(project_identifier=project, name="SNNEGuard", limit=1)
        ids = [span["context"]["span_id"] for span in found]
        notes = spans.get_span_annotations(span_ids=ids, project_identifier=project)
    except httpx.HTTPStatusError:  # no span of this project is there yet
        found, notes = [], []
    if notes or time.monotonic() > deadline:
        break
    time.sleep(0.5)
for span in found:
    print(f"span {span['context']['span_id']}: {span['name']}")
for note in notes:
    result = note.get("result") or {}
    score, label = result.get("score"), result.get("label")
    print(f"{note['name']} = {score}, {label}")
    print(f"  source {note['annotator_kind']}")
    print(f"  {result.get('explanation')}")
