"""The report of an evaluation: what it says, and that it is sound as a page."""

from __future__ import annotations

import re
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib import resources
from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest

from snne_guard.errors import MissingExtraError
from snne_guard.evaluation import to_html, write_report
from snne_guard.evaluation.results import EvaluatedSet, Evaluation
from tests.support.evaluated import METHODS, evaluated_set, evaluation
from tests.support.html_reading import Element, Page, read

CSS = resources.files("snne_guard.evaluation.reporting").joinpath("report.css")


@pytest.fixture(scope="module")
def html() -> str:
    return to_html(evaluation())


@pytest.fixture(scope="module")
def page(html: str) -> Page:
    return read(html)


def rows(page: Page, kind: str = "ranking") -> list[list[str]]:
    """Return the rows of the first table of a kind as texts."""
    found: list[list[str]] = []
    inside = False
    for element in page.elements:
        if element.tag == "table":
            if inside:
                break
            inside = element.attributes.get("class") == kind
        elif inside and element.tag == "tr":
            found.append([])
        elif inside and element.tag in {"td", "th"} and found:
            found[-1].append(element.text)
    return found


def test_it_is_one_file_that_fetches_and_runs_nothing(html: str, page: Page) -> None:
    assert page.declared == "doctype html"
    assert page.all("html", lang="en")
    assert len(page.all("title")) == 1 + len(page.all("svg", role="img"))
    [policy] = page.all("meta", **{"http-equiv": "Content-Security-Policy"})
    assert policy.attributes["content"].startswith("default-src 'none'")
    outside = {"script", "link", "img", "iframe", "object", "image", "base", "form"}
    assert not outside & {element.tag for element in page.elements}
    for element in page.elements:
        assert not any(name.startswith("on") for name in element.attributes)
        for name in ("src", "href", "xlink:href"):
            assert element.attributes.get(name, "#").startswith("#")
    # What matplotlib was told in colours that nobody else uses is the page's own.
    assert not re.search(r"#0a0[bc]\d\d", html)
    assert "url(http" not in html
    assert "@import" not in html


