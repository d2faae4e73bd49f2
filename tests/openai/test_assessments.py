"""The assessments of a guarded client's calls, in a list of the caller's."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import openai
import pytest

from tests.openai.guarded import PATHS, guarded
from tests.support.openai_clients import WAYS
from tests.support.openai_server import APART, CHAT, RESPONSES, always, split


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("path", PATHS)
def test_a_list_fills_with_the_calls_of_a_client_and_its_copies(
    path: str, way: str
) -> None:
    with guarded(split("Paris", *APART), way, threshold=0.4) as (_, call):
        call(path)
        with call.client.assessments() as seen:
            assert seen == []
            first = call(path)
            call(path, on=call.client.with_options(timeout=9))
            call.wait(call.client.assess(**(CHAT if path == PATHS[0] else RESPONSES)))
        call(path)
    assert [one.decision for one in seen] == ["flag"] * 3
    assert seen[0].to_metadata() == first.snne_guard
    assert seen[0].answer is not None
    assert seen[0].answer.text == "Paris"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("on_uncertain", ["flag", "refuse"])
def test_a_stream_is_in_the_list_once_it_has_ended(on_uncertain: Any, way: str) -> None:
    options = {"threshold": 0.4, "on_uncertain": on_uncertain}
    with guarded(split("Paris", *APART), way, **options) as (_, call):
        with call.client.assessments() as seen:
            parts, _ = call.stream()
    (one,) = seen
    assert parts[-1].to_dict()["snne_guard"] == one.to_metadata()


def test_nested_lists_get_the_calls_of_all_threads() -> None:
    with guarded(always("Paris"), "threads") as (_, call):
        with call.client.assessments() as outer, ThreadPoolExecutor() as pool:
            call()
            with call.client.assessments() as inner:
                list(pool.map(lambda _: call(), range(4)))
    assert len(inner) == 4
    assert outer[1:] == inner


def test_calls_that_fail_are_in_the_list_too() -> None:
    with guarded(always(status=400), "threads") as (_, call):
        with call.client.assessments() as seen, pytest.raises(openai.BadRequestError):
            call()
    assert "answer_failed" in seen[0].reasons
