"""A recording that grows: every way to be killed, other settings, failures."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snne_guard.errors import ConfigurationError
from snne_guard.evaluation import Drawn, Question, RecordingStore
from snne_guard.evaluation.recording.store import failed_path
from snne_guard.types import Cost, Sample
from tests.support.recording import (
    SETTINGS,
    drawn_for,
    lines_of,
    question,
    read,
    recorded,
)

NAMES = ("a", "b", "c")


@pytest.fixture(autouse=True, scope="module")
def _no_waiting_for_the_disk() -> Iterator[None]:
    # A kill loses nothing that was written, and a busy disk takes its time.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.fsync", int)
        yield


def fill(output: Path, names: tuple[str, ...] = NAMES, **changed: Any) -> None:
    """Record what is missing, as a run does."""
    with RecordingStore(output, settings={**SETTINGS, **changed}) as store:
        for name in names:
            if store.state(question(name)) == "new":
                store.record(question(name), drawn_for(name))


def test_a_line_says_what_was_drawn(tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    asked = Question.from_dict(
        {"question": "Who?", "answers": ["Anna"], "id": 7, "context": "x", "p": [1.5]}
    )
    drawn = Drawn(
        answer=Sample(text="Anna", token_logprobs=(-0.5, -1.0), finish_reason="stop"),
        samples=(
            Sample(text="Max", finish_reason="length", model="m-1"),
            Sample(text="Ida", token_logprobs=(-0.1,), model="m-1", unread=True),
            Sample(text="", tool_calls='[{"name":"f"}]'),
            Sample(text="Otto", token_logprobs=(-0.1, float("-inf"))),
        ),
        reasons=("truncated_samples",),
        cost=Cost(calls=2, prompt_tokens=5),
    )
    with RecordingStore(output, settings=SETTINGS) as store:
        store.record(asked, drawn)
        assert len(store) == 1

    [line] = read(output)
    about = line.pop("drawn")
    assert line == {
        "id": 7,
        "question": "Who?",
        "answers": ["Anna"],
        "context": "x",
        "p": [1.5],
        "main_answer": "Anna",
        "samples": ["Max", "Ida", '[{"name":"f"}]', "Otto"],
        "main_logprobs": [-0.5, -1.0],
        "token_logprobs": [None, [-0.1], None, None],
        "settings": SETTINGS,
    }
    assert about.pop("at").endswith("+00:00")
    assert about.pop("version")
    assert about.pop("cost")["prompt_tokens"] == 5
    assert about == {
        "models": ["m-1"],
        "finish_reasons": ["stop", "length", None, None, None],
        "kinds": [None, None, "unread", "tool_calls", None],
        "reasons": ["truncated_samples"],
    }
    assert recorded(output) == ["7"]


def test_what_belongs_to_other_draws_is_left_out(tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    old = {
        "main_answer": "old",
        "samples": ["old"],
        "main_logprobs": [-1.0],
        "token_logprobs": [[-1.0]],
        "label": 1,
        "snne_guard": {"uncertainty": 0.5},
        "settings": {"model": "old"},
        "drawn": {},
        "failed": {},
    }
    with RecordingStore(output, settings=SETTINGS) as store:
        store.record(question("a", **old, kept=True), drawn_for("a"))
    [line] = read(output)
    assert set(line) == {
        "id",
        "question",
        "kept",
        "main_answer",
        "samples",
        "settings",
        "drawn",
    }
    assert "old" not in json.dumps(line)


def test_a_question_without_id_gets_one_in_its_line(tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    asked = Question.from_dict({"question": "Who?", "id": None})
    with RecordingStore(output, settings=SETTINGS) as store:
        store.record(asked, drawn_for("a"))
    assert [line["id"] for line in read(output)] == [asked.id]
    with RecordingStore(output, settings=SETTINGS) as store:
        assert store.state(asked) == "recorded"


def test_a_kill_at_any_byte_loses_and_doubles_nothing(tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    fill(output)
    content = output.read_bytes()
    ends = [at + 1 for at, byte in enumerate(content) if byte == ord("\n")]

    for cut in range(len(content) + 1):
        output.write_bytes(content[:cut])
        fill(output)

        assert recorded(output) == list(NAMES), cut
        # A line is whole already when nothing but its end is missing.
        whole = sum(end - 1 <= cut for end in ends)
        kept = ([0, *ends])[whole]
        assert output.read_bytes()[:kept] == content[:kept]
        torn = tmp_path / "out.jsonl.torn"
        lost = content[kept:cut]
        assert (torn.read_bytes() if torn.exists() else b"") == (
            lost + b"\n" if lost else b""
        )
        torn.unlink(missing_ok=True)


def test_a_kill_at_any_byte_of_the_failures_loses_at_most_the_last(
    tmp_path: Path,
) -> None:
    output = tmp_path / "out.jsonl"
    failed = failed_path(output)
    with RecordingStore(output, settings=SETTINGS) as store:
        for name in NAMES:
            partial = drawn_for(name, n_samples=1)
            store.fail(question(name), partial, tries=1, outage=False)
    content = failed.read_bytes()
    ends = [at for at, byte in enumerate(content) if byte == ord("\n")]

    for cut in range(0, len(content) + 1, 3):
        failed.write_bytes(content[:cut])
        with RecordingStore(output, settings=SETTINGS) as store:
            states = [store.state(question(name)) for name in NAMES]
        whole = sum(end <= cut for end in ends)
        assert states == ["failed"] * whole + ["new"] * (3 - whole), cut


TEXTS = st.text(max_size=8)


@settings(max_examples=40)
@given(
    texts=st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=4),
    at=st.floats(0, 1),
    again=st.floats(0, 1),
)
def test_it_is_so_for_any_text_and_for_two_kills(
    texts: list[tuple[str, str]],
    at: float,
    again: float,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    output = tmp_path_factory.mktemp("store") / "out.jsonl"
    asked = {
        str(number): Question.from_dict({"id": str(number), "question": f"?{first}"})
        for number, (first, _) in enumerate(texts)
    }

    def go_on() -> None:
        with RecordingStore(output, settings=SETTINGS) as store:
            for name, (_, answer) in zip(asked, texts, strict=True):
                if store.state(asked[name]) == "new":
                    sample = Sample(text=answer)
                    store.record(asked[name], Drawn(answer=sample, samples=(sample,)))

    go_on()
    for share in (at, again):
        content = output.read_bytes()
        output.write_bytes(content[: int(share * len(content))])
        go_on()
    assert sorted(recorded(output)) == sorted(asked)
    by_id = {line["id"]: line for line in read(output)}
    for name, (first, answer) in zip(asked, texts, strict=True):
        assert by_id[name]["question"] == f"?{first}"
        assert (by_id[name]["main_answer"], by_id[name]["samples"]) == (
            answer,
            [answer],
        )


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"model": "other"}, 'was drawn with model "m", and now it is "other"'),
        ({"temperature": 0.5}, "with temperature 1.0, and now it is 0.5"),
        ({"samples": 10}, "with samples 2, and now it is 10"),
        ({"system": "s" * 99}, 'with system null, and now it is "' + "s" * 59 + "…"),
    ],
)
@pytest.mark.parametrize("place", ["recorded", "failed"])
def test_other_settings_are_refused_and_named(
    tmp_path: Path, changed: dict[str, Any], told: str, place: str
) -> None:
    output = tmp_path / "out.jsonl"
    with RecordingStore(output, settings=SETTINGS) as store:
        if place == "recorded":
            store.record(question("a"), drawn_for("a"))
        else:
            store.fail(question("a"), Drawn(), tries=1, outage=False)
    before = [path.read_bytes() for path in sorted(tmp_path.iterdir())]

    with pytest.raises(ConfigurationError) as caught:
        fill(output, **changed)

    assert told in str(caught.value)
    assert "line 1, was drawn" in str(caught.value)
    assert [path.read_bytes() for path in sorted(tmp_path.iterdir())] == before
    mixed = {**SETTINGS, **changed}
    with RecordingStore(output, settings=mixed, mix_settings=True) as store:
        assert store.state(question("a")) == place
    fill(output)


BEFORE = lines_of({"id": "x", "question": "?", "main_answer": "", "samples": []})


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"text\n", "line 1, is no recording: expected a JSON object"),
        (lines_of({"id": "a", "question": "?"}), 'expected a field "main_answer"'),
        (BEFORE, "line 1, does not say how it was drawn"),
        (BEFORE.rstrip(), "line 1, does not say how it was drawn"),
        (b"one line of a letter", "ends with another text"),
    ],
)
def test_a_file_of_something_else_is_left_as_it_is(
    tmp_path: Path, content: bytes, told: str
) -> None:
    output = tmp_path / "out.jsonl"
    output.write_bytes(content)
    with pytest.raises(ConfigurationError) as caught:
        fill(output)
    assert told in str(caught.value)
    assert output.read_bytes().rstrip() == content.rstrip()
    with pytest.raises(ConfigurationError):
        fill(output)  # and not: another run is writing it


def test_an_id_that_is_there_twice_is_told(tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    fill(output)
    output.write_bytes(output.read_bytes() * 2)
    with pytest.raises(ConfigurationError, match="line 4, is no recording: the id"):
        fill(output)


def test_a_file_of_failures_of_something_else_is_left_as_it_is(tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    for content in (b"text\n", lines_of({"id": "a"})):
        failed_path(output).write_bytes(content)
        with pytest.raises(ConfigurationError, match="line 1, is not of this command"):
            fill(output)
        assert failed_path(output).read_bytes() == content
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "out.failed.jsonl",
        "out.jsonl",
    ]


def test_a_failure_keeps_what_came(tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    partial = Drawn(
        answer=Sample(
            text="A", token_logprobs=(-1.0,), finish_reason="stop", model="m"
        ),
        samples=(Sample(text="B", finish_reason="length"),),
        reasons=("samples_failed", "truncated_samples"),
        cost=Cost(calls=2, completion_tokens=3),
        error=TimeoutError("too late"),
    )
    bare = Drawn(samples=(Sample(text="S", token_logprobs=(-2.0,)),))
    with RecordingStore(output, settings=SETTINGS) as store:
        store.fail(question("a"), partial, tries=1, outage=True)
        store.fail(question("b"), bare, tries=2, outage=False)
        store.fail(question("c"), Drawn(error=OSError("x")), tries=1, outage=False)

    lines = read(failed_path(output))
    assert [line["failed"]["error"] for line in lines] == [
        "TimeoutError: too late",
        "too few replies came",
        "OSError: x",
    ]
    assert "main_answer" not in lines[1]
    with RecordingStore(output, settings=SETTINGS) as store:
        found = [store.failure(question(name)) for name in (*NAMES, "d")]
    assert found[3] is None
    kept = [failure for failure in found if failure is not None]
    assert [failure.drawn for failure in kept] == [partial, bare, Drawn()]
    assert [(failure.tries, failure.outage) for failure in kept] == [
        (1, True),
        (2, False),
        (1, False),
    ]


def test_draws_for_a_question_that_reads_otherwise_now_are_of_no_use(
    tmp_path: Path,
) -> None:
    output = tmp_path / "out.jsonl"
    with RecordingStore(output, settings=SETTINGS) as store:
        store.fail(question("a"), drawn_for("a"), tries=3, outage=False)
        for changed in ({"question": "b?"}, {"question": "a?", "context": "c"}):
            failure = store.failure(Question.from_dict({"id": "a", **changed}))
            assert failure is not None
            assert (failure.drawn, failure.tries) == (Drawn(), 3)


@pytest.mark.parametrize("end", ["close", "kill"])
def test_failures_that_are_settled_leave_the_file(tmp_path: Path, end: str) -> None:
    output = tmp_path / "out.jsonl"
    with RecordingStore(output, settings=SETTINGS) as store:
        for name in NAMES:
            store.fail(question(name), Drawn(), tries=1, outage=False)
    with RecordingStore(output, settings=SETTINGS) as store:
        store.fail(question("b"), Drawn(), tries=2, outage=False)
        store.record(question("a"), drawn_for("a"))
        if end == "kill":  # before it could tidy up
            store._stale = False
    with RecordingStore(output, settings=SETTINGS) as store:
        found = [store.state(question(name)) for name in NAMES]
        failure = store.failure(question("b"))
    assert found == ["recorded", "failed", "failed"]
    assert failure is not None
    assert failure.tries == 2
    assert [line["id"] for line in read(failed_path(output))] == ["c", "b"]

    with RecordingStore(output, settings=SETTINGS) as store:
        for name in ("b", "c"):
            store.record(question(name), drawn_for(name))
    assert not failed_path(output).exists()
    assert sorted(recorded(output)) == list(NAMES)


def test_where_the_failures_are_kept() -> None:
    assert failed_path(Path("a/out.jsonl")) == Path("a/out.failed.jsonl")
    assert failed_path(Path("out")) == Path("out.failed.jsonl")
