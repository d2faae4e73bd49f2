"""A run: what it draws, in which order, what fails, when it gives up."""

import asyncio
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snne_guard.evaluation import (
    BadLine,
    Drawn,
    Question,
    Recorder,
    RecordingStore,
    Tally,
    parse_questions,
)
from snne_guard.evaluation.recording.store import failed_path
from snne_guard.types import Sample
from tests.support.recording import (
    OVERLOADED,
    SETTINGS,
    TOO_LONG,
    Row,
    Scripted,
    drawn_for,
    lines_of,
    read,
    recorded,
    rows,
    run,
)

NAMES = tuple("abcdefghij")


@pytest.fixture(autouse=True, scope="module")
def _no_waiting_for_the_disk() -> Iterator[None]:
    # A kill loses nothing that was written, and a busy disk takes its time.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.fsync", int)
        yield


async def test_each_question_is_drawn_once(tmp_path: Path) -> None:
    output, draw = tmp_path / "out.jsonl", Scripted()
    tally = await run(output, rows(*NAMES), draw)

    assert sorted(recorded(output)) == list(NAMES)
    assert sorted(draw.asked) == [(name, 2, 0) for name in NAMES]
    assert (tally.recorded, tally.failed, tally.complete) == (10, 0, True)
    assert (tally.cost.calls, tally.cost.prompt_tokens) == (20, 100)
    assert not failed_path(output).exists()
    by_id = {line["id"]: line for line in read(output)}
    assert by_id["c"]["samples"] == ["c 0.0", "c 0.1"]


async def test_what_is_there_is_not_drawn_again(tmp_path: Path) -> None:
    output, draw = tmp_path / "out.jsonl", Scripted()
    await run(output, rows("a", "b", "c"))
    tally = await run(output, rows("c", "d", "a", "e"), draw)

    assert sorted(draw.names) == ["d", "e"]
    assert sorted(recorded(output)) == list("abcde")
    assert (tally.recorded, tally.recorded_before) == (2, 2)


