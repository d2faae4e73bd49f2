from __future__ import annotations

import json
import re
from typing import Any

import pytest
from langchain_openai import ChatOpenAI
from rich.console import Console
from typer.testing import CliRunner, Result

from snne_guard.cli import build_app
from snne_guard.cli._asking import Arrivals, short_answers
from snne_guard.cli.ask import _record
from snne_guard.errors import MissingExtraError
from snne_guard.types import Assessment, Sample, SampleEvent
from tests.support.chat_server import ChatServer, Script, always, error, in_turn
from tests.support.guarding import split

GOLD = "What is the chemical symbol for gold?"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(build_app(), ["ask", *arguments])


def run_on(server: ChatServer, *arguments: str) -> Result:
    return run("--model", "openai:small", "--base-url", server.url, *arguments)


def run_json(script: Script, *arguments: str) -> tuple[Result, dict[str, Any]]:
    with ChatServer(script) as server:
        result = run_on(server, GOLD, "--json", *arguments)
    record = json.loads(result.stdout)
    assert isinstance(record, dict)
    return result, record


@pytest.fixture(autouse=True)
def _no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def test_json_is_one_object_and_nothing_else() -> None:
    result, record = run_json(split("Au", ["Au", "Au", "Ag", "Ag"]), "--n", "5")
    assert result.exit_code == 0
    assert result.stdout.count("\n") == 1
    assert set(record) == {
        "question",
        "answer",
        "snne_guard",
        "samples",
        "scored",
        "matrix",
    }
    assert record["question"] == GOLD
    assert record["answer"] == "Au"
    assert sorted(record["samples"]) == ["Ag", "Ag", "Au", "Au"]
    assert record["scored"] == ["Au", *record["samples"]]
    same = [float(text == "Au") for text in record["scored"]]
    assert record["matrix"][0] == same
    about = record["snne_guard"]
    assert (about["n_requested"], about["n_used"]) == (5, 5)
    assert (about["decision"], about["threshold"]) == (None, None)
    assert 0.0 < about["uncertainty"] < 1.0
    assert about["reasons"] == ["no_threshold"]
    assert about["cost"]["calls"] == 2


def test_rounds_stop_where_the_decision_is_settled() -> None:
    options = ("--n", "10", "--rounds", "5,8,10", "--threshold", "0.5")
    script = split("Au", ["Au"])
    result, record = run_json(script, *options)
    assert result.exit_code == 0, result.output
    about = record["snne_guard"]
    assert (about["n_used"], about["reasons"]) == (8, ["stopped_early"])
    with ChatServer(script) as server:
        result = run_on(server, GOLD, *options)
    told = " ".join(result.stdout.split())
    assert "2 samples saved" in told
    assert "settled before all samples were drawn" in told


@pytest.mark.parametrize(
    ("rounds", "said"),
    [("5,ten", "got '5,ten'"), ("5,8", "rounds must be"), ("5,10", "need a threshold")],
)
def test_rounds_that_make_no_sense(rounds: str, said: str) -> None:
    with ChatServer(split("Au", ["Au"])) as server:
        result = run_on(server, GOLD, "--n", "10", "--rounds", rounds)
        assert (result.exit_code, server.requests) == (2, [])
    assert said in result.output


def test_options_reach_the_model() -> None:
    with ChatServer(always("Au")) as server:
        result = run_on(
            server,
            GOLD,
            *("--n", "3", "--temperature", "0.7", "--system", "Be brief."),
            *("--seed", "5", "--method", "snne", "--similarity", "rouge_l_paper"),
            "--json",
        )
        requests = server.requests
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["snne_guard"]["method"] == "snne"
    assert all(request.messages[0]["content"] == "Be brief." for request in requests)
    assert all(request.messages[1]["content"] == GOLD for request in requests)
    sampling = [request for request in requests if request.temperature == 0.7]
    assert [request.n for request in sampling] == [2]
    assert {request.body["seed"] for request in requests} == {5, 6}


@pytest.mark.parametrize(
    ("samples", "arguments", "status", "decision", "answer"),
    [
        (["Au"], ["--threshold", "0.5"], 0, "accept", "Au"),
        (["Ag"], ["--threshold", "0.1"], 0, "flag", "Au"),
        (
            ["Ag"],
            ["--threshold", "0.1", "--on-uncertain", "refuse"],
            3,
            "refuse",
            None,
        ),
        (["Ag"], [], 0, None, "Au"),
    ],
)
def test_exit_status_and_answer_follow_the_decision(
    samples: list[str],
    arguments: list[str],
    status: int,
    decision: str | None,
    answer: str | None,
) -> None:
    result, record = run_json(split("Au", samples), *arguments)
    assert result.exit_code == status
    assert record["snne_guard"]["decision"] == decision
    assert record["answer"] == answer


def test_an_answer_that_is_held_back_is_nowhere_in_the_json() -> None:
    samples = ["Ag", "Fe", "Pb", "Zn"]
    options = ("--threshold", "0.1", "--on-uncertain", "refuse")
    result, record = run_json(split("Au", samples), *options)
    assert result.exit_code == 3
    assert "Au" not in result.stdout
    assert record["scored"] == [None, *record["samples"]]


def test_prices_turn_tokens_into_money() -> None:
    _, record = run_json(split("Au", ["Au"]), "--n", "3", "--prices", "2,8")
    cost = record["snne_guard"]["cost"]
    tokens = 2 * cost["prompt_tokens"] + 8 * cost["completion_tokens"]
    assert cost["money"] == pytest.approx(tokens / 1_000_000)


