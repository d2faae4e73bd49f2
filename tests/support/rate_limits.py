"""A rate limiter that shows who waited for it."""

from __future__ import annotations

from langchain_core.rate_limiters import BaseRateLimiter

__all__ = ["Counting"]


class Counting(BaseRateLimiter):
    """Lets everything pass, and counts it."""

    def __init__(self) -> None:
        self.asked = 0

    def acquire(self, *, blocking: bool = True) -> bool:
        assert blocking
        self.asked += 1
        return True

    async def aacquire(self, *, blocking: bool = True) -> bool:
        return self.acquire(blocking=blocking)
