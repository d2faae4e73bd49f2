"""What fails: kept aside, topped up, or the fault of the provider as a whole."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from snne_guard.evaluation import (
    Drawn,
    Question,
    Recorder,
    RecordingStore,
    Tally,
)
from snne_guard.evaluation.recording.store import failed_path
from snne_guard.types import Cost, ResponseSet, Sample
from tests.support.recording import (
    NO_SERVER,
    OVERLOADED,
    SETTINGS,
    TOO_LONG,
    HttpError,
    Scripted,
    drawn_for,
    read,
    recorded,
    rows,
    run,
)

NAMES = tuple("abcdefghij")


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