def test_prices_that_are_none_are_wrong_usage() -> None:
    result = run(GOLD, "--model", "openai:small", "--prices", "cheap")
    assert result.exit_code == 2
    assert "PROMPT,COMPLETION" in result.stderr


def test_people_get_a_page() -> None:
    with ChatServer(split("Au", ["Ag"])) as server:
        result = run_on(
            server, GOLD, "--threshold", "0.1", "--on-uncertain", "refuse", "--n", "3"
        )
    assert result.exit_code == 3
    assert "Au  (withheld)" in result.stdout
    assert re.search(r"B .2 Ag", result.stdout)
    assert "HELD BACK" in result.stdout
    assert "threshold 0.10, uncalibrated" in result.stdout
    assert "Delivered instead: I am not certain enough" in " ".join(
        result.stdout.split()
    )


def test_progress_goes_to_standard_error() -> None:
    result, _ = run_json(split("Au", ["Au"]), "--n", "4")
    assert "4 of 4 replies" in result.stderr
    assert "replies" not in result.stdout


def test_a_provider_that_fails_is_reported() -> None:
    with ChatServer(in_turn([error(401, "bad key")])) as server:
        result = run_on(server, GOLD, "--json")
    assert result.exit_code == 1
    assert result.stdout == ""
    assert "snne-guard: the model failed: " in result.stderr
    assert "bad key" in result.stderr
    assert "Traceback" not in result.output


def test_samples_that_fail_do_not_lose_the_answer() -> None:
    result, record = run_json(split("Au", in_turn([error(400, "no samples")])))
    assert result.exit_code == 0
    assert record["answer"] == "Au"
    assert "samples_failed" in record["snne_guard"]["reasons"]
    assert (record["matrix"], record["scored"]) == (None, [])
    assert "a request failed" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([" "], "the question is empty"),
        ([GOLD, "--base-url", "http://127.0.0.1:1/v1"], "--base-url needs --model"),
        ([GOLD, "--model", "nobody:small"], "'nobody:small' cannot be set up"),
        ([GOLD, "--model", "openai:small"], "'openai:small' cannot be set up"),
        ([GOLD, "--on-uncertain", "refuse"], "needs a threshold"),
        ([GOLD, "--n", "1"], "n must be"),
        ([GOLD, "--threshold", "2"], "threshold"),
        ([GOLD, "--method", "magic"], "'magic'"),
        ([GOLD, "--similarity", "magic"], "'magic'"),
    ],
)
def test_wrong_usage_is_told(
    arguments: list[str], told: str, embedded: ChatOpenAI
) -> None:
    assert embedded.max_tokens == 32
    result = run(*arguments)
    assert result.exit_code == 2
    assert told in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize("arguments", [[], [GOLD, "--api-key", "sk-secret"]])
def test_unknown_usage_is_refused(arguments: list[str]) -> None:
    assert run(*arguments).exit_code == 2


def test_a_key_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-mine")
    with ChatServer(always("Au")) as server:
        result = run_on(server, GOLD, "--n", "2")
        keys = {request.headers["authorization"] for request in server.requests}
    assert result.exit_code == 0
    assert keys == {"Bearer sk-mine"}


def test_a_missing_extra_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(**_: Any) -> None:
        needed = "xllamacpp"
        raise MissingExtraError(needed, extra="demo")

    monkeypatch.setattr("snne_guard.langchain.embedded.embedded_model", missing)
    result = run(GOLD)
    assert result.exit_code == 2
    assert 'pip install "snne-guard[demo]"' in result.stderr


def test_the_embedded_model_answers_without_any_option(embedded: ChatOpenAI) -> None:
    assert embedded.max_tokens == 32
    result = run("What is the capital of France?", "--json", "--seed", "7")
    assert result.exit_code == 0, result.output
    record = json.loads(result.stdout)
    assert record["answer"] == "Paris"
    assert record["snne_guard"]["method"] == "wsnne"
    assert len(record["matrix"]) == 5


def test_the_system_prompt_takes_the_place_of_the_examples(
    embedded: ChatOpenAI,
) -> None:
    assert embedded.max_tokens == 32
    result = run("Hi", "--json", "--system", "Say yes.", "--n", "2")
    assert result.exit_code == 0, result.output
    cost = json.loads(result.stdout)["snne_guard"]["cost"]
    assert cost["prompt_tokens"] < 60 < len(str(short_answers("Hi")))


def test_an_answer_that_never_came_and_infinity_have_a_place_in_json() -> None:
    record = _record("q", Assessment(id="1", answer=None, score=float("-inf")))
    assert record["answer"] is None
    assert record["snne_guard"]["score"] is None
    call = Sample(text="", tool_calls='{"a":1}')
    record = _record("q", Assessment(id="1", answer=call, samples=(call,)))
    assert (record["answer"], record["samples"]) == ('{"a":1}', ['{"a":1}'])


def test_arrivals_are_a_bar_on_a_terminal() -> None:
    console = Console(force_terminal=True, width=80, record=True)
    with Arrivals(3, console=console) as arrivals:
        start = SampleEvent(assessment_id="1", role="answer", index=0, n=1)
        arrivals.on_sample_start(start)
        came = SampleEvent(
            assessment_id="1", role="sample", index=0, n=2, samples=(Sample(text="x"),)
        )
        arrivals.on_sample_end(came)
        task = arrivals._progress.tasks[0]
        assert (task.completed, task.total) == (1, 3)
        assert task.description == "asking for the answer"
    assert "of 3 replies" not in console.export_text()
