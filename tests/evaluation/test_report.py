from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

from snne_guard.cost import Cost
from snne_guard.errors import InputError
from snne_guard.evaluation import (
    Evaluation,
    Recording,
    evaluate,
    html_report,
    plots,
    read_recordings,
    resolve_grader,
)
from snne_guard.scorers import Method
from tests.evaluation.support import EXAMPLE, PROJECT, recordings

VIEWS = PROJECT / "benchmarks" / "recordings" / "views" / "problems.jsonl"
PLOTS = [
    plots.plot_uncertainty,
    plots.plot_risk_coverage,
    plots.plot_calibration,
    plots.plot_methods,
    plots.plot_recipes,
]


class Page(HTMLParser):
    """The tags of a page with their attributes, and the text in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def count(self, tag: str) -> int:
        return sum(name == tag for name, _ in self.tags)


@pytest.fixture(scope="module")
def example() -> Evaluation:
    return evaluate(
        read_recordings(EXAMPLE),
        methods="snne,snne[rouge_l],wsnne",
        grader=resolve_grader("contains"),
        name="example",
        resamples=50,
    )


@pytest.fixture(scope="module")
def views() -> Evaluation:
    return evaluate(read_recordings(VIEWS), methods="snne", calls=4, resamples=50)


def changed(**fields: Any) -> list[Recording]:
    """Return the usual recordings with other fields."""
    return [Recording.from_dict(row.to_dict() | fields) for row in recordings()]


def made(n: int, wrong: Callable[[int], bool]) -> Evaluation:
    """Return an evaluation of answers of which the wrong ones differ most."""
    rows = [
        Recording(
            id=str(at),
            question="?",
            main_answer=f"a{at}",
            samples=(f"b{at}", f"c{at}") if wrong(at) else (f"a{at}", f"a{at}"),
            label=int(not wrong(at)),
        )
        for at in range(n)
    ]
    return evaluate(rows, methods="snne", resamples=20)


def test_the_page_loads_and_runs_nothing(
    example: Evaluation, views: Evaluation
) -> None:
    page = Page(html_report([example, views]))
    html = {"html", "head", "meta", "title", "style", "body", "section", "div", "p"}
    html |= {"h1", "h2", "h3", "strong", "figure", "figcaption", "dl", "dt", "dd"}
    html |= {"table", "thead", "tbody", "tr", "th", "td"}
    svg = {"svg", "defs", "g", "path", "clippath", "rect", "text", "use"}
    assert {tag for tag, _ in page.tags} <= html | svg
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    assert policy in [attributes.get("content") for _, attributes in page.tags]
    for _, attributes in page.tags:
        assert not any(name.startswith("on") or name == "src" for name in attributes)
        links = [attributes.get("href"), attributes.get("xlink:href")]
        assert all(link.startswith("#") for link in links if link)
    source = html_report([example])
    assert not re.findall(r"https?:|@import|@font-face", source)
    assert not [link for link in re.findall(r"url\(([^)]*)", source) if link[0] != "#"]


def test_the_page_says_what_was_found(example: Evaluation) -> None:
    page = Page(html_report([example]))
    assert "95 of 200 answers (48%) are wrong" in page.text
    assert "What to do:" in page.text
    for row in example.ranked:
        assert row.name in page.text
        assert f"{row.metrics['auroc']:.3f}" in page.text
    for column in ("method", "box", "AUROC", "AUARC", "PRR", "difference"):
        assert page.text.count(column) > 1  # in the table and where it is explained
    assert page.count("svg") == 4  # there are no recipes
    assert "80% 160 36.3%" in page.text
    assert "100% 200 cannot be reached" in page.text  # two are never accepted
    assert "truncated_samples" in page.text
    assert "Nothing is accepted: these 200 labels" in page.text
    assert "Sara" not in page.text


def test_the_guarantee_is_that_of_the_error_rate(example: Evaluation) -> None:
    page = Page(html_report([example], max_error=0.4))
    assert "at most 40% of the accepted answers are wrong" in page.text
    assert "the error rate 40%, the point the threshold" in page.text


def test_texts_are_shown_on_demand_alone(example: Evaluation) -> None:
    page = Page(html_report([example], texts=lambda _: read_recordings(EXAMPLE)))
    assert "Who won the long jump?" in page.text
    fooled, _, held = page.text.partition("held back first")
    assert fooled.count("Question") == held.count("Question") == 5
    assert "Reference Paula" in fooled
    assert fooled.count("Sample Sara won the long jump") == 4


def test_recipes_are_priced_where_the_money_is_known(views: Evaluation) -> None:
    assert "money is for all questions" not in Page(html_report([views])).text
    assert views.recipes is not None
    paid = [replace(each, cost=Cost(money=0.625)) for each in views.recipes.recipes]
    best = views.recipes.at_equal_calls
    recipes = replace(views.recipes, recipes=(*paid,), at_equal_money=best)
    page = Page(html_report([replace(views, recipes=recipes)]))
    assert page.text.count("0.625") == len(paid)
    assert "Best for no more money: examples with 4 calls" in page.text


def test_recipes_are_compared_at_equal_calls_and_money(views: Evaluation) -> None:
    page = Page(html_report([views]))
    assert page.count("svg") == 4  # there are too few answers to learn p_wrong from
    assert "Best at 4 calls: examples with 4 calls" in page.text
    assert "Best for no more money: unknown" in page.text
    assert "Grade more answers: with 32" in page.text


@pytest.mark.parametrize(
    "hostile",
    [
        "<script>alert(1)</script>$x$ {{ 7*7 }}</style><img src=x onerror=y>&amp;\"'",
        "\x1b[2J\u202e",
    ],
)
def test_hostile_texts_are_shown_as_they_are(hostile: str) -> None:
    rows = [
        {**row.to_dict(), "id": f"{row.id}{hostile}", "question": hostile}
        | {"main_answer": f"{row.main_answer} {hostile}", "answers": [hostile]}
        for row in recordings()
    ]  # fmt: skip
    shown = [Recording.from_dict(row) for row in rows]
    evaluation = evaluate(shown, methods="snne", resamples=2, name=hostile)
    source = html_report([evaluation], texts=lambda _: shown)
    page = Page(source)
    assert not {"script", "img"} & {tag for tag, _ in page.tags}
    assert not set("\x1b\u202e") & set(source)
    assert "49" not in page.text.partition("Question")[2].partition("Answer")[0]
    if hostile.isprintable():
        assert f"Question {hostile}" in page.text


def test_a_hostile_name_of_a_method_stays_a_name() -> None:
    def measure(similarity: Any) -> float:
        return float(1 - similarity.mean())

    names = ["<script>x</script>", "$\\frac{", "a -- b", "\x1b[2J", 'href="#x" &amp;']
    methods = [
        Method(name=name, source="a test", function=measure, limits=(0.0, 1.0))
        for name in names
    ]
    source = html_report([evaluate(recordings(), methods=methods, resamples=2)])
    assert "script" not in {tag for tag, _ in Page(source).tags}
    assert "\x1b" not in source


@pytest.mark.parametrize("label", [0, 1])
def test_one_class_alone_is_told(label: int) -> None:
    rows = changed(label=label)
    page = Page(html_report([evaluate(rows, methods="snne", resamples=2)]))
    word = "right" if label else "wrong"
    assert f"All 4 answers are {word}: nothing to find." in page.text
    assert "Check the grades" in page.text
    assert "nan" in page.text  # AUROC does not exist
    assert "How many to accept" not in page.text


def test_grades_without_right_and_wrong_are_told() -> None:
    rows = changed(label=None)
    pytest.importorskip("rouge_score")
    grader = resolve_grader("rouge_l")
    page = Page(
        html_report([evaluate(rows, methods="snne", grader=grader, resamples=2)])
    )
    assert "neither right nor wrong" in page.text
    assert "AUROC" not in page.text
    assert page.count("svg") == 1


def test_no_answer_that_a_guard_accepts_is_told() -> None:
    ends = {"finish_reasons": ["stop", "length", "stop", "stop"]}
    rows = changed(drawn=ends)
    evaluation = evaluate(rows, methods="snne", resamples=2)
    assert evaluation.never_accepted == {"truncated_samples": 4}
    assert evaluation.u is not None
    assert np.isinf(evaluation.u).all()
    page = Page(html_report([evaluation]))
    assert (
        "Mend the recording first: a calibrated guard never accepts 4 of 4" in page.text
    )
    assert "--max-tokens" in page.text


def test_a_method_without_u_is_told() -> None:
    rows = changed(main_logprobs=[-1.0], token_logprobs=[[-1.0]] * 3)
    evaluation = evaluate(rows, methods="perplexity,snne", resamples=2)
    assert evaluation.u is None
    assert "Name a method first that has u" in Page(html_report([evaluation])).text


@pytest.mark.parametrize(
    ("evaluation", "told"),
    [
        (made(30, lambda at: at % 3 == 0), "Grade more answers: with 30"),
        (made(200, lambda at: at % 3 == 0), "Choose an error rate"),
        (made(30, lambda at: at % 29 == 5), "Grade more answers"),
    ],
)
def test_the_advice_is_the_most_urgent(evaluation: Evaluation, told: str) -> None:
    assert f"What to do: {told}" in Page(html_report([evaluation])).text


@pytest.mark.parametrize("plot", PLOTS)
def test_each_plot_returns_its_axes(
    plot: Callable[..., Any], example: Evaluation, views: Evaluation
) -> None:
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot as plt

    _, ax = plt.subplots()
    evaluation = views if plot is plots.plot_recipes else example
    assert plot(evaluation, ax=ax) is ax
    assert ax.has_data()
    assert ax.get_xlabel()
    other = plot(evaluation)
    assert other is not ax
    plt.close("all")


def test_each_method_has_one_curve() -> None:
    import matplotlib as mpl

    mpl.use("agg")
    rows = [
        Recording(
            id=str(at),
            question="?",
            main_answer="a" * (at + 1),
            samples=("b", "b"),
            context="a",
            label=int(at < 3),
        )
        for at in range(6)
    ]
    evaluation = evaluate(rows, methods="snne", resamples=2)
    ax = plots.plot_risk_coverage(evaluation)
    names = [str(line.get_label()) for line in ax.lines]
    assert sorted(names) == sorted(row.name for row in evaluation.rows)


@pytest.mark.parametrize(
    "plot", [each for each in PLOTS if each is not plots.plot_methods]
)
def test_a_plot_without_data_is_an_input_error(plot: Callable[..., Any]) -> None:
    rows = changed(label=1)
    evaluation = evaluate(rows, methods="answer_length", resamples=2)
    with pytest.raises(InputError):
        plot(evaluation)


def test_the_points_of_p_wrong_come_from_other_answers(example: Evaluation) -> None:
    import matplotlib as mpl

    mpl.use("agg")
    ax = plots.plot_calibration(example)
    predicted, observed = np.array(ax.lines[1].get_data())
    assert len(predicted) == 8
    assert all(0 <= each <= 1 for each in (*predicted, *observed))
    assert list(predicted) == sorted(predicted)
    assert np.mean(observed) == pytest.approx(95 / 200, abs=0.03)