@settings(max_examples=40)
@given(
    names=st.lists(st.sampled_from(NAMES), unique=True, max_size=6),
    concurrency=st.integers(1, 4),
    cuts=st.lists(st.floats(0, 1), max_size=3),
    failing=st.sets(st.sampled_from(NAMES), max_size=2),
)
def test_kills_lose_and_double_nothing(
    names: list[str],
    concurrency: int,
    cuts: list[float],
    failing: set[str],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    output = tmp_path_factory.mktemp("run") / "out.jsonl"
    failed = failed_path(output)

    def go_on(**options: Any) -> Tally:
        outcomes: dict[str, list[Any]] = {name: [TOO_LONG] for name in failing}
        draw = Scripted(outcomes={} if options else outcomes)
        return asyncio.run(
            run(output, rows(*names), draw, max_concurrency=concurrency, **options)
        )

    go_on()
    for cut in cuts:
        for path in (output, failed):
            if path.exists():
                content = path.read_bytes()
                path.write_bytes(content[: int(cut * len(content))])
        tally = go_on()
        assert tally.stopped is None
        assert set(recorded(output)) == set(names) - failing
        kept = read(failed) if failed.exists() else []
        assert sorted(line["id"] for line in kept) == sorted(failing & set(names))

    assert go_on(retry_failed=True).complete
    assert sorted(recorded(output)) == sorted(names)
    assert not failed.exists()


async def test_lines_stand_in_the_order_in_which_they_were_finished(
    tmp_path: Path,
) -> None:
    output = tmp_path / "out.jsonl"
    slow, begun = asyncio.Event(), list[str]()

    async def draw(question: Question, /, *, n_samples: int, tries: int) -> Drawn:
        begun.append(question.id)
        if question.id == "a":
            await slow.wait()
        if question.id == "d":
            slow.set()
        return drawn_for(question.id, n_samples=n_samples, tries=tries)

    with RecordingStore(output, settings=SETTINGS) as store:
        recorder = Recorder(store, draw, n_samples=2, max_concurrency=2)
        await recorder.run(rows(*"abcd"))
    assert begun == list("abcd")
    assert recorded(output)[:2] == ["b", "c"]


async def test_at_most_so_many_at_once_and_read_one_by_one(tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    taken, drawing, peak = 0, 0, 0

    def given_rows() -> Iterator[tuple[int, Question]]:
        nonlocal taken
        for row in rows(*NAMES):
            taken += 1
            yield row

    async def draw(question: Question, /, *, n_samples: int, tries: int) -> Drawn:
        nonlocal drawing, peak
        drawing += 1
        peak = max(peak, drawing)
        assert taken <= len(recorded(output)) + 4
        await asyncio.sleep(0.01)
        drawing -= 1
        return drawn_for(question.id, n_samples=n_samples, tries=tries)

    with RecordingStore(output, settings=SETTINGS) as store:
        recorder = Recorder(store, draw, n_samples=2, max_concurrency=3)
        tally = await recorder.run(given_rows())
    assert (tally.failed, peak) == (0, 3)


async def test_bad_lines_are_told_and_passed_over(tmp_path: Path) -> None:
    output, told = tmp_path / "out.jsonl", list[tuple[int, str]]()
    lines = lines_of(
        {"id": "a", "question": "?"},
        b"nonsense",
        {"id": "a", "question": "other"},
        {"id": "b", "question": "?"},
    )
    tally = await run(
        output,
        lines,
        on_bad_line=lambda number, message: told.append((number, message)),
    )
    assert sorted(recorded(output)) == ["a", "b"]
    assert (tally.bad_lines, tally.complete) == (2, False)
    assert [number for number, _ in told] == [2, 3]
    assert told[1][1] == 'the id "a" has come before in this file, on line 1'


async def test_strict_ends_at_the_first_bad_line(tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    bad = BadLine(message="bad")
    given_rows: list[Row] = [*rows("a"), (2, bad), *rows("b")]
    tally = await run(output, given_rows, strict=True, max_concurrency=1)
    assert recorded(output) == ["a"]
    assert (tally.stopped, tally.complete) == ("bad_line", False)


async def test_stop_finishes_what_is_being_drawn(tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"

    def stop(tally: Tally) -> None:
        if tally.recorded == 3:
            recorder.stop()

    with RecordingStore(output, settings=SETTINGS) as store:
        recorder = Recorder(
            store,
            Scripted(outcomes={"a": [OVERLOADED]}),
            n_samples=2,
            max_concurrency=2,
            on_progress=stop,
        )
        tally = await recorder.run(rows(*NAMES))
        recorder.stop()
    assert tally.stopped == "asked"
    assert 3 <= tally.recorded <= 4
    assert len(recorded(output)) == tally.recorded


async def test_cancelling_drops_what_is_being_drawn(tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    drawing, cancelled = asyncio.Event(), list[str]()

    async def draw(question: Question, /, *, n_samples: int, tries: int) -> Drawn:
        if question.id == "a":
            raise OVERLOADED
        if question.id == "b":
            return drawn_for("b", n_samples=n_samples, tries=tries)
        drawing.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(question.id)
            raise
        raise AssertionError

    with RecordingStore(output, settings=SETTINGS) as store:
        recorder = Recorder(store, draw, n_samples=2, max_concurrency=1)
        task = asyncio.create_task(recorder.run(rows("b", "a", "c", "d")))
        await drawing.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert cancelled == ["c"]
    assert recorded(output) == ["b"]
    # It failed with the provider, and nobody knows yet whether alone.
    assert not failed_path(output).exists()


async def test_a_file_that_takes_no_more_ends_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "out.jsonl"
    with RecordingStore(output, settings=SETTINGS) as store:
        record, written = store.record, list[str]()

        def full(question: Question, drawn: Drawn) -> None:
            if len(written) == 3:
                raise OSError(28, "No space left on device")
            record(question, drawn)
            written.append(question.id)

        monkeypatch.setattr(store, "record", full)
        recorder = Recorder(store, Scripted(), n_samples=2)
        with pytest.raises(OSError, match="No space left"):
            await recorder.run(rows(*NAMES))
    assert recorded(output) == written


async def test_reasons_are_counted(tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    cut = Drawn(
        answer=Sample(text="A"),
        samples=(Sample(text="s"),) * 2,
        reasons=("truncated_samples",),
    )
    tally = await run(output, rows(*"abc"), Scripted(outcomes={"b": [cut]}))
    assert tally.reasons == {"truncated_samples": 1}


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    def peak(count: int) -> int:
        def lines() -> Iterator[bytes]:
            for number in range(count):
                fields = {"id": str(number), "question": "?", "p": "x" * 50_000}
                yield from lines_of(fields).splitlines(keepends=True)

        output = tmp_path / f"{count}.jsonl"
        tracemalloc.start()
        try:
            for _ in range(2):  # drawing, and finding that all is there
                asyncio.run(run(output, parse_questions(lines())))
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(5)  # what is loaded and cached once
    small, large = peak(20), peak(200)
    # The file is 9 MB larger.
    assert large - small < 500_000
