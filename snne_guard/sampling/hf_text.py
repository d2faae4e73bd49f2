"""Tokens to text while they are drawn, one reply at a time, up to a stop text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from snne_guard.sampling.hf_settings import Token

__all__ = ["TextStream", "Tokenizer"]

_INCOMPLETE = "\N{REPLACEMENT CHARACTER}"


class Tokenizer(Protocol):
    """What is needed of a tokenizer of ``transformers`` to read tokens."""

    def decode(
        self,
        token_ids: Sequence[int],
        *,
        skip_special_tokens: bool,
        clean_up_tokenization_spaces: bool,
    ) -> str:
        """Return the text of tokens."""
        ...


class TextStream:
    """The text of one reply, which grows by a token at a time.

    A token is released once its text is known for certain: not while it may be part
    of a character that is not complete, nor of a stop text.

    Args:
        tokenizer: Reads tokens.
        stop: Texts at which the reply ends.
    """

    def __init__(self, tokenizer: Tokenizer, stop: Sequence[str] = ()) -> None:
        self._tokenizer = tokenizer
        self._stop = tuple(stop)
        self._ids: list[int] = []
        # Tokens are read together with those before them, since the text of one may
        # depend on its neighbour; what lies before ``_from`` no longer does.
        self._from = 0
        self._read = 0
        self._text = ""
        self._tokens: list[Token] = []
        self._released = 0
        self._released_length = 0

    @property
    def text(self) -> str:
        """All text so far."""
        return self._text

    @property
    def tokens(self) -> tuple[Token, ...]:
        """All tokens so far."""
        return tuple(self._tokens)

    def push(self, token_id: int, logprob: float, sampling_logprob: float) -> bool:
        """Add a token; return whether a stop text is complete with it."""
        self._ids.append(token_id)
        piece = self._new_text()
        self._add(token_id, piece, logprob, sampling_logprob)
        return bool(piece) and self._cut(len(piece))

    def finish(self) -> bool:
        """Add what was held back as incomplete; return whether a stop text is in it."""
        piece = self._new_text(final=True)
        if not piece:
            return False
        last = self._tokens.pop()  # without text: what has text was read to its end
        self._add(last.id, piece, last.logprob, last.sampling_logprob)
        return self._cut(len(piece))

    def release(self, *, everything: bool = False) -> tuple[Token, ...]:
        """Return the tokens that are certain and were not returned before."""
        if everything:
            certain = len(self._tokens)
        else:
            certain = self._certain(len(self._text) - self._held())
        fresh = tuple(self._tokens[self._released : certain])
        self._released += len(fresh)
        self._released_length += sum(len(token.text) for token in fresh)
        return fresh

    def _certain(self, safe: int) -> int:
        """Return how many tokens are certain if so much of the text is."""
        certain, length = self._released, self._released_length
        for place in range(self._released, len(self._tokens)):
            length += len(self._tokens[place].text)
            if length > safe:
                break
            # One without text belongs to the character that comes after it.
            if self._tokens[place].text:
                certain = place + 1
        return certain

    def _new_text(self, *, final: bool = False) -> str:
        known = self._decode(self._ids[self._from : self._read])
        text = self._decode(self._ids[self._from :])
        if len(text) <= len(known) or (text.endswith(_INCOMPLETE) and not final):
            return ""
        self._from, self._read = self._read, len(self._ids)
        return text[len(known) :]

    def _decode(self, ids: Sequence[int]) -> str:
        if not ids:
            return ""
        return self._tokenizer.decode(
            ids, skip_special_tokens=True, clean_up_tokenization_spaces=False
        )

    def _add(self, token_id: int, piece: str, own: float, sampling: float) -> None:
        self._text += piece
        self._tokens.append(
            Token(id=token_id, text=piece, logprob=own, sampling_logprob=sampling)
        )

    def _cut(self, new: int) -> bool:
        """Cut the text at the first stop text, of which the new part ends one."""
        found = [
            place
            for stop in self._stop
            if (place := self._text.find(stop, max(0, self._before(new, stop)))) >= 0
        ]
        if not found:
            return False
        self._shorten(min(found))
        return True

    def _before(self, new: int, stop: str) -> int:
        return len(self._text) - new - len(stop) + 1

    def _shorten(self, length: int) -> None:
        self._text = self._text[:length]
        start, kept = 0, list[Token]()
        for token in self._tokens:
            if start >= length:
                break
            text = token.text[: length - start]
            kept.append(replace(token, text=text))
            start += len(token.text)
        self._tokens = kept

    def _held(self) -> int:
        """Return how long the end of the text is that may begin a stop text."""
        longest = 0
        for stop in self._stop:
            for length in range(min(len(stop) - 1, len(self._text)), longest, -1):
                if self._text.endswith(stop[:length]):
                    longest = length
                    break
        return longest
