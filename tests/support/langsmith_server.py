"""A local server that speaks as much of LangSmith's API as its client needs."""

from __future__ import annotations

import json
from email.parser import BytesParser
from typing import Any
from uuid import uuid4

from langsmith import Client

from tests.support.collector import Collector, Received

__all__ = ["LangSmithServer"]

PROJECT = "a-project"
INFO = {
    "version": "0.13.0",
    "batch_ingest_config": {
        "use_multipart_endpoint": True,
        "size_limit": 100,
        "size_limit_bytes": 20_971_520,
        "scale_up_qsize_trigger": 1000,
        "scale_up_nthreads_limit": 16,
        "scale_down_nempty_trigger": 4,
    },
}


class LangSmithServer(Collector):
    """Keeps the runs and the feedback that a real client sends.

    Args:
        answers: Whether it answers at all.
        status: With which HTTP status.
        has_project: Whether the project is there already.
    """

    def __init__(
        self, *, answers: bool = True, status: int = 200, has_project: bool = True
    ) -> None:
        self.project_id = str(uuid4())
        project = {
            "id": self.project_id,
            "name": PROJECT,
            "tenant_id": str(uuid4()),
            "start_time": "2026-11-21T00:00:00Z",
            "reference_dataset_id": None,
        }
        found = [project] if has_project else []
        super().__init__(
            answers=answers,
            status=status,
            replies={"/info": INFO, "/sessions": found},
        )

    def client(self, **options: Any) -> Client:
        """Return the real client, pointed here."""
        return Client(api_url=self.url, api_key="lsv2_test", **options)

    @property
    def parts(self) -> dict[str, Any]:
        """Every part of every batch, by name: ``post.{run}``, ``feedback.{id}``, ..."""
        return {
            name: value
            for request in self.requests
            if request.path == "/runs/multipart"
            for name, value in _parts(request)
        }

    @property
    def runs(self) -> dict[str, dict[str, Any]]:
        """The runs that were begun, by their ids."""
        return {
            name.removeprefix("post."): value
            for name, value in self.parts.items()
            if name.startswith("post.") and name.count(".") == 1
        }

    @property
    def feedback(self) -> list[dict[str, Any]]:
        """All feedback, however it came."""
        batched = [
            value for name, value in self.parts.items() if name.startswith("feedback.")
        ]
        return [*batched, *map(json.loads, self.bodies("/feedback"))]


def _parts(request: Received) -> list[tuple[str, Any]]:
    head = f"Content-Type: {request.headers['content-type']}\r\n\r\n".encode()
    message = BytesParser().parsebytes(head + request.body)
    return [
        (
            str(part.get_param("name", header="content-disposition")),
            _value(part.get_payload(decode=True)),
        )
        for part in message.walk()
        if not part.is_multipart()
    ]


def _value(payload: Any) -> Any:
    return json.loads(payload or b"null")
