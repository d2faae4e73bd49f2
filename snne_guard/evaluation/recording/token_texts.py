"""The texts of the tokens that a recording keeps beside their log-probabilities."""

from __future__ import annotations

from typing import Any, cast

from snne_guard.errors import InputError
from snne_guard.evaluation.recording.fields import kind, text_list
from snne_guard.evaluation.recording.recordings import Recording

__all__ = ["token_texts"]


def token_texts(recording: Recording, /) -> list[tuple[str, ...] | None]:
    """Return the tokens of the delivered answer and of each sample, None if unknown.

    They are the fields ``main_tokens``, a list of texts, and ``tokens``, one such list
    for each sample, null where it is unknown.

    Raises:
        InputError: A field is something else.

    Example:
        >>> row = {"id": "1", "question": None, "main_answer": "a b", "samples": ["c"]}
        >>> token_texts(Recording.from_dict({**row, "main_tokens": ["a", " b"]}))
        [('a', ' b'), None]
    """
    given: Any = recording.extra.get("tokens")
    n = len(recording.samples)
    kept = [None] * n if given is None else cast("list[Any]", given)
    if not isinstance(given, list | None) or len(kept) != n:
        got = len(kept) if isinstance(given, list) else kind(given)
        msg = f'expected "tokens" of {n} samples, got {got}'
        raise InputError(msg)
    lists = [("main_tokens", recording.extra.get("main_tokens"))]
    lists += [("tokens", one) for one in kept]
    return [
        None if one is None else text_list({name: one}, name) for name, one in lists
    ]
