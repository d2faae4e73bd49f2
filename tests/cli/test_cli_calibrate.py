"""``snne-guard calibrate``: what is said, written and returned."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from snne_guard.cli import build_app
from snne_guard.decision import Calibration
from tests.cli.lines import write
from tests.support.calibrating import rows

RATE = ("--error-rate", "0.15")


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(build_app(), ["calibrate", *map(str, arguments)])


def told(result: Result) -> str:
    """Return what was said, on one line."""
    return " ".join((result.stdout + result.stderr).split())


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write(tmp_path / "r.jsonl", *rows(300))


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "guard.json"


def test_the_sentence_the_counts_and_the_two_lines(source: Path, out: Path) -> None:
    result = run(source, *RATE, "--out", out)

    assert result.exit_code == 0, result.output
    made = Calibration.load(out)
    assert made.threshold.certified
    said = told(result)
    assert made.statement in said
    for part in (
        "CERTIFIED",
        "reply models m-1 ",
        "graded by label 300",
        "model openai:m",
        "similarity content_f1",
        "asked for: 15 %",
        "error rate u up to accepted not accepted 1 % none",
        "each accepts less than the same rate declared alone",
        "P(wrong) by u, with a 90 % band",
        "from snne_guard import SNNEGuard",
        f"guard = SNNEGuard.from_calibration(model, '{out}')",
        "nothing is known of other tries on these labels",
    ):
        assert part in said, part
    assert result.stdout.count("◆") == 2


@pytest.mark.parametrize("width", [80, 40])
def test_it_fits_a_narrow_terminal(source: Path, out: Path, width: int) -> None:
    command = ["calibrate", str(source), *RATE, "--out", str(out)]
    shown = {"FORCE_COLOR": "1", "COLUMNS": str(width), "TERM": "xterm"}
    result = CliRunner().invoke(build_app(), command, env=shown)
    page = re.sub(r"\x1b\[[0-9;]*m", "", result.stdout).partition("written to")[0]
    assert page != result.stdout
    assert max(map(len, page.splitlines())) <= width
    rows_of_picture = page.partition("among accepted")[2].splitlines()[1:13]
    assert rows_of_picture[-1].split() == ["0", "%", "100", "%", "accepted"]
    assert "…" not in page  # no word is cut


def test_what_cannot_be_promised_is_written_and_has_a_status(
    source: Path, out: Path
) -> None:
    result = run(source, "--error-rate", "0.01", "--out", out)

    assert result.exit_code == 3
    made = Calibration.load(out)
    assert (made.threshold.status, made.threshold.value) == ("infeasible", -1.0)
    assert "NOT POSSIBLE" in result.stdout
    assert made.statement in told(result)
    assert "◆" not in result.stdout
    assert "a guard with it accepts nothing" in told(result)
    assert "from_calibration" not in result.stdout
    few = run(write(source.with_name("few.jsonl"), *rows(15)), *RATE, "-o", out)
    assert few.exit_code == 3
    assert "TOO FEW LABELS" in few.stdout


def test_tries_on_the_same_labels_are_told(source: Path, out: Path) -> None:
    run(source, *RATE, "--out", out)
    again = told(run(source, *RATE, "--out", out))
    assert "other tries" not in again
    assert "were used" not in again
    second = run(source, "--error-rate", "0.2", "--out", out)
    assert "these labels were used 2 times, in different ways" in told(second)
    assert Calibration.load(out).tries == 2
    assert "used 3 times" in told(run(source, *RATE, "--out", out, "--n", "4"))
    write(source, *rows(301))
    more = run(source, *RATE, "--out", out)
    assert "this one replaces was made of other labels: to grade more" in told(more)
    assert Calibration.load(out).tries == 1


def test_labels_by_hand_are_used_and_skipped_ones_told(
    tmp_path: Path, out: Path
) -> None:
    source = write(tmp_path / "r.jsonl", *rows(60, label=None))
    keys = "\n".join("rw" + "r" * 10 + "ss" + "wrr" * 10) + "\n"
    CliRunner().invoke(build_app(), ["label", str(source)], input=keys)
    result = run(source, "--error-rate", "0.45", "--out", out)
    assert "graded by hand 42" in told(result)
    assert "left out 18 of 60 without a grade, 2 of them skipped by hand" in told(
        result
    )
    assert "beware: 2 answers were skipped by hand" in told(result)
    other = run(source, *RATE, "--out", out, "--labels", tmp_path / "none.jsonl")
    assert other.exit_code == 2
    assert "none.jsonl: No such file or directory" in told(other)


def test_labels_of_the_hardest_are_refused(tmp_path: Path, out: Path) -> None:
    source = write(tmp_path / "r.jsonl", *rows(30, label=None))
    command = ["label", str(source), "--hardest-first"]
    CliRunner().invoke(build_app(), command, input="r\nw\n" * 15)
    result = run(source, *RATE, "--out", out)
    assert result.exit_code == 2
    assert "30 labels were given with the most uncertain answers first" in told(result)
    assert not out.exists()


@pytest.mark.parametrize("order", [[], ["--hardest-first"]])
def test_labels_in_a_copy_of_the_recording_say_how_they_were_picked(
    tmp_path: Path, out: Path, order: list[str]
) -> None:
    source = write(tmp_path / "r.jsonl", *rows(60, label=None))
    copy = tmp_path / "copy.jsonl"
    command = ["label", str(source), "--output", str(copy), *order]
    CliRunner().invoke(build_app(), command, input="r\nr\nw\n" * 15)
    result = run(copy, "--error-rate", "0.45", "--out", out)
    if order:
        assert result.exit_code == 2
        assert "45 labels were given with the most uncertain answers" in told(result)
    else:
        assert "graded by label 45" in told(result)
        assert "nobody says how" not in told(result)


def test_a_grader_and_a_pilot(tmp_path: Path, out: Path) -> None:
    source = write(tmp_path / "r.jsonl", *rows(300, label=None))
    pilot = write(tmp_path / "p.jsonl", *rows(100, seed=8, label=None))
    options = ["--grader", "squad_em", "--pilot", str(pilot)]
    result = run(source, *RATE, "--out", out, *options)
    assert result.exit_code == 0, result.output
    assert "graded by squad_em 300 pilot 100 answers" in told(result)
    assert "beware: grades of a program (squad_em 300)" in told(result)


def test_two_thresholds_and_the_version_of_the_prompt(source: Path, out: Path) -> None:
    options = ["--false-refusal", "0.05", "--prompt-version", "v3", "--model", "k"]
    other = run(source, *RATE, "--out", out, *options)
    assert other.exit_code == 2
    assert "the recordings say model 'openai:m', and not 'k'" in told(other)
    write(source, *rows(300, settings={"temperature": 1.0}))
    result = run(source, *RATE, "--out", out, *options)
    assert result.exit_code == 0, result.output
    made = Calibration.load(out)
    assert made.refuse is not None
    assert f"Refused above u = {made.refuse.value:.4g}." in told(result)
    assert "prompt_version='v3')" in told(result)
    assert made.settings["model"] == "k"


def test_a_plan_of_rounds(tmp_path: Path, out: Path) -> None:
    source = write(tmp_path / "r.jsonl", *rows(600, seed=5))
    report = tmp_path / "a.html"
    options = ["--rounds", "2,3,5", "--report", str(report)]
    result = run(source, *RATE, "--out", out, *options)
    assert result.exit_code == 0, result.output
    made = Calibration.load(out)
    assert made.cascade is not None
    assert made.statement in told(result)
    assert "plan learnt from 240 of them, tested on 360;" in told(result)
    assert "of 5 members on average" in report.read_text("utf-8")
    wrong = run(source, *RATE, "--out", out, "--rounds", "2;5")
    assert wrong.exit_code == 2
    assert "--rounds must be whole numbers such as 5,8,10; got '2;5'" in told(wrong)


def test_a_combination(source: Path, out: Path) -> None:
    result = run(source, *RATE, "--out", out, "--method", "calibrated")
    assert result.exit_code == 0, result.output
    made = told(result)
    assert re.search(
        r"graded 150 answers, \d+ of them wrong, besides 150 to learn", made
    )
    assert Calibration.load(out).combination is not None


def test_a_share_without_labels_and_without_sets(tmp_path: Path, out: Path) -> None:
    odd = rows(2, seed=7, samples=["a", "a", "", "a"], label=None)
    source = write(tmp_path / "r.jsonl", *rows(40, label=None), *odd)
    result = run(
        source, "--coverage", "0.5", "--out", out, "--report", tmp_path / "a.html"
    )
    assert result.exit_code == 0, result.output
    assert "scored 42 answers; no labels are needed" in told(result)
    assert "never accepted 2 (empty_samples 2)" in told(result)
    assert "asked for" not in result.stdout
    assert "other tries" not in told(result)
    page = (tmp_path / "a.html").read_text("utf-8")
    assert "<svg" not in page.partition("<main>")[2]


class Texts(HTMLParser):
    """The texts of a page, and the tags that it has."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        del attrs
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_the_page(source: Path, out: Path) -> None:
    report = source.with_name("a.html")
    options = ["--false-refusal", "0.05", "--report", str(report)]
    write(source, *rows(300, settings={"model": "<b>m</b>"}))
    assert run(source, *RATE, "--out", out, *options).exit_code == 0
    page = Texts()
    page.feed(report.read_text("utf-8"))
    texts = " ".join(" ".join(page.texts).split())
    made = Calibration.load(out)
    assert made.refuse is not None
    for part in (
        made.statement,
        made.refuse.statement,
        "Errors among accepted answers",
        "The reading in per cent",
        "What other error rates would cost",
        "nothing is known of other tries",
        "<b>m</b>",
        "Status: certified",
    ):
        assert part in texts, part
    assert page.tags.isdisjoint({"script", "b "})
    assert "name1" not in texts  # no answer, no question
    # Where nothing is accepted there is no point to mark.
    assert (
        run(source, "--error-rate", "0.01", "--out", out, *options[2:]).exit_code == 3
    )
    assert "Status: infeasible" in " ".join(report.read_text("utf-8").split()).replace(
        "<b>", ""
    )


