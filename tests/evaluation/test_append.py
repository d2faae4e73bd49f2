"""A file of whole lines: torn ends, a full disk, two writers, large files."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from snne_guard.errors import ConfigurationError
from snne_guard.evaluation.recording.append import AppendFile
from tests.support.full_disk import full_after


def append(path: Path, *lines: bytes) -> None:
    with AppendFile(path) as file:
        for line in lines:
            file.append(line)


def mend(path: Path, *, whole: bool = False) -> int:
    with AppendFile(path) as file:
        return file.mend(lambda _: whole, backup=path.with_suffix(".torn"))


def test_lines_are_appended_and_read_back(tmp_path: Path) -> None:
    path = tmp_path / "a"
    append(path, b"one\n", b"two\n")
    with AppendFile(path) as file:
        assert file.append(b"three\n") == 8
        assert list(file.lines()) == [b"one\n", b"two\n", b"three\n"]
        assert file.line_at(4) == b"two\n"
        assert file.size == file.whole() == 14


def test_the_end_of_the_last_whole_line_is_found_in_a_long_file(tmp_path: Path) -> None:
    path = tmp_path / "a"
    for content, end in (
        (b"", 0),
        (b"x" * 200_000, 0),
        (b"x\n" + b"y" * 200_000, 2),
        (b"x" * 65_536 + b"\n", 65_537),
        (b"\n" + b"x" * 65_535, 1),
    ):
        path.write_bytes(content)
        with AppendFile(path) as file:
            assert file.whole() == end
            assert b"".join(file.lines()) == content[:end]


def test_a_torn_end_is_cut_off_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b'{"a": 1}\n{"b": ')
    assert mend(path) == 6
    assert mend(path) == 0
    assert path.read_bytes() == b'{"a": 1}\n'
    path.write_bytes(b'{"c"')
    assert mend(path) == 4
    assert path.read_bytes() == b""
    assert (tmp_path / "a.torn").read_bytes() == b'{"b": \n{"c"\n'


def test_a_line_that_lacks_its_end_alone_gets_it(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b'{"a": 1}\n{"b": 2}')
    assert mend(path, whole=True) == 0
    assert path.read_bytes() == b'{"a": 1}\n{"b": 2}\n'
    assert not (tmp_path / "a.torn").exists()


def test_zeros_after_a_power_cut_are_a_torn_end(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b'{"a": 1}\n' + b"\0" * 100)
    assert mend(path) == 100
    assert path.read_bytes() == b'{"a": 1}\n'


def test_what_cannot_be_ours_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"a letter\nto a friend")
    with pytest.raises(ConfigurationError, match="ends with another text"):
        mend(path)
    assert path.read_bytes() == b"a letter\nto a friend"


def test_only_one_at_a_time_writes_a_file(tmp_path: Path) -> None:
    path = tmp_path / "a"
    first = AppendFile(path)
    with pytest.raises(ConfigurationError, match="another run is writing"):
        AppendFile(path)
    first.close()
    append(path, b"free again\n")


def test_another_process_is_kept_out_until_it_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "a"
    program = (
        "import sys; from pathlib import Path\n"
        "from snne_guard.evaluation.recording.append import AppendFile\n"
        "file = AppendFile(Path(sys.argv[1])); file.append(b'x\\n')\n"
        "print('has it', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(  # noqa: S603 - our own code
        [sys.executable, "-c", program, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"has it\n"
        with pytest.raises(ConfigurationError, match="another run is writing"):
            AppendFile(path)
        holder.kill()
        holder.wait()
        append(path, b"y\n")
    assert path.read_bytes() == b"x\ny\n"


@pytest.mark.parametrize("kind", ["folder", "device"])
def test_only_a_regular_file_will_do(tmp_path: Path, kind: str) -> None:
    path = tmp_path if kind == "folder" else Path("/dev/null")
    with pytest.raises(ConfigurationError, match="to be a regular file"):
        AppendFile(path)


def test_a_full_disk_leaves_whole_lines(tmp_path: Path) -> None:
    """The kernel takes a part of the line and then refuses, as on a full disk."""
    path = tmp_path / "a"
    with AppendFile(path) as file:
        file.append(b"x" * 99 + b"\n")
        told = f"File too large: '{path}'"
        with full_after(150), pytest.raises(OSError, match=told):
            file.append(b"y" * 99 + b"\n")
        file.append(b"z\n")
    assert path.read_bytes() == b"x" * 99 + b"\nz\n"


def test_lines_reach_the_disk_now_and_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    seconds = [0.0]
    monkeypatch.setattr(os, "fsync", synced.append)
    monkeypatch.setattr(time, "monotonic", lambda: seconds[-1])
    with AppendFile(tmp_path / "a") as file:
        for now in (0.5, 0.9, 1.0, 1.5, 2.1):
            seconds.append(now)
            file.append(b"x\n")
        assert len(synced) == 2
    assert len(synced) == 3
