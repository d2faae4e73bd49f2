"""Tokens to text, one reply token by token, up to a stop text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from snne_guard.sampling.huggingface.loading import Tokenizer

__all__ = ["ReplyText"]

_INCOMPLETE = "\N{REPLACEMENT CHARACTER}"


class ReplyText:
    """The text of one reply, which grows token by token up to a stop text.

    Args:
        tokenizer: A tokenizer of ``transformers``.
        stop: Texts at which the reply ends; they are not part of it.

    Attributes:
        text: The text so far.
        pieces: What each token added to it; empty while a character that takes
            several tokens is not complete.
        stopped: Whether a stop text has ended it.
    """

    def __init__(self, tokenizer: Tokenizer, stop: Sequence[str] = ()) -> None:
        self.text = ""
        self.pieces: list[str] = []
        self.stopped = False
        self._tokenizer = tokenizer
        self._stop = tuple(stop)
        self._ids: list[int] = []
        # The text of a token may depend on the one before it, so new tokens are
        # decoded together with the last ones, those from ``_context`` to ``_read``.
        self._context = 0
        self._read = 0

    def push(self, token_id: int) -> bool:
        """Add a token; return whether a stop text has ended the reply."""
        if not self.stopped:
            self._ids.append(token_id)
            self.pieces.append("")
            self._append(self._new_text())
        return self.stopped

    def finish(self) -> bool:
        """Add what was held back as incomplete; return whether a stop text ended it."""
        if not self.stopped and self.pieces:
            self._append(self._new_text(final=True))
        return self.stopped

    @property
    def certain(self) -> int:
        """Length of the part of the text that no stop text can still cut off."""
        if self.stopped:
            return len(self.text)
        return max(0, len(self.text) - max(map(len, self._stop), default=1) + 1)

    def _new_text(self, *, final: bool = False) -> str:
        known = self._decode(self._ids[self._context : self._read])
        text = self._decode(self._ids[self._context :])
        if len(text) <= len(known) or (text.endswith(_INCOMPLETE) and not final):
            return ""
        self._context, self._read = self._read, len(self._ids)
        return text[len(known) :]

    def _decode(self, ids: Iterable[int]) -> str:
        text: str = self._tokenizer.decode(
            ids, skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
        return text

    def _append(self, piece: str) -> None:
        if not piece:
            return
        unread = len(self.text)
        self.text += piece
        self.pieces[-1] = piece
        places = [
            self.text.find(stop, max(0, unread - len(stop) + 1)) for stop in self._stop
        ]
        if found := [place for place in places if place >= 0]:
            self.stopped = True
            self._shorten(min(found))

    def _shorten(self, length: int) -> None:
        self.text = self.text[:length]
        kept, start = list[str](), 0
        for piece in self.pieces:
            if start >= length:
                break
            kept.append(piece[: length - start])
            start += len(piece)
        self.pieces = kept
