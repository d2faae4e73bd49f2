"""One guarded call, whoever asks and whatever model answers.

A door (``SNNEGuard``, ``guard_client``, an adapter of a framework) does three things:

1. It turns what it was asked into a ``Request``: the ``GuardSettings`` and the
   ``GuardState`` of the guard, and what it knows of the question and the provider.
   ``request_of`` makes it, with question and documents as the options choose them.
2. It has a sender, an object with ``send`` and ``asend``. Each takes a ``Draw``, asks
   the model, and returns a ``Response``; ``read_reply`` and ``read_cost`` read what
   came. What the model raises, it lets through. ``options_for`` says which of the
   user's options a draw takes over; ``without_rejected`` sends again without what a
   provider rejects, and ``with_failed`` counts what that cost. A draw of an
   ``other_model`` goes to that model, at its own settings. A door that streams has a
   ``StreamingSender``.
3. It calls ``run`` or ``arun``, or ``stream`` or ``astream`` where no answer can be
   withheld, and turns the ``Outcome`` into its own message: ``delivery`` says what the
   application gets, ``assessment.to_metadata()`` what is attached to it.

Everything that decides is in ``call``, a generator without input or output.
``replay_call`` feeds it replies that exist already.
"""

from snne_guard.engine.limiter import Limiter
from snne_guard.engine.observers import notify
from snne_guard.engine.options import (
    answer_settings,
    asks_for_schema,
    is_partial,
    may_act,
    option_key,
    options_for,
)
from snne_guard.engine.protocol import (
    Draw,
    Failure,
    NoReplyError,
    Outcome,
    Response,
    Sender,
    StreamingSender,
    with_failed,
)
from snne_guard.engine.reading import read_cost, read_reply
from snne_guard.engine.rejections import Rejections, arun_steps, without_rejected
from snne_guard.engine.replay import replay_call
from snne_guard.engine.request import (
    GuardState,
    Request,
    request_of,
)
from snne_guard.engine.tasks import in_thread
from snne_guard.engine.tasks import run as arun
from snne_guard.engine.tasks import stream as astream
from snne_guard.engine.threads import run, stream

__all__ = [
    "Draw",
    "Failure",
    "GuardState",
    "Limiter",
    "NoReplyError",
    "Outcome",
    "Rejections",
    "Request",
    "Response",
    "Sender",
    "StreamingSender",
    "answer_settings",
    "arun",
    "arun_steps",
    "asks_for_schema",
    "astream",
    "in_thread",
    "is_partial",
    "may_act",
    "notify",
    "option_key",
    "options_for",
    "read_cost",
    "read_reply",
    "replay_call",
    "request_of",
    "run",
    "stream",
    "with_failed",
    "without_rejected",
]
