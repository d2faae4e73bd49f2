"""Send the draws of one guarded call through a client of the ``openai`` package."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Hashable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from snne_guard.engine import Draw, NoReplyError, Response, options_for
from snne_guard.engine.protocol import TOP_LOGPROBS, with_failed
from snne_guard.engine.rejections import (
    Rejections,
    Steps,
    arun_steps,
    run_steps,
    without_rejected,
)
from snne_guard.openai.apis import (
    ApiObject,
    fields_of,
    keep_first_choice,
    remove_logprobs,
)
from snne_guard.openai.request import ApiRequest
from snne_guard.self_check import form_of, read_self_check


class OpenAISender:
    """Sends a user's request as it is, as samples, and as a self-check.

    A server that rejects the temperature, the log-probabilities or ``n`` is asked
    again without, in the same draw; what it rejected is remembered in ``rejections``.
    The client's own retries and time limits hold.
    """

    def __init__(
        self,
        client: Any,  # noqa: ANN401 - the two classes share no type
        request: ApiRequest,
        *,
        rejections: Rejections,
        others: Mapping[str, OpenAISender] | None = None,
    ) -> None:
        self._client = client
        self._others = {} if others is None else others
        self._request = request
        self._api = request.api
        self._rejections = rejections
        # What rejections of such a request are remembered under.
        self.key: Hashable = (str(client.base_url), request.key)
        self._streamed_parts: list[dict[str, Any]] = []
        self._failed_before_stream = 0

    def send(self, draw: Draw, /) -> Response:
        """Send one request and wait; the client's own error is raised."""
        if draw.other_model is not None:
            return self._others[draw.other_model].send(replace(draw, other_model=None))
        return self._response(draw, *run_steps(self._steps(draw), self._post))

    async def asend(self, draw: Draw, /) -> Response:
        """Do the same without blocking the event loop."""
        if draw.other_model is not None:
            other = self._others[draw.other_model]
            return await other.asend(replace(draw, other_model=None))
        return self._response(draw, *await arun_steps(self._steps(draw), self._post))

    def stream(self, draw: Draw, /) -> Generator[Any]:
        """Send the request for the answer and yield the parts of its stream."""
        sent = run_steps(self._steps(draw), self._post)
        (request, stream), self._failed_before_stream = sent
        with stream:
            for part in stream:
                yield self._keep(part, request)

    async def astream(self, draw: Draw, /) -> AsyncGenerator[Any]:
        """Do the same without blocking the event loop."""
        sent = await arun_steps(self._steps(draw), self._post)
        (request, stream), self._failed_before_stream = sent
        async with stream:
            async for part in stream:
                yield self._keep(part, request)

    def streamed_answer(self) -> Response:
        """Return the answer that the parts of its stream made up."""
        whole = self._api.join(self._streamed_parts)
        return self._read(whole, self._failed_before_stream)

    # -- Requests ----------------------------------------------------------------------

    def _steps(self, draw: Draw) -> Steps[tuple[ApiRequest, Any]]:
        make = partial(self._request_for, draw)
        return without_rejected(make, self._rejections, self.key)

    def _post(self, request: ApiRequest) -> Any:  # noqa: ANN401 - a task awaits it
        return request.post(self._client)

    def _request_for(self, draw: Draw, *, left_out: frozenset[str]) -> ApiRequest:
        """Return the request for a draw."""
        request, api = self._request, self._api
        refused = request.optional & left_out  # by another model
        body = {k: v for k, v in request.body.items() if k not in refused}
        answer = draw.role == "answer"
        wanted = draw.added(api.parameters)
        added = wanted - left_out
        if answer and api.with_logprobs(body) == body:
            added -= {"logprobs"}  # the user's own, which stay
        noted: Any = {
            "optional": added | (request.optional - refused),
            "rejected": wanted & left_out,
        }
        temperature = draw.temperature if "temperature" in added else None
        if draw.view is not None or draw.turns:
            conversation = draw.conversation(api.messages(body))
            body = {**body, api.conversation: conversation}
        body = options_for(draw, body, temperature=temperature)
        if temperature is not None:
            body["temperature"] = temperature
        if "n" in added:
            body["n"] = draw.n
        if "logprobs" in added:
            body = api.with_logprobs(body)
            if "top_logprobs" in added:
                body["top_logprobs"] = TOP_LOGPROBS
        if answer:
            # Nothing is parsed before the decision.
            options = {k: v for k, v in request.options.items() if k != "post_parser"}
            return replace(request, body=body, options=options, **noted)
        if api.name == "responses" or ".openai.com" in str(self._client.base_url):
            body["store"] = False  # it may be stored unless the request forbids it
        # Nobody gets a sample, and objects of the package take long to make.
        return replace(request.another(), body=body, cast_to=object, **noted)

    # -- Replies -----------------------------------------------------------------------

    def _keep(self, part: ApiObject, request: ApiRequest) -> ApiObject:
        """Keep a part of the stream, and return it as the user gets it."""
        keep_first_choice(part)
        self._streamed_parts.append(fields_of(part))
        if "logprobs" in request.optional:
            remove_logprobs(part)
        return part

    def _response(
        self, draw: Draw, sent: tuple[ApiRequest, ApiObject], failed: int
    ) -> Response:
        request, answer = sent
        is_answer = draw.role == "answer"
        if is_answer:
            keep_first_choice(answer)
        response = self._read(answer, failed)
        if is_answer:
            if "logprobs" in request.optional:
                remove_logprobs(answer)
            return response
        return replace(
            response,
            raw=None,
            temperature_set="temperature" in request.optional,
            rejected=request.rejected,
            p_correct=read_self_check(
                response.replies[0],
                self._api.logprobs(answer),
                form=form_of(draw.turns[-1]),
            )
            if draw.role == "self_check"
            else None,
        )

    def _read(self, answer: object, failed: int) -> Response:
        response = self._api.read(answer)
        if not response.replies:
            raise NoReplyError
        return with_failed(response, failed)
