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
    """Carry out a call and return how it ended; no observer is told.

    With ``request.replayed`` neither ``SNNE_GUARD_DISABLED`` nor ``sample_rate`` leaves
    it unscored. What ``respond`` raises ends the replay, and with ``errors_end_it`` so
    does what scoring raises; else the answer has no score then, as in a call.
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
                continue
            try:
                result = wanted.function()
            except Exception as error:
                if errors_end_it:
                    raise
                result = Failure(error=error)  # an outcome, as in a call
