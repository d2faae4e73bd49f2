"""``snne-guard score``: the summary, the lines with their u, what they cost."""

import json
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest

from snne_guard import score as score_answers
from tests.cli.lines import read, write
from tests.cli.score_command import ALIKE, MIXED, run
from tests.support.shared_folder import SHARED


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
        "similarity": "content_f1",
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
    expected = score_answers(
        ["Paris", "Paris", "x"], similarity="rouge_l_paper", tau=0.1
    )
    assert added["score"] == expected.value


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
