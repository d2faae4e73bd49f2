"""LangSmith: the uncertainty as feedback on the guard's run.

python examples/integrations/with_langsmith.py

It needs no account: a server of its own stands in for LangSmith's, and what arrives
there is printed. Yours needs LANGSMITH_TRACING=true and LANGSMITH_API_KEY only.
"""

from __future__ import annotations

import json
import threading
from email.parser import BytesParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from langsmith import Client, tracing_context

from snne_guard import SNNEGuard
from snne_guard.langchain.embedded import embedded_model
from snne_guard_integrations.langsmith import LangSmithObserver

PROJECT = {
    "id": "6d3a2e5c-6a3e-4a56-a1c5-0f1a4f1d5b0e",
    "tenant_id": "2f7f3f0e-7b8a-4a53-9d0c-2a1f7cf0a6a1",
    "name": "my-app",
    "start_time": "2026-11-21T00:00:00Z",
    "reference_dataset_id": None,
}
ANSWERS = {
    "/info": {
        "version": "0.13.0",
        "batch_ingest_config": {
            "use_multipart_endpoint": True,
            "size_limit": 100,
            "size_limit_bytes": 20_971_520,
            "scale_up_qsize_trigger": 1000,
            "scale_up_nthreads_limit": 16,
            "scale_down_nempty_trigger": 4,
        },
    },
    "/sessions": [PROJECT],
}


class StandIn(BaseHTTPRequestHandler):
    """Prints the feedback and the names of runs that arrive."""

    names: dict[str, str] = {}  # noqa: RUF012 - shared by all requests

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        self.answer(ANSWERS.get(self.path.partition("?")[0], {}))

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        head = f"Content-Type: {self.headers['content-type']}\r\n\r\n".encode()
        for part in BytesParser().parsebytes(head + body).walk():
            name = str(part.get_param("name", header="content-disposition"))
            if name.count(".") == 1 and name.startswith(("post.", "feedback.")):
                self.show(name, json.loads(bytes(part.get_payload(decode=True))))
        self.answer({})

    def show(self, name: str, value: dict[str, object]) -> None:
        if name.startswith("post."):
            self.names[str(value["id"])] = str(value["name"])
            return
        run = self.names[str(value["run_id"])]
        print(f"feedback on {run}: {value['key']} = {value['score']:.2f}")
        print(f"value: {value['value']}")
        print(f"comment: {value['comment']}")

    def answer(self, value: object) -> None:
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


with ThreadingHTTPServer(("127.0.0.1", 0), StandIn) as server:
    threading.Thread(target=server.serve_forever, daemon=True).start()
    client = Client(api_url=f"http://127.0.0.1:{server.server_port}", api_key="none")

    model = embedded_model(temperature=0, seed=1, max_tokens=32, stop=["\n", "."])
    guard = SNNEGuard(model, threshold=0.5, observers=[LangSmithObserver()])
    with tracing_context(enabled=True, client=client, project_name="my-app"):
        message = guard.invoke(
            [
                ("system", "Answer in one short sentence."),
                ("user", "What is the chemical symbol for gold?"),
            ]
        )
    print(f"answer: {message.text}")
    client.flush()
    client.close()
    server.shutdown()
