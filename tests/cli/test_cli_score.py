"""``snne-guard score``: outputs, summary, bad lines and exit statuses."""

import json
import os
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from snne_guard import score as score_answers
from snne_guard.cli import build_app

ROOT = Path(__file__).resolve().parents[2]
SHARED = Path(os.environ.get("SNNE_GUARD_SHARED") or ROOT / ".." / "shared")
ALIKE = {"id": "a", "question": "?", "main_answer": "Paris", "samples": ["Paris"] * 4}
MIXED = {"id": "m", "question": None, "main_answer": "Paris", "samples": ["Paris", "x"]}
APART = {"id": "d", "question": "?", "main_answer": "one", "samples": ["two", "three"]}


def run(*arguments: str | Path, stdin: bytes | None = None) -> Result:
    return CliRunner().invoke(build_app(), ["score", *map(str, arguments)], input=stdin)


@pytest.fixture
def recordings(tmp_path: Path) -> Path:
    return write(tmp_path / "in.jsonl", ALIKE, MIXED, APART)


def write(path: Path, *rows: dict[str, Any] | bytes) -> Path:
    lines = [
        row if isinstance(row, bytes) else json.dumps(row).encode() for row in rows
    ]
    path.write_bytes(b"\n".join(lines) + b"\n")
    return path


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_the_summary(recordings: Path) -> None:
    result = run(recordings)

    u = score_answers(["Paris", "Paris", "x"]).uncertainty
    assert u is not None
    assert result.exit_code == 0
    assert result.stderr == ""
    assert result.stdout.splitlines() == [
        "rows         3",
        "scored       3",
        "unscored     0",
        "skipped      0",
        f"mean u       {(0 + u + 1) / 3:.4f}",
        f"median u     {u:.4f}",
        # Straight lines between 0, u and 1 at 0 %, 50 % and 100 %.
        "quantiles    "
        + "  ".join(
            [
                f"5% {0.1 * u:.4f}",
                f"25% {0.5 * u:.4f}",
                f"50% {u:.4f}",
                f"75% {0.5 * u + 0.5:.4f}",
                f"95% {0.1 * u + 0.9:.4f}",
            ]
        ),
        "u = 0        33.3%",
        "methods      snne 3",
    ]


def test_the_output_has_each_line_with_its_u_added(
    recordings: Path, tmp_path: Path
) -> None:
    output = tmp_path / "out.jsonl"

    result = run(recordings, "--output", output)

    assert result.exit_code == 0
    rows = read(output)
    assert [row["id"] for row in rows] == ["a", "m", "d"]
    expected = score_answers(["Paris", "Paris", "x"])
    added = rows[1].pop("snne_guard")
    assert rows[1] == MIXED
    assert added.pop("version")
    assert added == {
        "method": "snne",
        "similarity": "rouge_l",
        "tau": 1.0,
        "score": expected.value,
        "uncertainty": expected.uncertainty,
        "n": 3,
        "threshold": None,
        "decision": None,
        "reasons": [],
    }
    assert [row["snne_guard"]["uncertainty"] for row in (rows[0], rows[2])] == [
        0.0,
        1.0,
    ]
    assert list(tmp_path.glob(".*")) == []


def test_every_other_byte_of_a_line_stays(tmp_path: Path) -> None:
    line = (
        b'{ "id":"a" ,"question":"\\u00e9","main_answer":"x","samples":["x"],"p":1.10'
    )
    source = write(tmp_path / "in.jsonl", b"\xef\xbb\xbf" + line + b" }  \r")
    output = tmp_path / "out.jsonl"

    assert run(source, "-o", output).exit_code == 0

    written = output.read_bytes()
    assert written.startswith(line + b', "snne_guard": {"method"')
    assert written.endswith(b"}}\n")
    assert read(output)[0]["p"] == 1.1


def test_scoring_an_output_again_replaces_the_numbers(
    recordings: Path, tmp_path: Path
) -> None:
    first, second = tmp_path / "1.jsonl", tmp_path / "2.jsonl"
    run(recordings, "-o", first)

    run(first, "-o", second, "--tau", "0.5")

    assert second.read_bytes().count(b'"snne_guard"') == 3
    rows = read(second)
    assert [row["snne_guard"]["tau"] for row in rows] == [0.5] * 3
    assert {key: rows[0][key] for key in ALIKE} == ALIKE


def test_log_probabilities_bring_wsnne(tmp_path: Path) -> None:
    known = {"main_logprobs": [-0.1], "token_logprobs": [[-0.2, -0.3], [-2.0]]}
    source = write(tmp_path / "in.jsonl", {**MIXED, **known})
    output = tmp_path / "out.jsonl"

    result = run(source, "-o", output)

    [row] = read(output)
    expected = score_answers(
        ["Paris", "Paris", "x"], token_logprobs=[[-0.1], [-0.2, -0.3], [-2.0]]
    )
    assert row["snne_guard"]["method"] == "wsnne"
    assert row["snne_guard"]["score"] == expected.value
    assert "methods      wsnne 1" in result.stdout


