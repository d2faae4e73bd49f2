"""Drawing a response set: how many requests, when, and what to do when they fail."""

from snne_guard.sampling.breaker import Breaker
from snne_guard.sampling.budget import Budget
from snne_guard.sampling.collect import Collector, Draw, Reply
from snne_guard.sampling.limiter import Limiter
from snne_guard.sampling.plan import SamplingPlan
from snne_guard.sampling.prices import Prices

__all__ = [
    "Breaker",
    "Budget",
    "Collector",
    "Draw",
    "Limiter",
    "Prices",
    "Reply",
    "SamplingPlan",
]
