"""Carry out a guarded call with replies that exist already: no model is asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any

from snne_guard.engine.call import guarded_call
from snne_guard.engine.protocol import Draws, Failure, Outcome, Response, Work
from snne_guard.engine.request import Request

Respond = Callable[[Draws], Sequence[Response | Failure | None]]
"""The outcome of each draw, None for one that was open at its deadline."""


def replay_call(
    request: Request, respond: Respond, /, *, errors_end_it: bool = False
) -> Outcome:
    """Carry out a call and return how it ended.

    What a driver would do besides is left out: no observer is told.

    Args:
        request: What is asked of the engine. With ``replayed`` neither
            ``SNNE_GUARD_DISABLED`` nor ``sample_rate`` leaves the call unscored.
        respond: Takes draws that would be sent at once; what it raises ends the replay.
        errors_end_it: Whether what scoring raises ends it too. If not, the answer has
            no score then, as in a call.
    """
    with closing(guarded_call(request)) as call:
        result: Any = None
        while True:
            try:
                wanted = call.send(result)
            except StopIteration as end:
                outcome: Outcome = end.value
                return outcome
            if not isinstance(wanted, Work):
                result = respond(wanted)
            elif errors_end_it:
                result = wanted.function()
            else:
                result = _tried(wanted)


def _tried(wanted: Work) -> Any:  # noqa: ANN401 - whatever the function returns
    try:
        return wanted.function()
    except Exception as error:  # noqa: BLE001 - a failure is an outcome
        return Failure(error=error)