def test_two_methods_in_one_file_are_pointed_out(tmp_path: Path) -> None:
    known = {"main_logprobs": [-0.1], "token_logprobs": [[-0.2], [-2.0]]}
    partly = {"id": "p", "main_logprobs": [-0.1]}
    source = write(tmp_path / "in.jsonl", {**MIXED, **known}, {**MIXED, **partly})

    result = run(source)

    assert result.exit_code == 0
    assert "u of wsnne and snne is not comparable; use --method" in result.stderr
    assert "reasons      logprobs_missing 1" in result.stdout
    assert "not comparable" not in run(source, "--method", "snne").stderr


def test_without_the_answer_the_samples_alone_are_scored(tmp_path: Path) -> None:
    source = write(tmp_path / "in.jsonl", {**ALIKE, "main_answer": "Lyon"})
    output = tmp_path / "out.jsonl"

    run(source, "--without-answer", "-o", output)

    [row] = read(output)
    assert (row["snne_guard"]["n"], row["snne_guard"]["uncertainty"]) == (4, 0.0)


def test_the_similarity_and_tau_are_used(recordings: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"

    run(recordings, "--similarity", "rouge_l_paper", "--tau", "0.1", "-o", output)

    added = read(output)[1]["snne_guard"]
    assert (added["similarity"], added["tau"]) == ("rouge_l_paper", 0.1)
    assert added["score"] == score_answers(["Paris", "Paris", "x"], tau=0.1).value


def test_a_threshold_decides(recordings: Path, tmp_path: Path) -> None:
    lonely = {**ALIKE, "id": "lonely", "samples": []}
    with recordings.open("ab") as file:
        file.write(json.dumps(lonely).encode())
    output = tmp_path / "out.jsonl"

    result = run(recordings, "--threshold", "0.0", "-o", output)

    added = [row["snne_guard"] for row in read(output)]
    assert [row["decision"] for row in added] == ["accept", "flag", "flag", "flag"]
    assert {row["threshold"] for row in added} == {0.0}
    assert "decisions    flag 3, accept 1" in result.stdout


def test_what_cannot_be_scored_is_null_and_counted(tmp_path: Path) -> None:
    empty = {**ALIKE, "id": "e", "main_answer": " "}
    alone = {**ALIKE, "id": "o", "samples": []}
    source = write(tmp_path / "in.jsonl", empty, alone)
    output = tmp_path / "out.jsonl"

    result = run(source, "-o", output)

    assert result.exit_code == 0
    added = [row["snne_guard"] for row in read(output)]
    assert [row["uncertainty"] for row in added] == [None, None]
    assert [row["score"] for row in added] == [None, -1.0]
    assert [row["reasons"] for row in added] == [["answer_empty"], ["too_few_samples"]]
    assert result.stdout.splitlines() == [
        "rows         2",
        "scored       0",
        "unscored     2",
        "skipped      0",
        "reasons      answer_empty 1, too_few_samples 1",
    ]


def test_bad_lines_are_named_and_skipped(tmp_path: Path) -> None:
    source = write(
        tmp_path / "in.jsonl", ALIKE, b"nonsense", b"", {"id": "b"}, ALIKE, APART
    )
    output = tmp_path / "out.jsonl"

    result = run(source, "-o", output)

    assert result.exit_code == 1
    assert result.stderr.splitlines() == [
        "snne-guard: line 2: expected a JSON object, Expecting value at column 1",
        'snne-guard: line 4: expected a field "question"',
        'snne-guard: line 5: the id "a" has come before in this file, on line 1',
    ]
    assert [row["id"] for row in read(output)] == ["a", "d"]
    assert result.stdout.splitlines()[:4] == [
        "rows         5",
        "scored       2",
        "unscored     0",
        "skipped      3",
    ]


def test_a_recording_that_a_method_cannot_score_is_a_bad_line(tmp_path: Path) -> None:
    known = {"main_logprobs": [-0.1], "token_logprobs": [[-0.2], [-2.0]]}
    source = write(tmp_path / "in.jsonl", {**MIXED, **known}, ALIKE)

    result = run(source, "--method", "wsnne")

    assert result.exit_code == 1
    assert "line 2: expected mean_logprobs for method 'wsnne'" in result.stderr
    assert "scored       1" in result.stdout


def test_no_samples_and_no_answer_is_a_bad_line(tmp_path: Path) -> None:
    source = write(tmp_path / "in.jsonl", {**ALIKE, "samples": []})

    result = run(source, "--without-answer")

    assert result.exit_code == 1
    assert "line 1: expected at least one answer, got none" in result.stderr


def test_strict_stops_at_the_first_bad_line_and_leaves_nothing(tmp_path: Path) -> None:
    source = write(tmp_path / "in.jsonl", ALIKE, b"x", b"y")
    folder = tmp_path / "out"
    folder.mkdir()

    result = run(source, "--strict", "-o", folder / "out.jsonl")

    assert result.exit_code == 1
    assert result.stderr.count("line 2") == 1
    assert "line 3" not in result.stderr
    assert result.stdout == ""
    assert list(folder.iterdir()) == []


def test_strict_leaves_an_earlier_output_as_it_was(tmp_path: Path) -> None:
    source = write(tmp_path / "in.jsonl", ALIKE, b"x")
    output = tmp_path / "out.jsonl"
    output.write_text("before")

    run(source, "--strict", "-o", output)

    assert output.read_text() == "before"


def test_an_output_replaces_an_earlier_one_and_keeps_its_mode(
    recordings: Path, tmp_path: Path
) -> None:
    output = tmp_path / "out.jsonl"
    output.write_text("before")
    output.chmod(0o640)

    assert run(recordings, "-o", output).exit_code == 0

    assert len(read(output)) == 3
    assert output.stat().st_mode & 0o777 == 0o640


def test_an_output_through_a_link_keeps_the_link(
    recordings: Path, tmp_path: Path
) -> None:
    target, link = tmp_path / "target.jsonl", tmp_path / "link.jsonl"
    link.symlink_to(target)

    assert run(recordings, "-o", link).exit_code == 0

    assert link.is_symlink()
    assert len(read(target)) == 3


@pytest.mark.parametrize("kind", ["same", "symlink", "hardlink"])
def test_the_input_is_never_overwritten(
    recordings: Path, tmp_path: Path, kind: str
) -> None:
    before = recordings.read_bytes()
    output = recordings if kind == "same" else tmp_path / "other.jsonl"
    if kind == "symlink":
        output.symlink_to(recordings)
    if kind == "hardlink":
        output.hardlink_to(recordings)

    result = run(recordings, "-o", output)

    assert result.exit_code == 2
    assert "is the input itself" in result.stderr
    assert recordings.read_bytes() == before


def test_a_device_is_never_replaced(recordings: Path) -> None:
    result = run(recordings, "-o", "/dev/null")

    assert result.exit_code == 2
    assert "expected --output to be a regular file" in result.stderr
    assert Path("/dev/null").is_char_device()


def test_a_dash_is_standard_input(recordings: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    output.write_text("before")

    result = run("-", "-o", output, stdin=recordings.read_bytes())

    assert result.exit_code == 0
    assert "scored       3" in result.stdout
    assert len(read(output)) == 3


def test_an_empty_file_is_no_error(tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.touch()

    result = run(source)

    assert result.exit_code == 0
    assert result.stdout.splitlines()[0] == "rows         0"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.jsonl"], "none.jsonl: No such file or directory"),
        (["."], ".: Is a directory"),
        (["in.jsonl", "-o", "no/such/folder.jsonl"], "No such file or directory"),
        (["in.jsonl", "--method", "best"], "expected method 'auto'"),
        (["in.jsonl", "--similarity", "cosine"], "expected similarity"),
        (["in.jsonl", "--tau", "0"], "finite number above 0"),
        (["in.jsonl", "--tau", "nan"], "finite number above 0"),
        (["in.jsonl", "--threshold", "1.5"], "threshold"),
        (["in.jsonl", "--threshold", "nan"], "threshold"),
    ],
)
def test_where_nothing_can_be_done_the_status_is_2(
    recordings: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(recordings.parent)

    result = run(*arguments)

    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stdout == ""


def test_a_bar_shows_only_where_someone_is_looking(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from snne_guard.cli import _console

    assert _console.byte_progress().disable
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert not _console.byte_progress().disable


def test_half_a_surrogate_pair_is_scored(tmp_path: Path) -> None:
    source = write(
        tmp_path / "in.jsonl", {**ALIKE, "id": "\ud800", "samples": ["\udfff"]}
    )
    output = tmp_path / "out.jsonl"

    assert run(source, "-o", output).exit_code == 0

    assert read(output)[0]["snne_guard"]["uncertainty"] == pytest.approx(1.0)


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    def peak(rows: int) -> int:
        source, padding = tmp_path / f"{rows}.jsonl", "x" * 50_000
        write(source, *({**MIXED, "id": str(i), "p": padding} for i in range(rows)))
        tracemalloc.start()
        try:
            assert run(source, "-o", tmp_path / "out.jsonl").exit_code == 0
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(5)  # what is loaded and cached once
    small, large = peak(20), peak(200)

    # The file is 9 MB larger.
    assert large - small < 500_000


@pytest.mark.skipif(
    not (SHARED / "data").is_dir(), reason="the recorded generations are not here"
)
def test_recorded_generations_give_the_known_mean() -> None:
    """Samples alone, the paper's tokens: u .52 in the table of the decisions."""
    source = SHARED / "data" / "generations_sac3_hotpot.jsonl"

    result = run(source, "--without-answer", "--similarity", "rouge_l_paper")

    mean = float(result.stdout.split("mean u")[1].split()[0])
    assert mean == pytest.approx(0.518, abs=0.04)


def test_scoring_loads_no_langchain(recordings: Path) -> None:
    code = (
        "import sys; from snne_guard.cli import main\n"
        f"sys.argv = ['snne-guard', 'score', {str(recordings)!r}]\n"
        "try:\n    main()\nfinally:\n"
        "    heavy = ('langchain', 'torch')\n"
        "    print(sorted(m for m in sys.modules if m.startswith(heavy)))"
    )

    done = subprocess.run(  # noqa: S603 - our own code
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[]"
