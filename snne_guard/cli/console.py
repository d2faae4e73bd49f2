"""What the commands share: messages, progress bars, reading with bad lines counted."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, TypeVar

from rich.console import Console
from rich.progress import Progress

from snne_guard.errors import ConfigurationError, InputError

__all__ = [
    "BadLines",
    "check_outputs",
    "note",
    "progress",
    "safe",
    "source",
]

# Control characters of 7 and 8 bits, and those that turn the direction of writing.
_VISIBLE = {
    **{code: 0x2400 + code for code in range(0x20)},
    0x7F: 0x2421,
    **dict.fromkeys((*range(0x80, 0xA0), 0x2028, 0x2029), 0xFFFD),
    **dict.fromkeys((0x200E, 0x200F, 0x061C), 0xFFFD),
    **dict.fromkeys((*range(0x202A, 0x202F), *range(0x2066, 0x206A)), 0xFFFD),
}
_VISIBLE_LINES = {code: seen for code, seen in _VISIBLE.items() if code != ord("\n")}

T = TypeVar("T")


def safe(text: str, *, lines: bool = False) -> str:
    r"""Return a text of anybody's that does nothing to a terminal but stand there.

    Args:
        text: The text; control characters become their pictures.
        lines: Whether line feeds stay.

    Example:
        >>> safe("a\x1b[2J")
        'a␛[2J'
    """
    # What cannot be encoded becomes a question mark.
    encodable = text.encode("utf-8", "replace").decode("utf-8")
    return encodable.translate(_VISIBLE_LINES if lines else _VISIBLE)


def note(message: str) -> None:
    """Write one message to standard error."""
    console = Console(stderr=True, soft_wrap=True)
    shown = f"snne-guard: {safe(message, lines=True)}"
    console.print(shown, markup=False, highlight=False, emoji=False)


def source(name: str) -> str | BinaryIO:
    """Return what to read: the file, or standard input for ``-``."""
    return sys.stdin.buffer if name == "-" else name


class BadLines:
    """Counts the lines that had to be passed over.

    Args:
        strict: Whether the first bad line raises InputError instead.

    Attributes:
        count: Bad lines so far; a command that had any ends with status 1.
    """

    def __init__(self, *, strict: bool = False) -> None:
        self._strict = strict
        self.count = 0

    def tell(self, error: InputError) -> None:
        """Count something that cannot be used, and tell of it; raise it if strict."""
        if self._strict:
            raise error
        self.count += 1
        note(str(error))


def check_outputs(
    inputs: Sequence[str | Path], outputs: Mapping[str, Path | None]
) -> None:
    """Check that outputs can be written and overwrite neither an input nor another.

    Args:
        inputs: Files that are read.
        outputs: Files to be written, by the options that name them.

    Raises:
        ConfigurationError: One cannot be written, or is another file as well.
    """
    taken = [Path(name).resolve() for name in inputs]
    for option, path in outputs.items():
        if path is None:
            continue
        target = path.resolve()
        if target in taken:
            msg = f"{option} {path} is used for another file; give it another name"
            raise ConfigurationError(msg)
        if (target.exists() and not target.is_file()) or not target.parent.is_dir():
            msg = f"expected {option} to be a file in a folder that exists, got {path}"
            raise ConfigurationError(msg)
        taken.append(target)


def progress(items: Iterable[T], *, what: str) -> Iterator[T]:
    """Yield items below a bar on standard error, where somebody is looking."""
    console = Console(stderr=True)
    with Progress(
        console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        yield from bar.track(items, description=safe(what))
