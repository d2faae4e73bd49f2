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
from snne_guard.evaluation.store import failed_path
from snne_guard.types import Cost, ResponseSet, Sample
from tests.support.recording import (
    SETTINGS,
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


class HttpError(Exception):
    """What a provider's client raises."""

    def __init__(self, status: int) -> None:
        super().__init__(f"status {status}")
        self.status_code = status


TOO_LONG, OVERLOADED, NO_SERVER = HttpError(400), HttpError(503), ConnectionError("x")


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


async def test_a_failure_is_kept_aside_and_passed_over(tmp_path: Path) -> None:
    output, told = tmp_path / "out.jsonl", list[tuple[str, str]]()
    draw = Scripted(outcomes={"b": [TOO_LONG]})
    tally = await run(
        output,
        rows("a", "b", "c"),
        draw,
        on_failure=lambda question, why: told.append((question.id, why)),
    )
    assert sorted(recorded(output)) == ["a", "c"]
    assert (tally.recorded, tally.failed, tally.complete) == (2, 1, False)
    assert told == [("b", "HttpError: status 400")]

    draw = Scripted()
    tally = await run(output, rows("a", "b", "c"), draw)
    assert draw.asked == []
    assert (tally.failed_before, tally.complete) == (1, False)

    tally = await run(output, rows("a", "b", "c"), draw, retry_failed=True)
    assert draw.asked == [("b", 2, 1)]
    assert tally.complete
    assert sorted(recorded(output)) == ["a", "b", "c"]
    assert not failed_path(output).exists()


async def test_samples_that_came_are_kept_and_the_others_drawn(tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    some = Drawn(
        answer=Sample(text="A", finish_reason="stop", model="m-1"),
        samples=(Sample(text="first", token_logprobs=(-1.0,)),),
        reasons=("samples_failed", "truncated_samples"),
        error=TOO_LONG,
    )
    draw = Scripted(outcomes={"a": [some, Drawn(error=TOO_LONG), None]})
    for tries in range(3):
        await run(output, rows("a"), draw, n_samples=3, retry_failed=tries > 0)

    assert draw.asked == [("a", 3, 0), ("a", 2, 1), ("a", 2, 2)]
    [line] = read(output)
    assert line["main_answer"] == "A"
    assert line["samples"] == ["first", "a 2.0", "a 2.1"]
    assert line["token_logprobs"] == [[-1.0], None, None]
    assert line["drawn"]["reasons"] == ["truncated_samples"]
    assert line["drawn"]["finish_reasons"] == ["stop", None, None, None]
    assert line["drawn"]["models"] == ["m-1"]
    assert "failed" not in line


async def test_more_samples_than_were_asked_for_are_left_out(tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    draw = Scripted(outcomes={"a": [drawn_for("a", n_samples=5)]})
    assert (await run(output, rows("a"), draw)).complete
    [line] = read(output)
    assert line["samples"] == ["a 0.0", "a 0.1"]
    assert len(line["drawn"]["finish_reasons"]) == 3


def test_what_a_sampler_drew_is_what_was_drawn() -> None:
    whole = ResponseSet(
        answer=Sample(text="A"),
        samples=(Sample(text="B"),),
        reasons=("samples_failed",),
        errors=(TOO_LONG, OVERLOADED),
        cost=Cost(calls=2),
    )
    drawn = Drawn.from_responses(whole)
    assert (drawn.answer, drawn.samples) == (whole.answer, whole.samples)
    assert (drawn.reasons, drawn.cost) == (whole.reasons, whole.cost)
    assert drawn.error is OVERLOADED
    assert Drawn.from_responses(ResponseSet(answer=Sample(text="A"))).error is None


async def test_samples_without_an_answer_are_kept_too(tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    draw = Scripted(outcomes={"a": [Drawn(samples=(Sample(text="s"),) * 2), None]})
    await run(output, rows("a"), draw)
    tally = await run(output, rows("a"), draw, retry_failed=True)
    assert draw.asked == [("a", 2, 0), ("a", 0, 1)]
    assert tally.complete
    [line] = read(output)
    assert (line["main_answer"], line["samples"]) == ("a answers", ["s", "s"])


@pytest.mark.parametrize("error", [OVERLOADED, NO_SERVER, HttpError(401)])
@pytest.mark.parametrize("concurrency", [1, 3])
async def test_a_provider_that_is_gone_is_given_up(
    tmp_path: Path, error: Exception, concurrency: int
) -> None:
    output = tmp_path / "out.jsonl"
    gone: dict[str, list[Any]] = {str(n): [error] for n in range(5, 50)}
    names = [str(number) for number in range(50)]
    draw = Scripted(outcomes=gone)
    tally = await run(output, rows(*names), draw, max_concurrency=concurrency)

    assert (tally.stopped, tally.failed, tally.recorded) == ("outage", 0, 5)
    assert tally.error == f"{type(error).__name__}: {error}"
    assert 5 + concurrency + 4 <= len(draw.asked) <= 5 + 2 * concurrency + 4
    assert not failed_path(output).exists()

    assert (await run(output, rows(*names))).complete
    assert len(recorded(output)) == 50


async def test_what_came_before_it_was_given_up_is_kept_for_the_next_run(
    tmp_path: Path,
) -> None:
    output = tmp_path / "out.jsonl"
    half = Drawn(answer=Sample(text="A"), samples=(Sample(text="s"),), error=OVERLOADED)
    gone: dict[str, list[Any]] = {name: [OVERLOADED] for name in NAMES}
    gone["b"] = [half]
    tally = await run(output, rows(*NAMES), Scripted(outcomes=gone), max_concurrency=1)
    assert (tally.stopped, tally.failed) == ("outage", 0)
    assert [line["id"] for line in read(failed_path(output))] == ["b"]

    draw = Scripted()
    assert (await run(output, rows(*NAMES), draw)).complete
    assert ("b", 1, 1) in draw.asked
    by_id = {line["id"]: line for line in read(output)}
    assert by_id["b"]["samples"] == ["s", "b 1.0"]


async def test_a_single_outage_fails_the_question_alone(tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    outcomes: dict[str, list[Any]] = {"b": [OVERLOADED], "j": [NO_SERVER]}
    draw = Scripted(outcomes=outcomes)
    tally = await run(output, rows(*NAMES), draw, max_concurrency=2)
    assert (tally.stopped, tally.failed, tally.recorded) == (None, 2, 8)
    assert sorted(line["id"] for line in read(failed_path(output))) == ["b", "j"]
    assert not any(line["failed"]["outage"] for line in read(failed_path(output)))


async def test_questions_that_are_at_fault_do_not_end_the_run(tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    outcomes: dict[str, list[Any]] = {name: [TOO_LONG] for name in NAMES[1:]}
    tally = await run(
        output, rows(*NAMES), Scripted(outcomes=outcomes), max_concurrency=1
    )
    assert (tally.stopped, tally.failed, tally.recorded) == (None, 9, 1)


async def test_where_nothing_ever_worked_any_failure_ends_it_and_counts(
    tmp_path: Path,
) -> None:
    """So that a wrong option does not go through the whole file, but a run gets on."""
    output = tmp_path / "out.jsonl"
    outcomes: dict[str, list[Any]] = {name: [TypeError("no")] for name in NAMES}
    for failed in (5, 10):
        draw = Scripted(outcomes=outcomes)
        tally = await run(output, rows(*NAMES), draw, max_concurrency=1)
        assert (tally.stopped, tally.failed) == ("outage", 5)
        assert len(read(failed_path(output))) == failed


async def test_a_success_late_in_an_outage_does_not_blame_the_questions(
    tmp_path: Path,
) -> None:
    output = tmp_path / "out.jsonl"
    given_up = asyncio.Event()

    async def draw(question: Question, /, *, n_samples: int, tries: int) -> Drawn:
        if question.id == "a":
            await given_up.wait()
            return drawn_for("a", n_samples=n_samples, tries=tries)
        raise OVERLOADED

    def watch(tally: Tally) -> None:
        if tally.stopped == "outage":
            given_up.set()

    with RecordingStore(output, settings=SETTINGS) as store:
        recorder = Recorder(
            store, draw, n_samples=2, max_concurrency=2, on_progress=watch
        )
        tally = await recorder.run(rows(*NAMES))
    assert (tally.stopped, tally.recorded, tally.failed) == ("outage", 1, 0)
    assert recorded(output) == ["a"]
    assert not failed_path(output).exists()


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
