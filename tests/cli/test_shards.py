"""Shards: each drawn by itself, whatever ends it, and joined into one recording."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.support import apart, record_command, run
from tests.support.openai_server import Server, always

N = 24


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with Server(always("Paris", delay=0.01)) as server:
        yield server.url


def part(folder: Path, number: int) -> Path:
    return folder / f"part-{number}-of-3.jsonl"


def command(folder: Path, url: str, output: Path, *more: str) -> list[str]:
    written = ("--output", output, "--samples", "2")
    return record_command(folder, url, *written, *more, n=N)


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_shards_are_joined_and_what_is_missing_is_asked(
    url: str, tmp_path: Path
) -> None:
    shards = (1, 3)
    for number in shards:
        shard = ("--shard", f"{number}/3")
        done = apart(*command(tmp_path, url, part(tmp_path, number), *shard))
        assert done.returncode == 0, done.stderr
    joined = tmp_path / "all.jsonl"
    joined.write_text("".join(part(tmp_path, number).read_text() for number in shards))
    there = len(read(joined))
    assert 0 < there < N
    done = apart(*command(tmp_path, url, joined))
    assert done.returncode == 0, done.stderr
    assert f"{N - there} recorded, {there} already there" in done.stderr
    assert {row["id"] for row in read(joined)} == {str(n) for n in range(N)}


@pytest.mark.parametrize("shard", ["0/3", "4/3", "a/b"])
def test_a_shard_that_cannot_be_is_refused(tmp_path: Path, shard: str) -> None:
    result = run(*record_command(tmp_path, "http://127.0.0.1:1", "--shard", shard))
    assert result.exit_code == 2
    assert "expected --shard K/N with K from 1 to N" in result.stderr
    assert not (tmp_path / "r.jsonl").exists()


_SMALL_DISK = """
import resource
from snne_guard.cli import main
resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))
main()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows limits no file's size")
def test_a_full_disk_ends_a_run_and_nothing_is_lost(tmp_path: Path, url: str) -> None:
    # A file that may not grow stands in for a disk that is full.
    output = tmp_path / "r.jsonl"
    full = apart(*command(tmp_path, url, output), program=_SMALL_DISK)
    assert full.returncode == 2, full.stderr
    assert "File too large" in full.stderr
    kept = read(output)
    assert kept
    again = apart(*command(tmp_path, url, output))
    assert again.returncode == 0, again.stderr
    assert read(output)[: len(kept)] == kept