def test_a_reader_without_eyes_finds_the_way(page: Page) -> None:
    ids = [e.attributes["id"] for e in page.elements if "id" in e.attributes]
    assert len(ids) == len(set(ids))
    for element in page.elements:
        for name in ("aria-labelledby", "href"):
            for target in element.attributes.get(name, "").replace("#", "").split():
                assert target in ids
    levels = [int(e.tag[1]) for e in page.elements if re.fullmatch(r"h\d", e.tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    for picture in page.all("svg", role="img"):
        title, description = picture.attributes["aria-labelledby"].split()
        assert page.all("title", id=title)[0].text
        assert page.all("desc", id=description)[0].text
    for element in page.all("svg"):
        assert {"role", "aria-hidden"} & set(element.attributes)
    for cell in page.all("th"):
        assert cell.attributes["scope"] in {"col", "row", "colgroup", "rowgroup"}
    for box in page.elements:
        if box.attributes.get("class") == "scroll":
            assert box.attributes["tabindex"] == "0"
            assert {"aria-label", "aria-labelledby"} & set(box.attributes)


def _luminance(colour: str) -> float:
    if len(colour) == 4:
        colour = "#" + "".join(each * 2 for each in colour[1:])
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(one: str, other: str) -> float:
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", [0, 1, 2], ids=["light", "dark", "print"])
def test_every_text_and_curve_stands_out(scheme: int) -> None:
    css = CSS.read_text(encoding="utf-8")
    blocks = re.findall(r":root \{(.*?)\}", css, re.DOTALL)
    colours = dict(re.findall(r"--([\w-]+): (#\w+)", blocks[scheme]))
    if scheme == 2:  # the print's own are fewer; the light ones hold
        colours = {**dict(re.findall(r"--([\w-]+): (#\w+)", blocks[0])), **colours}
    for ground in ("paper", "raised", "warn", "own", "base"):
        for text in ("ink", "muted"):
            assert _contrast(colours[text], colours[ground]) >= 4.5, (text, ground)
    for text in ("link", *(f"c{at}" for at in range(8))):
        assert _contrast(colours[text], colours["paper"]) >= 4.5, text


def test_the_top_says_what_this_is_and_how_it_was_made(page: Page) -> None:
    [header] = page.all("header")
    assert "330 ranked questions in 2 sets" in header.text
    assert "2026-11-21 20:15 UTC" in header.text
    assert "snne-guard 0.1.0" in header.text
    [main] = page.all("main")
    assert "the higher, the more uncertain" in main.text
    assert "0.5 is a coin" in main.text
    contents = rows(page, "contents")
    assert [row[0] for row in contents[1:]] == [
        "trivia 1 warning",
        "arithmetic 1 warning",
    ]
    assert contents[1][1] == "wsnne[rouge_l]"
    assert rows(page, "plain")[1:] == [
        ["methods", '"all"'],
        ["include_answer", "true"],
        ["seed", "0"],
    ]


def test_a_set_says_where_its_figures_are_from(page: Page) -> None:
    facts = page.all("dl", **{"class": "facts"})[0].text
    assert "recordings/trivia.jsonl" in facts
    assert "near greedy" in facts
    assert "squad_f1; agrees with exact_match on 91.2 % of 240 answers" in facts
    assert "240 ranked of 249 read; left out: 7 unequal numbers of samples" in facts
    assert "10 samples and the delivered answer" in facts
    assert "a Spearman correlation of 0.41" in facts
    [warning, _] = page.all("div", **{"class": "warning"})
    assert "Label and score look at the same tokens." in warning.text


def test_the_table_has_every_method_best_first_and_the_rest_last(page: Page) -> None:
    found = evaluated_set()
    table = rows(page)
    names = [m.name for m in found.methods if m.status == "evaluated"]
    shown = [row[1] for row in table[2:]]
    assert [text.split(" ")[0] for text in shown] == names
    for row, method in zip(table[2 : 2 + len(METHODS)], found.methods, strict=False):
        assert method.auroc is not None
        assert f"{method.auroc.value:.3f}" in row[2]
        assert f"{method.auroc.low:.3f} to {method.auroc.high:.3f}" in row[2]
        box = "white" if method.white_box else "black"
        assert f"{box} box" in row[1]
    assert "baseline" in next(text for text in shown if "answer_length" in text)
    assert len(table) == 2 + len(METHODS)
    why = "the weights of the NLI model could not be had"
    assert rows(page, "others")[1:] == [
        [f"formula verified, not evaluated: {why}", "se[nli], luq[nli]"],
        ["skipped: the recording has no hidden states", "eigen_score"],
    ]


def test_differences_are_to_the_method_that_is_named(page: Page) -> None:
    table = rows(page)
    at = next(at for at, text in enumerate(table[0]) if text.startswith("AUROC less"))
    assert table[0][at] == "AUROC less wsnne[rouge_l]'s"
    differences = {row[1].split()[0]: row[10] for row in table[2:]}
    assert differences["wsnne[rouge_l]"] == "itself"
    assert differences["perplexity"].startswith("\N{MINUS SIGN}0.")


def _figures(page: Page) -> dict[str, Element]:
    figures = page.all("figure")
    titles = [e.text for e in page.all("h4") if "figure" in e.parents]
    return dict(zip(titles, figures, strict=True))


def test_the_charts_show_the_best_snne_wsnne_and_length(page: Page) -> None:
    figures = _figures(page)
    assert list(figures) == [
        "ROC curves",
        "Risk and coverage",
        "Scores of snne[rouge_l]",
        "Scores of wsnne[rouge_l]",
        "AUROC by number of answers",
        "AUROC by number of groups of equal answers",
        "Reliability",
        "Temperature tau of the formula",
        "Similarity",
    ]
    legend = page.all("ul", **{"class": "legend"})[0].text.split()
    assert sorted(legend) == [
        "answer_length",
        "dse[exact]",
        "lex_sim[rouge_l]",
        "luq[rouge_l]",
        "snne[rouge_l]",
        "wsnne[rouge_l]",
    ]
    best = evaluated_set().methods[0]
    assert best.auroc is not None
    described = page.all("desc")[0].text
    assert f"{best.name}: AUROC {best.auroc.value:.3f}" in described
    assert "exact rouge_l snne 0.740 0.810" in figures["Similarity"].text
    assert "In numbers" in figures["Reliability"].text


def test_shapes_take_their_colours_from_the_page(page: Page) -> None:
    for kind in ("path", "use"):
        for shape in page.all(kind):
            if "defs" not in shape.parents:
                style = shape.attributes["style"]
                assert re.search(r"fill:(none|currentColor|var\(--\w+\))", style)
                assert "#" not in style


def test_hard_questions_are_folded_with_their_answers(page: Page) -> None:
    folded = page.all("details", **{"class": "question"})
    assert len(folded) == 40
    wrong = [each for each in folded[:20] if each.text.startswith("wrong")]
    assert len(wrong) == 10
    assert "Inn" in wrong[0].text
    assert "2 \N{MULTIPLICATION SIGN} The Danube" in wrong[0].text
    assert "empty" in wrong[0].text
    assert "3.0 % of the questions are less uncertain" in wrong[0].text
    assert not any("open" in each.attributes for each in folded)


def test_the_same_evaluation_gives_the_same_page_whoever_else_draws() -> None:
    found = evaluation(evaluated_set(n=40))
    with (
        mpl.rc_context({"text.usetex": True, "axes.facecolor": "red"}),
        ThreadPoolExecutor(2) as pool,
    ):
        before = dict(mpl.rcParams)
        one, other = pool.map(to_html, [found] * 2)
        assert dict(mpl.rcParams) == before
    assert one == other == to_html(found)


def test_it_is_small_enough_to_be_sent(html: str) -> None:
    assert len(html.encode()) < 300_000


def test_it_goes_into_a_file(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    found = Evaluation(
        sets=(EvaluatedSet(name="Fragen \N{SNOWMAN} \ud83d", path="a.jsonl"),)
    )
    write_report(found, str(path))
    text = path.read_text(encoding="utf-8")
    assert "Fragen \N{SNOWMAN} ?" in text
    assert text == to_html(found)


@pytest.mark.parametrize("package", ["jinja2", "matplotlib"])
def test_a_missing_package_is_named(
    package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in list(sys.modules):
        if name.startswith((package, "snne_guard.evaluation._report")):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=rf"{package} .*snne-guard\[eval\]"):
        to_html(Evaluation(sets=()))


def test_settings_of_any_kind_are_shown() -> None:
    options: dict[str, Any] = {"path": Path("a/b"), "taus": (0.1, 1), "x": float("inf")}
    page = read(to_html(Evaluation(sets=(), settings=options)))
    assert [row[1] for row in rows(page, "plain")[1:]] == [
        '"a/b"',
        "[0.1, 1]",
        "Infinity",
    ]
