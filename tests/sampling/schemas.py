"""A schema with another one inside, for structured output."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

__all__ = ["City", "Country"]


class Country(BaseModel):
    """Where it is."""

    code: str = Field("it", description="Two letters.")
    rivers: dict[str, int] | None = None


class City(BaseModel):
    """A city."""

    name: str
    kind: Literal["town", "city"] = "city"
    countries: list[Country] = Field(default_factory=list[Country])
