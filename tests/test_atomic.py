"""A file that cannot be written stays as it was, and is named by the error."""

from __future__ import annotations

from pathlib import Path

import pytest

from snne_guard._atomic import atomic_output
from tests.support.full_disk import full_after


@pytest.mark.parametrize("count", [200, 200_000])  # in the buffer, and beyond it
def test_a_full_disk_names_the_file_that_was_asked_for(
    tmp_path: Path, count: int
) -> None:
    path = tmp_path / "out.json"
    path.write_bytes(b"before")
    with (
        full_after(100),
        pytest.raises(OSError, match="File too large") as caught,
        atomic_output(path) as write,
    ):
        write(b"x" * count)
    assert caught.value.filename == str(path)
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_is_not_there_names_the_file_too(tmp_path: Path) -> None:
    path = tmp_path / "none" / "out.json"
    with pytest.raises(FileNotFoundError) as caught, atomic_output(path) as write:
        write(b"x")
    assert caught.value.filename == str(path)


def test_what_another_file_fails_with_is_not_blamed_on_it(tmp_path: Path) -> None:
    other = tmp_path / "other"
    with (
        pytest.raises(FileNotFoundError) as caught,
        atomic_output(tmp_path / "out.json"),
    ):
        other.read_bytes()
    assert caught.value.filename == str(other)
