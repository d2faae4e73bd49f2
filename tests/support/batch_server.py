"""A scripted server that takes batches too, keeps them for a while, and spoils some."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from email import message_from_bytes
from typing import Any
from urllib.parse import urlsplit

from tests.support.openai_server import JSON, Asked, Handler, Scripted, Server, whole


@dataclass(kw_only=True)
class Batch:
    """A batch that was submitted.

    Attributes:
        number: From 0 on, in the order in which they came.
        lines: Its requests.
        fields: What the client is told of it.
        polls: How often it is still to be seen under way; None: for ever.
        ending: What becomes of it: ``completed``, ``expired``, ``cancelled``,
            ``failed``, or ``lost``, when nobody knows it any more.
        answered: How many of its requests are answered, the last ones first; None: all.
        status: HTTP status of every reply in it, if it is not the script's.
    """

    number: int
    lines: list[JSON]
    fields: JSON
    polls: int | None = 1
    ending: str = "completed"
    answered: int | None = None
    status: int | None = None


Fate = Callable[[Batch], object]
"""Changes what becomes of a batch when it is submitted."""


class BatchServer(Server):
    """Serves a script, at once and by batches; ``requests`` has both kinds."""

    def __init__(self, script: Scripted, fate: Fate = lambda _: None) -> None:
        self.fate = fate
        self.batches: dict[str, Batch] = {}
        self.files: dict[str, bytes] = {}
        super().__init__(script, handler=_Handler)

    @property
    def asked(self) -> list[str]:
        """The ids of the requests in all batches."""
        return [line["custom_id"] for b in self.batches.values() for line in b.lines]

    def keep(self, content: bytes) -> str:
        name = f"file-{len(self.files)}"
        self.files[name] = content
        return name

    def submit(self, body: JSON) -> JSON:
        content = self.files[body["input_file_id"]]
        lines = [json.loads(line) for line in content.splitlines()]
        assert {line["url"] for line in lines} == {body["endpoint"]}
        number = len(self.batches)
        fields = {
            **body,
            "id": f"batch_{number}",
            "object": "batch",
            "created_at": number,
            "status": "validating",
        }
        batch = Batch(number=number, lines=lines, fields=fields)
        self.fate(batch)
        self.batches[fields["id"]] = batch
        return fields

    def look(self, batch: Batch) -> JSON | None:
        """Return what a client is told; a batch goes on each time one looks."""
        if batch.fields["status"] == batch.ending:
            return None if batch.ending == "lost" else batch.fields
        if batch.polls is None or batch.polls > 0:
            batch.fields["status"] = "in_progress"
            batch.polls = batch.polls and batch.polls - 1
            return batch.fields
        batch.fields["status"] = batch.ending
        if batch.ending == "failed":
            why = {"code": "token_limit_exceeded", "message": "Enqueued too much"}
            batch.fields["errors"] = {"object": "list", "data": [why]}
        elif batch.ending != "lost":
            self._answer(batch)
        return self.look(batch)

    def _answer(self, batch: Batch) -> None:
        output: list[JSON] = []
        errors: list[JSON] = []
        answered = len(batch.lines) if batch.answered is None else batch.answered
        for place, line in enumerate(reversed(batch.lines)):
            found = {"custom_id": line["custom_id"], "response": None, "error": None}
            if place >= answered:
                if batch.ending == "expired":
                    why = "This request could not be executed before it expired."
                    found["error"] = {"code": "batch_expired", "message": why}
                    errors.append(found)
                continue
            asked = Asked(path=line["url"], headers={}, body=line["body"])
            self.requests.append(asked)
            answer = self.script(asked)
            status = batch.status or answer.status
            body = answer.body or {"error": {"message": "no"}}
            if status < 400:
                body = whole(asked, answer)
            found["response"] = {"status_code": status, "body": body}
            (output if status < 400 else errors).append(found)
        for name, rows in (("output_file_id", output), ("error_file_id", errors)):
            if rows:
                text = "".join(json.dumps(row) + "\n" for row in rows)
                batch.fields[name] = self.keep(text.encode())


class _Handler(Handler):
    def do_GET(self) -> None:  # noqa: N802 - http.server's name
        owner = self.server.owner
        assert isinstance(owner, BatchServer)
        path = urlsplit(self.path).path
        kind, *name = path.removeprefix("/v1/").split("/")
        if kind == "files":
            self._bytes(owner.files.get(name[0]))
        elif name:
            found = owner.look(owner.batches[name[0]])
            self._bytes(None if found is None else json.dumps(found).encode())
        else:
            newest = [batch.fields for batch in owner.batches.values()][::-1]
            listed = {"object": "list", "data": newest, "has_more": False}
            self._bytes(json.dumps(listed).encode())

    def do_POST(self) -> None:  # noqa: N802 - likewise
        owner = self.server.owner
        assert isinstance(owner, BatchServer)
        if not self.path.startswith(("/v1/files", "/v1/batches")):
            super().do_POST()
            return
        content = self.rfile.read(int(self.headers["content-length"]))
        if self.path == "/v1/batches":
            self._bytes(json.dumps(owner.submit(json.loads(content))).encode())
            return
        kind = f"Content-Type: {self.headers['content-type']}\r\n\r\n"
        form: Any = message_from_bytes(kind.encode() + content)
        parts: dict[str, bytes] = {
            part.get_param("name", header="content-disposition"): part.get_payload(
                decode=True
            )
            for part in form.get_payload()
        }
        assert parts["purpose"] == b"batch"
        made = {"id": owner.keep(parts["file"]), "object": "file", "purpose": "batch"}
        self._bytes(json.dumps(made).encode())

    def _bytes(self, content: bytes | None) -> None:
        body = (
            b'{"error": {"message": "No such thing"}}' if content is None else content
        )
        self.send_response(404 if content is None else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
