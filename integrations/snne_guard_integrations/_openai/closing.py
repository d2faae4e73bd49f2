"""The HTTP response of a guarded stream, whose closing ends the samples as well."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

__all__ = ["AsyncClosing", "Closing"]


class _Response:
    """Everything of the response but its end; the package's helpers close that."""

    def __init__(self, response: Any) -> None:  # noqa: ANN401 - of the HTTP client
        self._response = response

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever it has
        return getattr(self._response, name)


class Closing(_Response):
    """Closes the stream where the response is to be closed.

    Args:
        response: What the HTTP client gave, None where a fallback was never asked by
            it.
        close: Closes the stream, and what is in flight beside it.
    """

    def __init__(self, response: Any, close: Callable[[], object]) -> None:  # noqa: ANN401 - of the HTTP client
        super().__init__(response)
        self._close = close

    def close(self) -> None:
        """End the stream, also while another thread reads it."""
        try:
            self._close()
        except ValueError:  # it is being read: that ends with the response
            self._response.close()


class AsyncClosing(_Response):
    """The twin of ``Closing``.

    Args:
        response: What the HTTP client gave, None where a fallback was never asked by
            it.
        close: Closes the stream, and what is in flight beside it.
    """

    def __init__(self, response: Any, close: Callable[[], Awaitable[object]]) -> None:  # noqa: ANN401 - of the HTTP client
        super().__init__(response)
        self._close = close

    async def aclose(self) -> None:
        """End the stream, also while another task reads it."""
        try:
            await self._close()
        except RuntimeError:  # it is being read: that ends with the response
            await self._response.aclose()