def test_another_file_is_not_written_over(source: Path, out: Path) -> None:
    out.write_text('{"kind": "mine"}')
    result = run(source, *RATE, "--out", out)
    assert result.exit_code == 2
    assert "is there and holds no calibration that could be replaced" in told(result)
    assert json.loads(out.read_text()) == {"kind": "mine"}
    before = source.read_bytes()
    for name in ("--out", "--report"):
        options = {"--out": out.with_name("new.json"), name: source}
        given = [str(part) for pair in options.items() for part in pair]
        result = run(source, *RATE, *given)
        assert result.exit_code == 2
        assert "is a file that is read" in told(result)
    assert source.read_bytes() == before


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "expected one of error_rate, joint_error, false_refusal and coverage"),
        (["--error-rate", "1"], "error_rate must be above 0 and below 1; got 1.0"),
        ([*RATE, "--delta", "0"], "delta must be above 0 and below 1; got 0.0"),
        ([*RATE, "--method", "nothing"], "nothing"),
        ([*RATE, "--method", "ne"], "has no bounds"),
        ([*RATE, "--n", "9"], "at least 8 samples of each question; 300 have fewer"),
        ([*RATE, "--tau", "0"], "tau must be a number above 0"),
    ],
)
def test_wrong_usage(tmp_path: Path, out: Path, options: list[str], said: str) -> None:
    source = write(tmp_path / "r.jsonl", *rows(300))
    result = run(source, "--out", out, *options)
    assert result.exit_code == 2
    assert re.search(said, told(result)), told(result)
    assert not out.exists()


def test_a_bad_line_ends_it(source: Path, out: Path) -> None:
    write(source, *rows(20), b"nonsense")
    result = run(source, *RATE, "--out", out)
    assert result.exit_code == 2
    assert "r.jsonl: line 21: expected a JSON object" in told(result)
    assert run(source.with_name("none.jsonl"), *RATE, "--out", out).exit_code == 2
