"""Keys as somebody presses them, or the first letter of each line of a pipe."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import NoReturn

from snne_guard.cli._console import BY_SIGNAL

if sys.platform == "win32":  # pragma: no cover - Windows
    import msvcrt

    def _pressed_on_windows() -> str:
        key = msvcrt.getwch()
        if key in {"\x00", "\xe0"}:  # an arrow, say: its second half follows
            msvcrt.getwch()
            return "\x1b"
        return key

else:
    import termios

__all__ = ["Keys", "opened_keys"]

_ESCAPE, _INTERRUPT, _END = "\x1b", "\x03", "\x04"
_CHUNK = 1024
_LOCAL, _CHARACTERS = 3, 6  # places in what tcgetattr returns


class Keys:
    """Gives one key after another.

    Args:
        read: Waits for keys and returns them, nothing at the end.
    """

    def __init__(self, read: Callable[[], str]) -> None:
        self._ahead: deque[str] = deque()
        self._read = read

    def next(self) -> str | None:
        """Return the next key, in lower case; None when there will be none.

        Raises:
            KeyboardInterrupt: It is Ctrl-C.
        """
        while not self._ahead:
            read = self._read()
            if not read:
                return None
            if not read.startswith(_ESCAPE):  # or it is an arrow, say
                self._ahead.extend(read)
        key = self._ahead.popleft()
        if key == _INTERRUPT:
            raise KeyboardInterrupt
        return None if key == _END else key.lower()


@contextmanager
def opened_keys() -> Generator[Keys]:
    """Yield the keys of standard input.

    On a terminal a key counts as soon as it is pressed, is not shown, and what was
    typed ahead is not lost; it is as it was when this ends, by a signal too. Elsewhere
    each line is a key, its first letter.

    Raises:
        SystemExit: A signal asked the process to end.
    """
    if not sys.stdin.isatty():
        yield Keys(_line)
    elif sys.platform == "win32":  # pragma: no cover - Windows
        yield Keys(_pressed_on_windows)
    else:
        terminal = sys.stdin.fileno()
        before, single = (termios.tcgetattr(terminal) for _ in range(2))
        # Ctrl-C is a key here: it comes between two labels, and not into one.
        single[_LOCAL] &= ~(termios.ECHO | termios.ICANON | termios.ISIG)
        single[_CHARACTERS][termios.VMIN] = 1
        single[_CHARACTERS][termios.VTIME] = 0
        with _ending_by_signals():
            # Not TCSAFLUSH, which is usual: it drops what was typed ahead.
            termios.tcsetattr(terminal, termios.TCSADRAIN, single)
            try:
                yield Keys(lambda: _pressed(terminal))
            finally:
                with suppress(termios.error):  # the terminal was closed
                    termios.tcsetattr(terminal, termios.TCSADRAIN, before)


@contextmanager
def _ending_by_signals() -> Generator[None]:
    """Have signals end the process as an exception does, so that it is tidied up.

    One that is ignored, or that somebody else listens to, is left as it is.
    """
    own = [
        number
        for number in (signal.SIGTERM, signal.SIGHUP)
        if threading.current_thread() is threading.main_thread()
        and signal.getsignal(number) is signal.SIG_DFL
    ]
    for number in own:
        signal.signal(number, _end)
    try:
        yield
    finally:
        for number in own:
            signal.signal(number, signal.SIG_DFL)


def _end(number: int, _frame: object) -> NoReturn:
    raise SystemExit(BY_SIGNAL + number)


def _pressed(terminal: int) -> str:
    try:
        return os.read(terminal, _CHUNK).decode("utf-8", "replace")
    except OSError:  # the terminal was closed
        return ""


def _line() -> str:
    for line in sys.stdin:
        if line.strip():
            return line.strip()[0]
    return ""
