"""What ``snne-guard record`` costs: beforehand, while it runs, at the end."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from rich.console import Console

from snne_guard.cli.console import note
from snne_guard.evaluation.record import RecordingRun
from snne_guard.self_check import SelfCheck
from snne_guard.types import Cost, Prices
from snne_guard.views import EXTRA_TOKENS, VIEWS, View, views_of_samples

__all__ = [
    "SECONDS_BETWEEN_LINES",
    "counted",
    "dry_run_lines",
    "name_failures",
    "progress_shown",
    "sample_requests",
]

SECONDS_BETWEEN_LINES = 60.0
"""How often a run that writes to a log says how far it is."""

_LONGEST = 200  # characters shown of an error
_KINDS = 5  # of errors that are shown
_CHARACTERS = 4  # of a token, roughly


def sample_requests(
    views: Sequence[str], *, samples: int, takes_n: bool
) -> list[tuple[View | None, int]]:
    """Return the view of each request for samples, and how many replies it brings."""
    drawn = views_of_samples([VIEWS[name] for name in views], n=samples)
    return [*Counter(drawn).items()] if takes_n else [(view, 1) for view in drawn]


def dry_run_lines(
    conversations: Iterable[Sequence[tuple[str, str]]],
    *,
    sampling: Sequence[tuple[View | None, int]],
    self_check: bool,
    max_tokens: int | None,
    prices: Prices | None,
) -> Iterator[str]:
    """Yield the requests, tokens and money that conversations will take.

    Args:
        conversations: The messages of each question, as role and text.
        sampling: What ``sample_requests`` returns.
        self_check: Whether each answer gets one.
        max_tokens: Token limit of a reply, None where there is none.
        prices: Of tokens, for the money.
    """
    limit, n, read = max_tokens or 0, 0, 0
    for conversation in conversations:
        messages = [{"role": role, "content": text} for role, text in conversation]
        n += 1
        asked = [view.rewritten(messages) if view else messages for view, _ in sampling]
        if self_check:
            asked.append([*messages, {"content": SelfCheck().prompt}])
            read += limit
        read += sum(map(_tokens, [messages, *asked]))
    each = 1 + len(sampling) + self_check
    replies = 1 + sum(replies for _, replies in sampling) + self_check
    longer = sum(replies for view, replies in sampling if view and view.extract)
    written = n * (replies * limit + longer * EXTRA_TOKENS)
    yield f"questions to ask  {n}"
    yield f"requests          {n * each} ({each} a question)"
    yield f"tokens read       about {read} (characters / {_CHARACTERS})"
    if max_tokens is None or prices is None:
        yield "money             unknown without --max-tokens and --prices"
    if max_tokens is not None:
        yield f"tokens written    at most {written}"
        if prices is not None:
            money = prices.of(Cost(prompt_tokens=read, completion_tokens=written))
            yield f"money             at most about {money:.6f}, none of it cached"


def _tokens(messages: Sequence[Mapping[str, str]]) -> int:
    return -(-len("\n".join(each["content"] for each in messages)) // _CHARACTERS)


@contextmanager
def progress_shown(run: RecordingRun) -> Iterator[None]:
    """Show how far a run is: in place on a terminal, at times in a log."""
    console = Console(stderr=True)
    start = last = time.monotonic()

    def show() -> None:
        nonlocal last
        now, cost = time.monotonic(), run.cost
        seconds = max(now - start, 1e-9)
        tokens = cost.prompt_tokens + cost.completion_tokens
        money = "" if cost.money is None else f", price {cost.money:.6f} so far"
        line = (
            f"{counted(run)}; {run.recorded / seconds:.2f} questions and "
            f"{tokens / seconds:.0f} tokens a second{money}"
        )
        status.update(line)
        if not console.is_terminal and now - last >= SECONDS_BETWEEN_LINES:
            last = now
            note(line)

    with console.status("asking") as status:
        run.on_done = show
        yield


def counted(run: RecordingRun) -> str:
    """Return how many questions were recorded, known and failed."""
    return f"{run.recorded} recorded, {run.known} already there, {run.failed} failed"


def name_failures(run: RecordingRun) -> None:
    """Say what has failed and why, equal errors together."""
    counts = Counter(error[:_LONGEST] for error in run.failures().values())
    for error, count in counts.most_common(_KINDS):
        note(f"{count} failed: {error}")
    if counts:
        note(f"what failed is in {run.failures_path}; --retry-failed draws it again")
