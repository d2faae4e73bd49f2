"""Langfuse: the uncertainty and the decision as scores on the guard's observation.

python examples/integrations/with_langfuse.py

It needs no account: a server of its own stands in for Langfuse's, and the scores that
arrive there are printed. Yours needs LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY only.
"""

from __future__ import annotations

import gzip
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from langfuse import Langfuse
from langfuse.langchain import CallbackHandler
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
)

from snne_guard import SNNEGuard
from snne_guard.langchain.embedded import embedded_model
from snne_guard_integrations.langfuse import LangfuseObserver

names: dict[str, str] = {}
scores: list[dict[str, str]] = []


class StandIn(BaseHTTPRequestHandler):
    """Keeps the scores and the names of observations that arrive."""

    def log_message(self, *_: object) -> None:
        pass

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.headers["content-encoding"] == "gzip":
            body = gzip.decompress(body)
        if self.path.endswith("/scores"):
            scores.extend(json.loads(body))
        else:
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                for scope in resource.scope_spans:
                    names.update({s.span_id.hex(): s.name for s in scope.spans})
        self.send_response(200)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"{}")


with ThreadingHTTPServer(("127.0.0.1", 0), StandIn) as server:
    threading.Thread(target=server.serve_forever, daemon=True).start()
    client = Langfuse(
        public_key="pk-lf-none",
        secret_key="sk-lf-none",  # noqa: S106 - not a secret
        base_url=f"http://127.0.0.1:{server.server_port}",
    )

    model = embedded_model(temperature=0, seed=1, max_tokens=32, stop=["\n", "."])
    guard = SNNEGuard(model, threshold=0.5, observers=[LangfuseObserver()])
    message = guard.invoke(
        [
            ("system", "Answer in one short sentence."),
            ("user", "What is the chemical symbol for gold?"),
        ],
        {"callbacks": [CallbackHandler()]},
    )
    print(f"answer: {message.text}")
    client.shutdown()  # sends what is waiting
    server.shutdown()

for score in scores:
    print(f"{score['name']} on {names[score['observationId']]}: {score['value']}")
