"""Google's generative language service over gRPC, in front of the same scripts.

langchain-google-genai talks REST only in synchronous calls.
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, Self

from tests.support.chat_protocol import Usage
from tests.support.provider_server import ProviderServer

__all__ = ["GoogleServer"]

SERVICE = "google.ai.generativelanguage.v1beta.GenerativeService"


class GoogleServer(ProviderServer):
    """Answers over gRPC what a script decides; without TLS, as on this machine."""

    def __enter__(self) -> Self:
        import grpc
        from google.ai.generativelanguage_v1beta import types

        super().__enter__()
        method = grpc.unary_unary_rpc_method_handler(
            self._generate,
            request_deserializer=types.GenerateContentRequest.deserialize,
            response_serializer=types.GenerateContentResponse.serialize,
        )
        methods = {"GenerateContent": method}
        handler = grpc.method_handlers_generic_handler(SERVICE, methods)
        self._threads = ThreadPoolExecutor(8)
        self._grpc = grpc.server(self._threads)
        self._grpc.add_generic_rpc_handlers((handler,))
        self._grpc_port = self._grpc.add_insecure_port("127.0.0.1:0")
        self._grpc.start()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._grpc.stop(None).wait(5)
        self._threads.shutdown(wait=False)
        super().__exit__(exc_type, exc, traceback)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._grpc_port}"

    def _generate(self, message: Any, context: Any) -> Any:
        import grpc
        from google.ai.generativelanguage_v1beta import types

        body = types.GenerateContentRequest.to_json(
            message, always_print_fields_with_no_presence=False
        )
        path = f"/v1beta/{message.model}:generateContent"
        request = self.arrived("POST", path, {}, body.encode())
        reply = self.decide(request)
        if reply.status >= 400:
            self.done()
            fault = reply.body["error"]
            context.abort(grpc.StatusCode[fault["status"]], fault["message"])
        assert isinstance(reply.usage, Usage)
        self.done(usage=reply.usage)
        return types.GenerateContentResponse.from_json(json.dumps(reply.body))
