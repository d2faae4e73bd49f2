"""The report of what nobody hopes for: hostile texts, no labels, nothing, too much."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from snne_guard.evaluation import to_html
from snne_guard.evaluation.results import (
    AgreementOfGraders,
    Curve,
    EvaluatedSet,
    Evaluation,
    HardQuestion,
    MethodResult,
    Metric,
)
from tests.support.evaluated import METHODS, evaluated_set, evaluation, hard_question
from tests.support.html_reading import Page, read

HOSTILE = "</style></title><script>alert(1)</script><img src=x onerror='a()'>\"&$x_{$"


def shown(*sets: EvaluatedSet) -> Page:
    return read(to_html(Evaluation(sets=sets)))


def uncharted(**changed: Any) -> EvaluatedSet:
    """Return a set without charts, which take their time."""
    return replace(
        evaluated_set(n=40),
        correct=(),
        roc=(),
        risk_coverage=(),
        auroc_by_samples=(),
        auroc_by_clusters=(),
        reliability=(),
        **{"ablations": {}, **changed},
    )


def texts(page: Page) -> str:
    [body] = page.all("body")
    return body.text


def test_no_text_becomes_a_part_of_the_page() -> None:
    plain = evaluated_set(n=40, methods=("snne[rouge_l]", HOSTILE))
    hard = HardQuestion(
        id=HOSTILE,
        question=HOSTILE,
        answer=HOSTILE,
        samples=(HOSTILE, HOSTILE),
        references=(HOSTILE,),
        correct=True,
        uncertainty=0.5,
        rank=0.9,
    )
    found = replace(
        plain,
        name=HOSTILE,
        path=HOSTILE,
        protocol=HOSTILE,
        grader=HOSTILE,
        agreement=AgreementOfGraders(
            first=HOSTILE, second=HOSTILE, n=1, share=1.0, kappa=None
        ),
        left_out={HOSTILE: 3},
        warnings=(HOSTILE,),
        clusters_by=HOSTILE,
        hardest=(hard,),
        hardest_by=HOSTILE,
        methods=(
            *(replace(method, source=HOSTILE) for method in plain.methods[:2]),
            MethodResult(name=HOSTILE + "2", method="x", status="skipped", why=HOSTILE),
        ),
        ablations={
            HOSTILE: (Curve(label=HOSTILE, x=(1.0, 2.0), y=(0.5, 0.6)),),
            HOSTILE + "2": (Curve(label=HOSTILE, x=(1.0,), y=(0.5,)),),
        },
    )
    html = to_html(
        Evaluation(
            sets=(found,), settings={HOSTILE: HOSTILE}, created=HOSTILE, version=HOSTILE
        )
    )
    page = read(html)
    assert "<script" not in html
    assert not page.all("script")
    assert not page.all("img")
    assert len(page.all("style")) == 1
    assert "".join(HOSTILE.split()) in "".join(texts(page).split())
    assert "onerror" not in {name for e in page.elements for name in e.attributes}


def test_there_may_be_no_set() -> None:
    page = read(to_html(Evaluation(sets=())))
    assert "There is no set: nothing was evaluated." in texts(page)
    assert "0 ranked questions in 0 sets" in texts(page)


def test_a_set_without_labels_says_so() -> None:
    bare = MethodResult(name="snne[rouge_l]", method="snne")
    page = shown(
        EvaluatedSet(name="a", path="a.jsonl", methods=(bare,), ids=("1", "2"))
    )
    said = texts(page)
    assert "There is no ranking: no answer has a label." in said
    assert "unknown: no answer has a label" in said
    assert "the file does not say" in said
    reasons = {e.attributes["title"] for e in page.all("span", **{"class": "none"})}
    assert "no answer has a label" in reasons
    assert "not measured" in reasons
    assert (
        "A dash stands where there is no figure. AUROC: no answer has a label; " in said
    )
    assert not page.all("figure")


@pytest.mark.parametrize(
    ("accuracy", "why"),
    [(1.0, "all answers are right"), (0.0, "all answers are wrong")],
)
def test_one_class_has_no_ranking(accuracy: float, why: str) -> None:
    bare = MethodResult(name="snne[rouge_l]", method="snne", auroc=Metric(value=None))
    page = shown(
        EvaluatedSet(
            name="a", path="a", accuracy=accuracy, methods=(bare,), ids=("1", "2")
        )
    )
    assert f"There is no ranking: {why}." in texts(page)


def test_a_grader_may_know_how_good_answers_are_and_not_which_are_right() -> None:
    best = MethodResult(name="snne", method="snne", prr=Metric(value=0.4))
    other = MethodResult(
        name="lex_sim",
        method="lex_sim",
        prr=Metric(value=0.3),
        against_first=Metric(value=-0.1, low=-0.2, high=0.1),
    )
    found = EvaluatedSet(
        name="a", path="a", methods=(best, other), ids=("1", "2"), quality=(0.2, 0.9)
    )
    page = shown(found)
    said = texts(page)
    why = "the grader does not say which answers are right"
    assert f"Ranked by PRR: {why}, so there is no AUROC." in said
    assert "There is no ranking" not in said
    assert "Methods on a, the best PRR first" in said
    assert "PRR less snne's" in said
    assert "0.400" in said
    assert "itself" in said
    assert "\N{MINUS SIGN}0.100" in said
    assert f"AUROC: {why}; By length: {why}; " in said
    assert f"ECE, Brier: {why}." in said
    reasons = {e.attributes["title"] for e in page.all("span", **{"class": "none"})}
    assert "there is nothing to compare" not in reasons
    assert "this third has no right or no wrong answers" not in reasons


def test_a_set_may_have_no_question_and_no_method() -> None:
    page = shown(EvaluatedSet(name="a", path="a", accuracy=math.nan, n_read=3))
    assert "There is no ranking: no question could be ranked." in texts(page)
    assert not page.all("table", **{"class": "ranking"})
    assert "Scored answers none" in texts(page)
    assert "0 ranked of 3 read" in texts(page)


def test_what_was_not_evaluated_says_why_once() -> None:
    verified = "formula verified, not evaluated"
    others = (
        MethodResult(name="a", method="a", status="skipped"),
        MethodResult(
            name="b",
            method="b",
            status="formula_verified",
            why=f"{verified}: needs an NLI model",
        ),
    )
    [table] = shown(EvaluatedSet(name="a", path="a", methods=others)).all(
        "table", **{"class": "others"}
    )
    assert table.text == f"why methods skipped a {verified}: needs an NLI model b"


def test_one_method_is_first() -> None:
    page = shown(evaluated_set(n=40, methods=("dse[exact]",)))
    titles = [e.text for e in page.all("h4") if "figure" in e.parents]
    assert [title for title in titles if "Scores" in title] == ["Scores of dse[exact]"]
    assert "first" in texts(page)


def test_what_is_not_finite_is_shown_as_what_it_is() -> None:
    inf, nan = math.inf, math.nan
    plain = evaluated_set(n=4, methods=("snne[rouge_l]",))
    [method] = plain.methods[:1]
    odd = replace(
        method,
        auroc=Metric(value=nan, low=-inf, high=inf),
        prr=Metric(value=inf),
        prr_normalised=Metric(value=-inf, low=None, high=1.0),
        uncertainty=(nan, -inf, 1e300, 0.5),
    )
    found = replace(
        plain,
        methods=(odd, replace(odd, name="b", method="b", uncertainty=(nan,) * 4)),
        correct=(1, 1, 0, 0),
        accuracy=nan,
        roc=(Curve(label="snne[rouge_l]", x=(nan, inf), y=(0.5, 0.5)),),
        risk_coverage=(Curve(label="snne[rouge_l]", x=(0.5, 1.0), y=(0.2, None)),),
        auroc_by_samples=(
            Curve(
                label="snne[rouge_l]",
                x=(2.0, 3.0, nan),
                y=(0.5, inf, 0.1),
                low=(None, nan, 0.0),
                high=(None, 0.6, 0.0),
                counts=(4, 4, 4),
            ),
        ),
        auroc_by_clusters=(Curve(label="snne[rouge_l]", x=(nan,), y=(0.5,)),),
        reliability=(Curve(label="snne[rouge_l]", x=(), y=()),),
        hardest=(replace(hard_question(1, correct=False), uncertainty=nan, rank=nan),),
        length_clusters_rho=Metric(value=None),
    )
    page = shown(found)
    titles = [e.text for e in page.all("h4") if "figure" in e.parents]
    assert titles[:3] == [
        "Risk and coverage",
        "Scores of snne[rouge_l]",
        "AUROC by number of answers",
    ]
    assert "Not shown since not finite: 3." in texts(page)
    assert "∞" in texts(page)
    assert "nan" not in texts(page).lower()


def test_of_sixty_methods_a_few_are_drawn_and_all_are_listed() -> None:
    names = ("snne[rouge_l]", *(f"method_{at}" for at in range(59)))
    page = shown(evaluated_set(n=60, methods=names))
    [table] = page.all("table", **{"class": "ranking"})
    assert all(f"method_{at} " in table.text for at in range(59))
    drawn = page.all("ul", **{"class": "legend"})[0].text.split()
    assert len(drawn) == 4


def test_texts_of_all_kinds_and_lengths_are_shown() -> None:
    long = "x" * 5000
    odd = [
        replace(hard_question(1, correct=True), id=long, question=None, samples=()),
        replace(hard_question(2, correct=True), question="ما هي عاصمة فرنسا؟"),
        replace(hard_question(3, correct=False), question="フランスの首都は?"),
        replace(hard_question(4, correct=False), answer="", references=()),
        replace(hard_question(5, correct=False), answer="a\x00b\r\nc\x1b[1m"),
        replace(
            hard_question(6, correct=False),
            samples=(long, long, "x"),
            references=tuple(f"ref {at}" for at in range(15)),
            question=None,
            answer="",
        ),
    ]
    page = shown(uncharted(name=long, path=long, hardest=tuple(odd)))
    said = texts(page)
    assert "There are none." in said
    assert "The recording has none." in said
    assert "It is empty." in said
    assert "ما هي عاصمة فرنسا؟" in said
    assert "フランスの首都は?" in said
    assert "a␀b c␛[1m" in said
    assert "(4,600 more characters)" in said
    assert "and 3 more" in said
    answers = [e for e in page.all("dd") if e.attributes.get("dir") == "auto"]
    assert len(answers) == 12


def test_sets_of_equal_values_can_be_drawn() -> None:
    plain = evaluated_set(n=4, methods=("snne[rouge_l]",))
    flat = replace(plain.methods[0], uncertainty=(0.5,) * 4)
    page = shown(replace(plain, methods=(flat,), correct=(0,) * 4))
    assert "4 wrong answers, median 0.500" in texts(page)
    assert "right answers, median" not in texts(page)


def figures(page: Page) -> dict[str, str]:
    titles = [e.text for e in page.all("h4") if "figure" in e.parents]
    return dict(zip(titles, (e.text for e in page.all("figure")), strict=True))


def test_reliabilities_that_count_differently_are_counted_apart() -> None:
    names = ("snne[rouge_l]", "wsnne[rouge_l]")
    curves = tuple(
        Curve(label=name, x=(0.2, 0.8), y=(0.1, 0.9), counts=counts)
        for name, counts in zip(names, ((3, 4), ()), strict=True)
    )
    found = replace(uncharted(), methods=evaluated_set(n=40, methods=names).methods)
    said = figures(shown(replace(found, reliability=curves)))["Reliability"]
    assert "snne[rouge_l] 0.200 0.100 3 snne[rouge_l] 0.800 0.900 4" in said
    assert "wsnne[rouge_l] 0.200 0.100 \N{EN DASH}" in said
    both = (
        replace(curves[0], x=(0.004, 0.8)),
        replace(curves[1], x=(0.3, 0.7), counts=(5, 2)),
    )
    said = figures(shown(replace(found, reliability=both)))["Reliability"]
    assert "wsnne[rouge_l] 0.300 0.100 5 wsnne[rouge_l] 0.700 0.900 2" in said


def test_what_was_varied_is_drawn_in_its_order_and_listed_whole() -> None:
    names = [*METHODS, *(f"m{at}" for at in range(12))]
    by_tau = tuple(
        Curve(label=name, x=(0.1, 1.0, 100.0), y=(0.5, 0.6, 0.7), counts=(9, 9, 9))
        for name in names
    )
    apart = Curve(
        label="snne[a] - dse[b]", x=(1.0, 2.0), y=(0.1, -0.1), counts=(30, 10)
    )
    by_temperature = (Curve(label="m", x=(0.01, 1.0), y=(0.6, 0.7), counts=(3, 4)),)
    ablations = {
        "tau": by_tau,
        "snne_minus_se_by_clusters": (apart,),
        "temperature": by_temperature,
        "other": (Curve(label="m", x=(1.0, 2.0), y=(0.6, None)),),
        "nothing": (),
    }
    page = shown(uncharted(ablations=ablations))
    said = figures(page)
    assert list(said) == [
        "Temperature tau of the formula",
        "SNNE less semantic entropy, by number of groups",
        "Temperature of the samples",
        "other",
    ]
    legend = page.all("ul", **{"class": "legend"})[0].text.split()
    assert len(legend) == 6
    tau = said["Temperature tau of the formula"]
    assert "tau 0.10 1 100" in tau
    assert all(f"m{at} 0.500 0.600 0.700" in tau for at in range(12))
    assert "questions 9 9 9" in tau
    apart_said = said["SNNE less semantic entropy, by number of groups"]
    assert "snne[a] - dse[b] 0.100 \N{MINUS SIGN}0.100 questions 30 10" in apart_said


def test_similarities_stand_beside_each_other() -> None:
    single = tuple(
        Curve(label=label, x=(0.0,), y=(y,))
        for label, y in (
            ("snne[exact]", 0.6),
            ("snne[nli:a/b]", None),
            ("deg[exact]", 0.7),
            ("plain", 0.5),
        )
    )
    said = figures(shown(uncharted(ablations={"similarity": single})))["Similarity"]
    none = "\N{EN DASH}"
    assert f"snne 0.600 {none} {none}" in said
    assert f"deg 0.700 {none} {none}" in said
    assert f"plain {none} {none} 0.500" in said


def test_what_was_varied_says_which_metric_it_shows() -> None:
    curve = Curve(label="snne", x=(0.1, 1.0), y=(0.6, 0.7), metric="prr")
    single = Curve(label="snne[exact]", x=(0.0,), y=(0.6,), metric="prr")
    page = shown(uncharted(ablations={"tau": (curve,), "similarity": (single,)}))
    captions = [one.text for one in page.all("figcaption")]
    assert captions == ["PRR by tau.", "PRR of each method over each similarity."]


def test_an_evaluation_need_not_say_when() -> None:
    page = read(to_html(replace(evaluation(uncharted()), created="")))
    assert "Made with 1,000 bootstrap draws" in texts(page)
    assert not page.all("time")
    assert "40 ranked questions in 1 set." in texts(page)
