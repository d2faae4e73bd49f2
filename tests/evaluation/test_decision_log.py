from __future__ import annotations

import json
import math
import os
import resource
import signal
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import openai
import pytest

from snne_guard import ConfigurationError, DecisionLog, guard_client
from snne_guard.decision import Calibration, Threshold
from snne_guard.evaluation import read_labelled, read_recordings
from snne_guard.evaluation.decision_log import is_log, logged_recordings, read_log
from snne_guard.types import Assessment, Reply
from tests.cli.support import run
from tests.support.openai_server import APART, CHAT, Server, split

HIDDEN = "a text that nobody may see"


def assessment(number: int = 0, **fields: Any) -> Assessment:
    usual: dict[str, Any] = {
        "id": f"id-{number}",
        "answer": Reply(text=f"Paris {HIDDEN}", token_logprobs=(-0.5,), model="m-1"),
        "samples": tuple(Reply(text=f"Rome {n}", finish_reason="stop") for n in "abcd"),
        "question": f"Capital of France? {HIDDEN}",
        "method": "snne",
        "uncertainty": (number % 10) / 10,
        "threshold": 0.4,
        "decision": "accept",
        "n_requested": 5,
        "n_used": 5,
    }
    return Assessment(**{**usual, **fields})


def lines(path: Path) -> list[dict[str, Any]]:
    """Read a file in which each line must be whole."""
    text = path.read_text("utf-8")
    assert not text or text.endswith("\n")
    return [json.loads(line) for line in text.splitlines()]


# -- Writing ---------------------------------------------------------------------------


def test_a_line_has_the_metadata_and_no_text(tmp_path: Path) -> None:
    log = DecisionLog(tmp_path / "d.jsonl", policy="strict", n=5)
    log.on_assessment(assessment(3))
    (row,) = lines(tmp_path / "d.jsonl")
    assert row.items() >= assessment(3).to_metadata().items()
    assert (row["policy"], row["n"], row["model"]) == ("strict", 5, "m-1")
    assert row["time"].endswith("+00:00")
    assert HIDDEN not in json.dumps(row)
    assert oct((tmp_path / "d.jsonl").stat().st_mode & 0o777) == "0o600"


