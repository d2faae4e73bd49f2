"""What one row of the table of LangChain providers says, and nothing about any."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from snne_guard.sampling.options import ANY_LIMIT

__all__ = ["Provider"]

_NOTHING: Mapping[str, object] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """How samples are drawn from one provider's LangChain class.

    A class of your own says how it is to be drawn from by an attribute
    ``snne_guard_provider`` that holds one of these; without it, and in no row of the
    table, a model gets the safe path: one request a sample, no log-probabilities.

    Attributes:
        name: The provider, as people call it.
        classes: Names of the LangChain classes, found among the bases of a model.
        holds: Attribute of the model and the class of what it must hold, where one
            LangChain class stands for several rows.
        only_if: Says of a model whether the row is for it, where class and attribute do
            not tell; None where they do.
        stand_in: Returns the chat model that draws the samples in the model's place,
            where a copy of it is not the best that can be had; None where it is.
        tested: Whether the tests run this class against a local server that speaks
            the provider's protocol; else it was only read in source.
        temperature: Field that sets the sampling temperature, None where there is
            none.
        temperature_range: Smallest and largest temperature that is taken; one that is
            asked for outside is moved inside, with the reason ``temperature_capped``.
        temperature_note: When it is refused or ignored all the same.
        n: Option of one request that asks for several replies, a path with dots where
            it is inside another option; None where there is one reply a request.
        n_note: When it does not work.
        logprobs: Options of one request that ask for token log-probabilities, empty
            where none come.
        logprobs_at: Path to them in the metadata of a message, or of the generation
            around it.
        logprobs_note: What to say where there are none.
        limits: Fields and options that set the token limit of a reply.
        seed: Option that seeds a draw, a path as for ``n``; None where a seed is left
            out.
        seed_is_field: Whether only a field of the model takes it, and no request.
        in_full: Option of one request that takes the place of all fields where a
            user sets it, so that what the guard sets must be in it too.
        in_full_too: Other names under which that option is taken.
        limit_in_full: Name of the token limit in it.
        request: Further options of every request for samples.
        off: Fields that are set so that samples are drawn in one piece and once:
            streaming off, and the class's own retries, which are the guard's task.
        clients: Returns the fields that hold the model's clients, with clients that
            do not retry; None where the fields in ``off`` are enough.
        blank_stops: Whether a reply may be told to end at white space, such as the
            end of a line.
        acting: Options with which the provider does more than answer, besides tools
            of its own: a call that sets one is left unscored.

    Example:
        >>> mine = Provider(name="mine", n="num_replies", seed="seed")
        >>> mine.supports_batch, mine.supports_logprobs
        (True, False)
    """

    name: str
    classes: tuple[str, ...] = ()
    holds: tuple[str, str] | None = None
    only_if: Callable[[Any], bool] | None = None
    stand_in: Callable[[Any], Any] | None = None
    tested: bool = False
    temperature: str | None = "temperature"
    temperature_range: tuple[float, float] = (0.0, 2.0)
    temperature_note: str = ""
    n: str | None = None
    n_note: str = ""
    logprobs: Mapping[str, object] = field(default_factory=lambda: _NOTHING)
    logprobs_at: tuple[str, ...] = ()
    logprobs_note: str = ""
    limits: tuple[str, ...] = ANY_LIMIT
    seed: str | None = "seed"
    seed_is_field: bool = False
    in_full: str | None = None
    in_full_too: tuple[str, ...] = ()
    limit_in_full: str = "max_tokens"
    request: Mapping[str, object] = field(default_factory=lambda: _NOTHING)
    off: Mapping[str, object] = field(default_factory=lambda: _NOTHING)
    clients: Callable[[Any], dict[str, Any]] | None = None
    blank_stops: bool = True
    acting: tuple[str, ...] = ()

    @property
    def supports_batch(self) -> bool:
        """Whether one request may bring several replies."""
        return self.n is not None

    @property
    def supports_logprobs(self) -> bool:
        """Whether token log-probabilities may come."""
        return bool(self.logprobs)

    @property
    def seed_name(self) -> str:
        """Name of the option or field in which users set a seed."""
        return (self.seed or "seed").rpartition(".")[2]

    def full_of(self, options: Mapping[str, object], /) -> str | None:
        """Return which of some options takes the place of all fields, the last one.

        Example:
            >>> Provider(name="mine", in_full="config").full_of({"config": {}})
            'config'
        """
        names = {self.in_full, *self.in_full_too}
        return next((name for name in reversed([*options]) if name in names), None)

    def stops_of(self, texts: Iterable[str], /) -> list[str]:
        """Return those of some texts at which a reply may be told to end."""
        return [text for text in texts if self.blank_stops or text.strip()]

    def within(self, temperature: float) -> float:
        """Return the temperature nearest to this one that is taken."""
        low, high = self.temperature_range
        return min(max(temperature, low), high)
