"""Which methods are run on what, and why others are not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from snne_guard.errors import ConfigurationError
from snne_guard.evaluation.comparison.plan import Tools, plan_methods, relation_of
from snne_guard.scorers import METHODS
from snne_guard.scorers.relation import Relation
from snne_guard.types import FloatArray

LEXICAL = Tools(
    graded=(Relation.of("rouge_l"),),
    equal=(Relation.of("exact"), Relation.of("normalised")),
)


class Entails:
    """An NLI model that finds all texts neutral."""

    name = "nli:toy"
    strict = True

    def __call__(
        self, texts: Sequence[str], /, *, question: str | None = None
    ) -> FloatArray:
        del question
        return np.eye(len(texts))

    def probabilities(
        self, texts: Sequence[str], /, *, question: str | None = None
    ) -> FloatArray:
        del question
        return np.full((len(texts), len(texts), 3), 1 / 3)


def names(methods: object, tools: Tools = LEXICAL) -> list[str]:
    return [one.name for one in plan_methods(methods, tools)]  # type: ignore[arg-type]


def test_a_name_means_every_relation_at_hand() -> None:
    assert names("snne,dse") == [
        "snne[rouge_l]",
        "dse[exact]",
        "dse[normalised]",
        "dse[nli]",
        "answer_length",
    ]


def test_a_name_with_a_relation_means_that_one() -> None:
    assert names(" dse[numeric] , snne[rouge_l_paper],") == [
        "dse[numeric]",
        "snne[rouge_l_paper]",
        "answer_length",
    ]


def test_all_means_every_method_once() -> None:
    planned = plan_methods("all,snne,dse[exact]", LEXICAL)

    assert {one.method.name for one in planned} == {*METHODS}
    assert len({one.name for one in planned}) == len(planned)


def test_methods_that_want_an_nli_model_say_so_without_one() -> None:
    planned = {one.name: one for one in plan_methods("dse,luq", LEXICAL)}

    assert planned["dse[nli]"].status == "formula_verified"
    assert planned["luq[nli]"].status == "formula_verified"
    assert "--nli" in str(planned["luq[nli]"].why)


def test_a_model_serves_all_methods_that_it_can_serve() -> None:
    tools = replace(LEXICAL, models=(Relation.of(Entails()),))

    assert names("snne,dse,luq", tools) == [
        "snne[rouge_l]",
        "snne[nli:toy]",
        "dse[exact]",
        "dse[normalised]",
        "dse[nli:toy]",
        "luq[nli:toy]",
        "answer_length",
    ]


def test_a_need_that_nothing_meets_is_a_reason() -> None:
    hidden = replace(METHODS["snne"], name="own", needs=frozenset({"hidden_states"}))

    one, _ = plan_methods([hidden], LEXICAL)
    other, _ = plan_methods([hidden], replace(LEXICAL, given=hidden.needs))

    assert (one.name, one.status) == ("own", "skipped")
    assert "--embedding" in str(one.why)
    assert (other.name, other.status) == ("own", "evaluated")


def test_a_relation_in_brackets_stays_in_the_name_of_what_is_skipped() -> None:
    needs = frozenset({"similarity", "hidden_states"})
    own = replace(METHODS["snne"], name="own", needs=needs)

    (one,) = [
        one for one in plan_methods([own], LEXICAL) if one.name != "answer_length"
    ]

    assert (one.name, one.status) == ("own", "skipped")


def test_methods_and_similarities_of_the_users_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "planned_own.py").write_text(
        "from dataclasses import replace\n"
        "from snne_guard.scorers import METHODS\n"
        "from snne_guard.similarity import rouge_l\n"
        "mine = replace(METHODS['snne'], name='mine')\n"
        "def alike(texts, *, question=None):\n"
        "    return rouge_l(texts)\n"
    )

    assert names("planned_own:mine[planned_own:alike],planned_own:mine") == [
        "mine[planned_own:alike]",
        "mine[rouge_l]",
        "answer_length",
    ]


@pytest.mark.parametrize(
    ("methods", "told"),
    [
        ("sne", "got 'sne'"),
        ("dse[rouge_l]", "which answers mean the same"),
        ("ne[exact]", "compares no answers"),
        ("snne[nothing]", "got 'nothing'"),
        ("snne[[x]]", "name or name"),
        ("math:pi", "it has no 'name'"),
        ("math:none", "none"),
        ("my-module:x", "as module:object"),
        ("no_such_module:x", "no_such_module"),
        ("snne[math:pi]", "callable"),
    ],
)
def test_what_makes_no_sense_is_refused(methods: str, told: str) -> None:
    with pytest.raises(ConfigurationError, match=told):
        plan_methods(methods, LEXICAL)


def _like_snne(**parts: object) -> object:
    """Return an object with the parts of a method, but for those that are None."""
    snne = METHODS["snne"]
    names = ("needs", "white_box", "source", "compute", "bounds", "uncertainty")
    own = {"name": "own"} | {name: getattr(snne, name) for name in names} | parts
    return SimpleNamespace(**{k: one for k, one in own.items() if one is not None})


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        ({"bounds": None}, "it has no 'bounds'"),
        ({"white_box": None}, "it has no 'white_box'"),
        ({"uncertainty": 1}, "'uncertainty' cannot be called"),
        ({"needs": {"similarity"}}, "frozenset, got set"),
        ({"name": "a[b]"}, r"got 'a\[b\]'"),
        ({"name": 5}, "got 5"),
        ({"name": "answer_length"}, "of this library is named 'answer_length' too"),
    ],
)
def test_a_method_of_the_users_own_is_looked_at_before_it_runs(
    parts: dict[str, object], told: str
) -> None:
    with pytest.raises(ConfigurationError, match=told):
        names([_like_snne(**parts)])


def test_two_methods_may_not_have_one_name() -> None:
    own = _like_snne()

    assert names([own, own]) == ["own[rouge_l]", "answer_length"]
    with pytest.raises(ConfigurationError, match="another of your own is named 'own'"):
        names([own, _like_snne()])


def test_a_model_name_may_have_a_comma_and_a_colon() -> None:
    assert relation_of("nli:a/b").name == "nli:a/b"