def test_a_guard_in_the_process_writes_its_calls(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    with Server(split("Paris", *APART)) as server:
        inner = openai.OpenAI(base_url=server.url, api_key="sk-secret", max_retries=0)
        log = DecisionLog(path, texts=True, policy="mine")
        client = guard_client(inner, threshold=0.4, observers=[log])
        given: Any = client.chat.completions.create(**CHAT)
        server.script = split("Paris", "Paris", status=500)
        with pytest.raises(openai.InternalServerError):
            client.chat.completions.create(**CHAT)
    first, second = lines(path)
    assert first["id"] == given.snne_guard["id"]
    assert first["decision"] == "flag"
    assert first["samples"] == [*APART]
    assert (second["decision"], second["reasons"]) == (None, ["answer_failed"])
    assert "sk-secret" not in path.read_text()


@pytest.mark.parametrize(
    "odd",
    [
        {"score": math.inf},
        {"score": math.nan, "samples": (Reply(text="\ud800"),)},
        {"answer": Reply(text="a\u2028b\x00\n", token_logprobs=(-math.inf, 0.0))},
        {"answer": None, "samples": ()},
        {"question": None, "decision": None},
    ],
)
def test_odd_values_are_json_all_the_same(tmp_path: Path, odd: dict[str, Any]) -> None:
    log = DecisionLog(tmp_path / "d.jsonl", texts=True, odd={"x": {1, 2}})
    log.on_assessment(assessment(**odd))
    (row,) = (tmp_path / "d.jsonl").read_bytes().splitlines()
    assert json.loads(row, parse_constant=pytest.fail)["id"] == "id-0"
    assert not log.failures


def test_lines_of_threads_and_processes_are_whole(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    program = (
        "import sys; from snne_guard import DecisionLog; "
        "from snne_guard.types import Assessment; log = DecisionLog(sys.argv[1]); "
        "[log.write(Assessment(id=f'{sys.argv[2]}-{n}', answer=None), x='y' * 9_000)"
        " for n in range(200)]"
    )
    others = [
        subprocess.Popen([sys.executable, "-c", program, str(path), str(n)])  # noqa: S603 - ours
        for n in range(2)
    ]
    log = DecisionLog(path)
    threads = [
        threading.Thread(
            target=lambda: [log.write(assessment(n), x="y" * 9_000) for n in range(50)]
        )
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [other.wait(60) for other in others] == [0, 0]
    assert len(lines(path)) == 600


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_disk_is_counted_told_once_and_loses_no_call(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log = DecisionLog("/dev/full", texts=True)
    assert [log.write(assessment(n)) for n in range(3)] == [False] * 3
    assert log.failures == 3
    assert [record.getMessage() for record in caplog.records] == [
        "the decision log cannot be written, lines are lost: No space left on device"
    ]
    with Server(split("Paris", "Paris")) as server:
        inner = openai.OpenAI(base_url=server.url, api_key="k")
        client = guard_client(inner, observers=[log])
        assert client.chat.completions.create(**CHAT).choices


@pytest.mark.skipif(os.name == "nt", reason="limits of a process")
def test_what_a_full_disk_took_of_a_line_is_taken_back(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    log = DecisionLog(path)
    log.write(assessment(1))
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 100, old[1]))
        assert not log.write(assessment(2))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
        signal.signal(signal.SIGXFSZ, before)
    assert log.write(assessment(3))
    assert [row["id"] for row in lines(path)] == ["id-1", "id-3"]
    assert log.failures == 1


@pytest.mark.parametrize("place", ["none/d.jsonl", ".", "file/d.jsonl", "d\0.jsonl"])
def test_a_log_that_cannot_be_written_says_what_to_do(
    tmp_path: Path, place: str
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigurationError, match="cannot write the decision log"):
        DecisionLog(f"{tmp_path}/{place}")


def test_it_is_opened_anew_where_it_was_moved_away(tmp_path: Path) -> None:
    path, moved = tmp_path / "d.jsonl", tmp_path / "d.1"
    log = DecisionLog(path)
    log.write(assessment(1))
    path.rename(moved)
    log.write(assessment(2))
    log.reopen()
    log.write(assessment(3))
    assert [row["id"] for row in lines(moved)] == ["id-1", "id-2"]
    assert [row["id"] for row in lines(path)] == ["id-3"]
    path.unlink()
    path.mkdir()
    log.reopen()  # it cannot be: the old file goes on
    assert log.failures == 1
    assert log.write(assessment(4))


# -- Reading ---------------------------------------------------------------------------


def test_half_a_line_and_lines_of_other_logs_are_skipped(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    DecisionLog(path, policy="a").write(assessment(1))
    with path.open("a") as file:
        file.write('{"level": "info", "message": "request"}\nINFO: started\n{"time": "')
    DecisionLog(path, policy="b").write(assessment(2))  # after the process was killed
    left_out = Counter[str]()
    assert [row["id"] for row in read_log(path, left_out=left_out)] == ["id-1", "id-2"]
    assert left_out == {"lines that are no calls": 3}
    assert [row["id"] for row in read_log(path, policy="b")] == ["id-2"]
    assert is_log(path)


def test_calls_with_texts_are_recordings(tmp_path: Path) -> None:
    path, output = tmp_path / "d.jsonl", tmp_path / "r.jsonl"
    log = DecisionLog(path, texts=True, policy="a", settings={"model": "openai:m"})
    for n in range(3):
        log.write(assessment(n))
    log.write(assessment(3, answer=None))
    log.write(assessment(4, samples=()))
    log.write(assessment(5), policy="b")
    DecisionLog(path, policy="a").write(assessment(6))
    found = run("record", path, "--from-log", "--output", output, "--policy", "a")
    assert found.exit_code == 0, found.output
    assert "3 calls recorded" in found.stdout
    for what in ("of another policy", "without an answer", "with samples missing"):
        assert f"1 calls {what} were left out" in found.stdout
    first, *_ = recorded = [*read_recordings(output)]
    assert [row.id for row in recorded] == ["id-0", "id-1", "id-2"]
    assert first.main_answer == f"Paris {HIDDEN}"
    assert first.settings == {"model": "openai:m"}
    again = run("record", path, "--from-log", "--output", output)
    assert "1 calls recorded" in again.stdout  # the other policy's
    assert "3 calls that are there already were left out" in again.stdout
    assert [row.id for row in logged_recordings(path)] == [
        row.id for row in read_recordings(output)
    ]


def test_a_log_is_labelled_and_recordings_take_the_labels(tmp_path: Path) -> None:
    path, output = tmp_path / "d.jsonl", tmp_path / "r.jsonl"
    log = DecisionLog(path, texts=True)
    for n in range(3):
        log.write(assessment(n, answer=Reply(text=f"answer {n}")))
    log.write(assessment(3, answer=None))
    found = run("label", path, keys="r\nw\nr\n")
    assert "right        2" in found.stdout
    assert "1 calls without an answer were left out." in found.stdout
    run("record", path, "--from-log", "--output", output)
    assert Counter(row.label for row in read_labelled(output)) == {1: 2, 0: 1}


def test_a_policy_needs_a_log(tmp_path: Path) -> None:
    found = run("record", tmp_path, "--policy", "a", "--output", tmp_path / "r")
    assert found.exit_code == 2
    assert "--policy has no effect without --from-log" in found.output


@pytest.fixture
def calibration(tmp_path: Path) -> Path:
    made = Calibration(
        settings={"model": "m-1", "n": 5, "method": "snne"},
        threshold=Threshold.fixed(0.4),
        reference=tuple(n / 300 for n in range(300)),
    )
    path = tmp_path / "guard.json"
    made.save(path)
    assert Calibration.load(path).checksum == json.loads(path.read_text())["checksum"]
    return path


@pytest.mark.parametrize(("power", "status"), [(1, 0), (4, 3)])
def test_drift_reads_the_calls_of_a_policy_under_its_calibration(
    tmp_path: Path, calibration: Path, power: int, status: int
) -> None:
    pytest.importorskip("scipy")
    path, checksum = tmp_path / "d.jsonl", Calibration.load(calibration).checksum
    log = DecisionLog(path, policy="a", calibration=checksum)
    for n in range(200):
        log.write(assessment(n, uncertainty=(n / 200) ** power))
    log.write(assessment(uncertainty=1.0, reasons=("uncalibrated",)))
    log.write(assessment(uncertainty=None))
    for other in (None, "sha256:other"):
        log.write(assessment(uncertainty=1.0), calibration=other)
    log.write(assessment(), policy="b")
    found = run("drift", calibration, path, "--policy", "a")
    assert found.exit_code == status, found.output
    assert "on 200 answers" in found.stdout.replace("\n", " ")
    assert "2 calls without a score that it covers were left out" in found.stdout
    assert "2 calls not under this calibration were left out" in found.stdout


def test_drift_without_a_call_to_read_says_what_is_there(
    tmp_path: Path, calibration: Path
) -> None:
    path = tmp_path / "d.jsonl"
    DecisionLog(path, policy="b").write(assessment())
    found = run("drift", calibration, path, "--policy", "a")
    assert found.exit_code == 2
    assert "got none: 1 calls of another policy" in found.output.replace("\n", " ")
