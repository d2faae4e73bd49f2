"""Recordings scored as a guard would have scored them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from snne_guard.errors import ConfigurationError, InputError, ScoringError
from snne_guard.evaluation import Recording
from snne_guard.evaluation.replaying import score_recordings
from snne_guard.scorers import score
from snne_guard.self_check import SelfCheck
from snne_guard.types import FloatArray

SETTINGS = {"model": "m", "temperature": 0.5}


def row(number: int = 0, **fields: Any) -> Recording:
    known: dict[str, Any] = {
        "id": str(number),
        "question": f"What is {number}?",
        "main_answer": "Paris",
        "samples": ["Paris", "Lyon", "Paris"],
        "settings": SETTINGS,
    }
    return Recording.from_dict(known | fields)


class Same:
    """A similarity that is 1 for equal texts, and remembers what it was told."""

    def __init__(self) -> None:
        self.questions: list[str | None] = []
        self.texts: list[tuple[str, ...]] = []

    def __call__(
        self, texts: Sequence[str], /, *, question: str | None = None
    ) -> FloatArray:
        self.questions.append(question)
        self.texts.append(tuple(texts))
        return np.array([[float(one == other) for other in texts] for one in texts])


def test_u_is_that_of_the_public_function() -> None:
    rows = [row(0), row(1, samples=["Nice", "Rome", "Lima"])]
    found = score_recordings(rows)
    for recording, u in zip(rows, found.uncertainty, strict=True):
        answers = [recording.main_answer, *recording.samples]
        assert u == score(answers, question=recording.question).uncertainty
    assert found.uncertainty[0] < found.uncertainty[1] == 1.0
    assert found.settings == {
        "model": "m",
        "temperature": 0.5,
        "n": 4,
        "include_answer": True,
        "method": "snne",
        "similarity": "content_f1",
        "anchor": 0.7,
    }
    assert found.temperature_set
    assert (found.reply_models, found.unscored) == ((), Counter())


def test_a_recorded_self_check_counts_as_the_guards_does() -> None:
    check = SelfCheck(weight=1.0)
    settings = SETTINGS | {"self_check": check.prompt}
    rows = [row(n, settings=settings, self_check=p) for n, p in enumerate([0.75, None])]
    found = score_recordings(rows, self_check=check)
    plain = score_recordings(rows).uncertainty[0]
    # Without a Yes or a No it counts as a half.
    assert found.uncertainty == pytest.approx([(plain + 0.25) / 2, (plain + 0.5) / 2])
    assert (found.settings["n"], found.settings["self_check"]) == (5, check.prompt)
    assert found.settings["self_check_weight"] == 1.0
    four = score_recordings(rows, n=4, self_check=check)
    assert four.settings["n"] == 4
    assert four.uncertainty[0] == pytest.approx(
        (score_recordings(rows, n=3).uncertainty[0] + 0.25) / 2
    )


def test_recorded_views_count_as_the_guards_do() -> None:
    settings = SETTINGS | {"views": ["plain", "reasoning"], "temperature": 1.0}
    drawn = [["Bonn", "Bonn", "Rome", "Nice"], ["Bonn"] * 4, ["Bonn", "", "Rome", "a"]]
    rows = [
        row(
            n,
            settings=settings,
            samples=texts,
            main_logprobs=[-1.0],
            token_logprobs=[[-20.0]] * 4,
        )
        for n, texts in enumerate(drawn)
    ]
    found = score_recordings(rows, method="wsnne")
    assert found.settings["views"] == ["plain", "reasoning"]
    # The same improbable text in two views is no sign of a cache; in one view it is.
    assert found.uncertainty[0] < math.inf
    assert found.unscored == {"suspect_agreement": 1, "view_unreadable": 1}


def test_a_guard_may_have_some_of_the_views_that_were_recorded() -> None:
    settings = SETTINGS | {"views": ["plain", "examples", "reasoning"]}
    first = row(settings=settings, samples=["Paris", "Rome", "", "Oslo", "Rome"])
    kinds = {"drawn": {"kinds": [None, None, None, "unreadable", None, None]}}
    for chosen, samples, views in (
        (["plain"], ["Paris", "Oslo"], None),
        (["examples"], ["Rome", "Rome"], ["examples"]),
        (
            ["examples", "plain"],
            ["Paris", "Rome", "Oslo", "Rome"],
            ["plain", "examples"],
        ),
    ):
        found = score_recordings([row(**first.to_dict() | kinds)], views=chosen)
        alone = score_recordings([row(samples=samples)])
        assert found.uncertainty == alone.uncertainty
        added = {"views": views} if views else {}
        assert found.settings == {**alone.settings, **added}
    with pytest.raises(
        InputError, match="views among plain, examples, reasoning, got mine"
    ):
        score_recordings([first], views=["plain", "mine"])
    with pytest.raises(InputError, match=r"at least 3 samples .* '0' has 2"):
        score_recordings([first], views=["plain"], n=4)


@pytest.mark.parametrize(
    ("options", "texts"),
    [
        ({}, ("Paris", "Paris", "Lyon", "Paris")),
        ({"n": 3}, ("Paris", "Paris", "Lyon")),
        ({"include_answer": False}, ("Paris", "Lyon", "Paris")),
        ({"include_answer": False, "n": 3}, ("Paris", "Lyon")),
    ],
)
def test_the_set_is_the_first_members(
    options: dict[str, Any], texts: tuple[str, ...]
) -> None:
    same = Same()
    found = score_recordings([row()], similarity=same, **options)
    assert same.texts == [texts]
    assert found.settings["n"] == len(texts) + ("include_answer" in options)
    assert found.settings["anchor"] == 0.0


@pytest.mark.parametrize(
    ("fields", "bare", "told"),
    [
        ({}, False, "What is 0?"),
        ({"context": "Zero."}, False, "Context: Zero.\n\nQuestion: What is 0?"),
        ({"context": "Zero."}, True, "What is 0?"),
        ({"question": None}, False, None),
    ],
)
def test_the_similarity_is_told_what_a_guard_tells_it(
    fields: dict[str, Any], told: str | None, *, bare: bool
) -> None:
    same = Same()
    score_recordings([row(**fields)], similarity=same, bare_question=bare)
    assert same.questions == [told]


LIKELY = [-0.1, -0.1]


@pytest.mark.parametrize(
    ("fields", "options", "why"),
    [
        ({"main_answer": " "}, {}, "answer_unreadable"),
        ({"samples": ["Paris", "", "Lyon"]}, {}, "unreadable_samples"),
        ({"drawn": {"finish_reasons": ["stop", "stop", "length", "stop"]}}, {},
         "truncated_samples"),
        ({"drawn": {"kinds": [None, "refused", None, None]}}, {}, "refused_samples"),
        ({"drawn": {"kinds": [None, None, "tool_calls", None]}}, {},
         "tool_call_samples"),
        ({"drawn": {"kinds": ["tool_calls"] * 4}}, {}, "tool_calls"),
        ({}, {"method": "wsnne"}, "logprobs_missing"),
    ],
)  # fmt: skip
def test_what_a_guard_could_not_accept_has_no_score(
    fields: dict[str, Any], options: dict[str, Any], why: str
) -> None:
    logprobs = {"main_logprobs": LIKELY, "token_logprobs": [LIKELY] * 3}
    whole = row(1, **logprobs, samples=["Paris", "Nice", "Rome"])
    found = score_recordings([whole, row(0, **fields)], **options)
    assert math.isfinite(found.uncertainty[0])
    assert math.isinf(found.uncertainty[1])
    assert found.unscored == {why: 1}


def test_a_method_for_which_nothing_stands_in_loses_one_answer_alone() -> None:
    logprobs = {"main_logprobs": LIKELY, "token_logprobs": [LIKELY] * 3}
    rows = [row(0, **logprobs), row(1), row(2, main_logprobs=LIKELY)]
    found = score_recordings(rows, method="sequence_probability")
    assert found.unscored == {"logprobs_missing": 2}
    assert [math.isfinite(u) for u in found.uncertainty] == [True, False, False]


def test_samples_that_agree_too_well_are_suspect_where_a_guard_would_see_it() -> None:
    fields: dict[str, Any] = {
        "settings": SETTINGS | {"temperature": 1.0},
        "samples": ["A long tale"] * 3,
        "main_logprobs": LIKELY,
        "token_logprobs": [[-9.0, -9.0, -9.0]] * 3,
    }
    rows = [row(0, **fields), row(1, **fields | {"samples": ["a b c", "d", "e"]})]
    assert score_recordings(rows, method="wsnne").unscored == {"suspect_agreement": 1}
    assert not score_recordings(rows, method="snne").unscored


def test_auto_is_settled_by_the_first_recording_as_a_guard_settles_it() -> None:
    logprobs = {"main_logprobs": LIKELY, "token_logprobs": [LIKELY] * 3}
    known = score_recordings([row(0, **logprobs), row(1)], method="auto")
    assert known.settings["method"] == "wsnne"
    assert known.unscored == {"logprobs_missing": 1}
    for some in ({}, logprobs | {"token_logprobs": [LIKELY, None, LIKELY]}):
        plain = score_recordings([row(0, **some), row(1, **logprobs)], method="auto")
        assert plain.settings["method"] == "snne"


def test_auto_does_without_the_log_probabilities_of_other_tokens() -> None:
    thought = [f"<think>Hm.</think>{text}" for text in ("Paris", "Lyon")]
    known: dict[str, Any] = {"main_logprobs": [-0.1], "token_logprobs": [[-0.1]] * 2}
    found = score_recordings([row(samples=thought, **known)], method="auto")
    assert found.settings["method"] == "snne"
    assert found.uncertainty < 1


def test_what_record_keeps_of_the_draws_is_passed_on() -> None:
    settings = SETTINGS | {
        "answer_temperature": 0.0,
        "top_p": None,
        "max_tokens": 48,
        "stop": "\n",
        "seed": 7,
    }
    drawn = {"models": ["m-1", "m-2"], "reasons": ["temperature_unset"]}
    rows = [row(i, settings=settings | {"seed": i}, drawn=drawn) for i in range(2)]
    found = score_recordings(rows)
    kept = {"answer_temperature": 0.0, "top_p": None, "max_tokens": 48, "stop": "\n"}
    assert kept.items() <= found.settings.items()
    assert "seed" not in found.settings
    assert found.reply_models == ("m-1", "m-2")
    assert not found.temperature_set


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"settings": SETTINGS | {"model": "k"}}, "model was 'm', here it is 'k'"),
        ({"settings": SETTINGS | {"system": "Be brief."}}, "system was None"),
        ({"settings": SETTINGS | {"other_models": ["c"]}}, "other_models was None"),
        ({"settings": None}, "model was 'm', here it is None; temperature"),
        ({"drawn": {"reasons": ["temperature_unset"]}}, "temperature_set was True"),
    ],
)
def test_recordings_must_be_drawn_in_one_way(
    changes: dict[str, Any], told: str
) -> None:
    told = rf"recording '2' was drawn with other settings: {told}"
    with pytest.raises(ConfigurationError, match=told):
        score_recordings([row(0), row(1), row(2, **changes)])


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"n": 1}, "to be a whole number of at least 2, got 1"),
        ({"n": 2, "self_check": SelfCheck()}, "at least 3, got 2"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    options: dict[str, Any], told: str
) -> None:
    with pytest.raises(ConfigurationError, match=told):
        score_recordings([row()], **options)


def test_where_nothing_can_be_scored_the_reasons_are_told() -> None:
    with pytest.raises(InputError, match="would score it: 2 for answer_unreadable"):
        score_recordings([row(0, main_answer=""), row(1, main_answer="")])
    with pytest.raises(ConfigurationError, match="at least 2, got 1"):
        score_recordings([row(samples=[])])
    with pytest.raises(InputError, match=r"at least 3 samples .* '2' has 1"):
        score_recordings([row(1), row(2, samples=["Paris"])])
    with pytest.raises(InputError, match="'0' to be lists of 4"):
        score_recordings([row(drawn={"finish_reasons": ["stop"]})])
    with pytest.raises(InputError, match=r"record --self-check"):
        score_recordings([row(self_check=0.5)], self_check=SelfCheck())
    for fields in ({"settings": {"temperature": "warm"}}, {"drawn": {"requests": 5}}):
        with pytest.raises(
            InputError, match=r"recording '0': (temperature|requests): "
        ):
            score_recordings([row(**fields)])


def test_a_similarity_that_fails_ends_it_and_tells_no_text() -> None:
    def broken(texts: Sequence[str], /, *, question: str | None = None) -> FloatArray:
        del question
        raise RuntimeError(texts[0])

    with pytest.raises(
        ScoringError, match="recording '0' failed with RuntimeError"
    ) as e:
        score_recordings([row()], similarity=broken)
    assert "Paris" not in str(e.value)
