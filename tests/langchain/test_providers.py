"""The table of provider classes, and rows that a user adds."""

from __future__ import annotations

import importlib
from typing import Any

import pytest
from langchain_core.language_models import FakeListChatModel
from pydantic import Field

from snne_guard import SNNEGuard
from snne_guard.langchain.providers import PROVIDERS, Provider
from snne_guard.langchain.wrappers import ModelTree
from tests.langchain.support import metadata_of


class Heated(FakeListChatModel):
    """Has a temperature by another name, and notes it; copies share the list."""

    model_name: str = "a"
    temperature: float | None = None
    heat: float = 0.0
    heats: list[float] = Field(default_factory=list)

    def _generate(self, *args: Any, **kwargs: Any) -> Any:
        self.heats.append(self.heat)
        return super()._generate(*args, **kwargs)


class Mild(Heated):
    """A subclass with a row of its own."""


@pytest.mark.parametrize(
    "name", sorted({name for row in PROVIDERS for name in row.classes})
)
def test_every_row_names_a_class_that_is_there(name: str) -> None:
    package, _, kind = name.partition(".")
    module = (
        "langchain_openai.chat_models.base" if kind == "BaseChatOpenAI" else package
    )
    if package == "snne_guard":
        home = "langchain" if kind == "SNNEGuard" else "huggingface"
        module = f"snne_guard.{home}"
    there = getattr(importlib.import_module(module), kind)
    assert f"{there.__module__.partition('.')[0]}.{there.__name__}" == name


def test_a_class_in_no_row_is_asked_in_the_safe_way() -> None:
    model = FakeListChatModel(responses=["x"])
    assert not ModelTree(model).parameters


@pytest.mark.parametrize(
    ("row", "kind", "heat"),
    [
        (Provider(classes=("tests.Heated",), temperature="heat"), Heated, 1.0),
        (Provider(classes=("tests.Heated",), temperature="heat"), Mild, 1.0),
        (Provider(temperature="heat"), Mild, 1.0),
        (
            Provider(
                classes=("tests.Mild",),
                temperature="heat",
                temperature_range=(0.0, 0.5),
            ),
            Mild,
            0.5,
        ),
    ],
    ids=["its own", "of its base", "of every class", "with a range"],
)
def test_a_row_of_the_users_own_comes_first(
    row: Provider, kind: type[Heated], heat: float
) -> None:
    model = kind(responses=["Paris"])
    guard = SNNEGuard(model, n=2, provider=row)
    for asked in (guard, guard.bind(stop=["."]), guard.model_copy(update={"n": 2})):
        record = metadata_of(asked.invoke("x"))
        assert (sorted(model.heats), model.heat) == ([0.0, heat], 0.0)
        assert ("temperature_unset" in record["reasons"]) is (heat == 0.5)
        model.heats.clear()


def test_a_row_of_the_users_own_leaves_other_classes_alone() -> None:
    row = Provider(classes=("tests.Mild",), n="num_replies")
    assert "n" not in ModelTree(Heated(responses=["x"]), provider=row).parameters


def test_rejections_are_kept_for_a_model_by_its_name() -> None:
    first, again, other = (
        ModelTree(Heated(responses=["x"], model_name=name)).targets[0].key
        for name in ("a", "a", "b")
    )
    assert first == again != other
