"""Recordings that were not all drawn in one way can promise nothing together."""

from __future__ import annotations

from typing import Any

import pytest

from snne_guard.errors import InputError
from snne_guard.evaluation.calibrating.drawn_alike import DrawnAlike, drawn_alike
from tests.support.calibrating import asked


def test_how_they_were_drawn_is_read_off_them() -> None:
    settings = {"model": "openai:m", "temperature": 0.7, "prompt_version": "v3"}
    one = asked("1", settings=settings | {"seed": 1}, drawn={"models": ["m-1"]})
    two = asked(
        "2", settings=settings | {"seed": 2}, drawn={"models": ["m-1", "m-2", 3]}
    )
    assert drawn_alike([one, two]) == DrawnAlike(
        model="openai:m",
        prompt_version="v3",
        temperature=0.7,
        reply_models=("m-1", "m-2"),
        n_samples=2,
        known=True,
    )


def test_recordings_that_say_nothing_are_alike() -> None:
    found = drawn_alike(
        [asked("1"), asked("2", drawn=3), asked("3", drawn={"models": 4})]
    )
    assert found.model is None
    assert (found.temperature, found.reply_models, found.known) == (1.0, (), False)


@pytest.mark.parametrize(
    "name",
    [
        *("model", "prompt_version", "system", "temperature", "answer_temperature"),
        *("top_p", "max_tokens", "stop", "completion"),
    ],
)
def test_each_setting_that_matters_must_be_the_same(name: str) -> None:
    rows = [
        asked(n, settings={name: value}) for n, value in zip("12", (1, 2), strict=True)
    ]
    with pytest.raises(InputError, match=rf"they differ in {name}: 1 \(1\), 2 \(1\)$"):
        drawn_alike(rows)


def test_all_that_differs_is_listed() -> None:
    rows = [
        asked("1", settings={"model": "a", "temperature": 1.0}),
        asked("2", settings={"model": "b" * 99, "temperature": 0.5}, samples=["a"]),
        asked("3"),
    ]
    with pytest.raises(InputError) as error:
        drawn_alike(rows)
    for told in (
        'model: "a" (1), "bbb',
        "…",
        "not said (1)",
        "temperature: 1.0 (1), 0.5 (1)",
        "samples: 2 (2), 1 (1)",
    ):
        assert told in str(error.value)


def test_more_samples_than_are_needed_do_no_harm() -> None:
    rows = [asked("1"), asked("2", samples=["a"])]
    assert drawn_alike(rows, n_samples=1).n_samples == 1
    with pytest.raises(
        InputError, match="2 samples of each question; 1 have fewer, such"
    ):
        drawn_alike(rows, n_samples=2)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"model": 3}, '"model" in the settings of a recording to be a text'),
        ({"temperature": "hot"}, '"temperature" in the settings of a recording'),
        ({"temperature": True}, '"temperature" in the settings of a recording'),
        ({"answer_temperature": "hot"}, '"answer_temperature" in the settings'),
        ({"top_p": "most"}, '"top_p" in the settings'),
        ({"top_p": True}, '"top_p" in the settings of a recording to be a number'),
        ({"max_tokens": 1.5}, '"max_tokens" in the settings'),
        ({"max_tokens": [5]}, '"max_tokens" in the settings'),
        ({"stop": 5}, '"stop" in the settings of a recording to be texts or null'),
        ({"stop": [".", None]}, '"stop" in the settings'),
    ],
)
def test_settings_that_are_none(settings: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        drawn_alike([asked("1", settings=settings)])


def test_whether_the_temperature_was_taken_must_be_the_same() -> None:
    taken, left = asked("1"), asked("2", drawn={"reasons": ["temperature_unset"]})
    assert not drawn_alike([taken]).temperature_unset
    assert drawn_alike([left, left]).temperature_unset
    with pytest.raises(InputError, match="differ in temperature taken: true"):
        drawn_alike([taken, left])


@pytest.mark.parametrize("name", ["answer_temperature", "top_p", "max_tokens"])
@pytest.mark.parametrize(
    ("said", "known"),
    [([1, 1], {1.0}), ([None, None], {None}), ([], set()), ([None], set())],
)
def test_what_answers_were_drawn_with_is_known_where_all_say_it(
    name: str, said: list[float | None], known: set[float | None]
) -> None:
    settings: list[dict[str, Any]] = [{name: value} for value in said]
    settings += [{}] * (2 - len(settings))
    rows = [asked(n, settings=each) for n, each in zip("12", settings, strict=True)]
    assert drawn_alike(rows).answer_settings.get(name, set()) == known
    assert not drawn_alike([asked("1"), asked("2")]).answer_settings


@pytest.mark.parametrize(
    ("said", "known"),
    [(None, None), ([], None), ("\n", ("\n",)), (["\n", "."], ("\n", "."))],
)
def test_where_answers_ended_is_known(said: object, known: object) -> None:
    found = drawn_alike([asked("1", settings={"stop": said})])
    assert found.answer_settings["stop"] == {known}
