"""``snne-guard doctor`` on real servers: three kinds to tell apart, and faults."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest
from langchain_openai import ChatOpenAI
from typer.testing import CliRunner, Result

from snne_guard.cli import build_app
from tests.support.chat_samplers import Sampler
from tests.support.chat_server import (
    ChatServer,
    Reply,
    Script,
    always,
    chat_openai,
    error,
    in_turn,
)
from tests.support.transformers_serve import serving, tiny_llama

pytestmark = pytest.mark.usefixtures("same_prompts")

DEAF = frozenset({"n", "temperature", "logprobs", "max_tokens"})


def run(*arguments: str) -> Result:
    return CliRunner().invoke(build_app(), ["doctor", *arguments])


def run_at(url: str, *arguments: str, model: str = "small") -> Result:
    return run("--model", f"openai:{model}", "--base-url", url, *arguments)


def run_on(script: Script, *arguments: str) -> Result:
    with ChatServer(script) as server:
        return run_at(server.url, *arguments)


def statuses(result: Result) -> dict[str, str]:
    report: dict[str, Any] = json.loads(result.stdout)
    assert report["ok"] is (result.exit_code == 0)
    return {found["check"]: found["status"] for found in report["findings"]}


def said(result: Result) -> str:
    return " ".join(result.stdout.split())


@pytest.fixture(autouse=True)
def _no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """``transformers serve`` on a model whose configuration does not sample."""
    for package in ("torch", "fastapi", "uvicorn"):
        pytest.importorskip(package)
    folder = tiny_llama(tmp_path_factory.mktemp("tiny-llama"), do_sample=False)
    with serving(folder, folder / "log.txt") as url:
        yield url, str(folder)


def test_the_embedded_model_can_be_trusted(embedded: ChatOpenAI) -> None:
    assert embedded.max_tokens == 32
    result = run()
    assert result.exit_code == 0, result.output
    page = said(result)
    assert "Samples of this model can be trusted." in page
    assert "n works asked for 3 replies in one request, got 3" in page
    assert "usage broken" in page  # llama.cpp counts one choice of several
    assert "from snne_guard.langchain.embedded import embedded_model" in page
    assert "model = embedded_model() guard = SNNEGuard(model, method='wsnne')" in page
    assert "Cost of this: 9 requests" in page
    assert "Traceback" not in result.output


def test_transformers_serve_is_found_to_take_the_likeliest_words(
    served: tuple[str, str],
) -> None:
    url, folder = served
    result = run_at(url, model=folder)
    assert result.exit_code == 1, result.output
    page = said(result)
    assert "Samples of this model cannot be trusted." in page
    assert "half the token limit brings their beginning" in page
    assert '"do_sample": true in the model\'s generation_config.json' in page
    assert "SNNEGuard(" not in page  # no settings make up for it
    assert statuses(run_at(url, "--json", model=folder)) == {
        "variation": "ignored",
        "temperature": "ignored",
        "n": "ignored",
        "logprobs": "missing",
        "seed": "unknown",
        "cache": "works",
        "max_tokens": "works",
        "usage": "works",
    }


def test_the_same_weights_without_a_server_can_be_trusted(
    served: tuple[str, str],
) -> None:
    _, folder = served
    result = run("--model", f"hf:{folder}")
    assert result.exit_code == 0, result.output
    made = f"model = TransformersChatModel.from_pretrained('{folder}')"
    assert made.replace(" ", "") in "".join(result.stdout.split())
    assert "from snne_guard.langchain import TransformersChatModel" in said(result)


@pytest.mark.parametrize(
    "script", [Sampler(ignores=DEAF), always("Paris", choices=1, logprobs=None)]
)
def test_a_server_that_ignores_everything_cannot_be_trusted(script: Script) -> None:
    result = run_on(script, "--json")
    assert result.exit_code == 1
    found = statuses(result)
    assert found["cache"] == "unknown"  # one would look the same
    assert found["max_tokens"] in {"ignored", "unknown"}
    parts = ("variation", "temperature", "n", "logprobs")
    assert [found[part] for part in parts] == ["ignored"] * 3 + ["missing"]


def test_a_temperature_of_the_servers_own_is_not_trusted() -> None:
    deaf = DEAF - {"max_tokens", "temperature"}
    draws = random.Random(1)  # noqa: S311 - now and then, others begin alike by chance
    result = run_on(Sampler(ignores=deaf, hot=True, _draws=draws))
    assert result.exit_code == 1
    page = said(result)
    assert "variation works" in page
    assert "temperature ignored replies differ at 0 as much as at 1" in page
    assert "Samples of this model cannot be trusted." in page
    assert "To do: have the server draw at the temperature that it is asked" in page


def test_settings_are_code_that_makes_the_guard() -> None:
    result = run_on(Sampler(ignores=frozenset({"logprobs"})))
    assert result.exit_code == 0
    code = [line[4:] for line in result.stdout.splitlines() if line.startswith("    ")]
    namespace: dict[str, Any] = {"__name__": "settings"}
    text = "\n".join(line for line in code if not line.startswith(" "))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", "none-needed")
        exec(text, namespace)  # noqa: S102 - what a user would paste
    guard = namespace["guard"]
    assert guard.method == "snne"
    assert guard.innermost.openai_api_base.startswith("http://127.0.0.1:")


def test_a_fixed_seed_is_made_up_for_by_one_of_ones_own() -> None:
    result = run_on(Sampler(fixed_seed=3))
    assert result.exit_code == 1
    page = said(result)
    assert "To do: give the model a seed, such as seed=1" in page
    assert "seed=1) guard = SNNEGuard(model, method='wsnne')" in page


def test_the_temperature_is_that_of_the_samples() -> None:
    with ChatServer(Sampler()) as server:
        result = run_at(server.url, "--temperature", "0.7", "--json")
        asked = {request.temperature for request in server.requests}
    assert result.exit_code == 0
    assert asked == {0.7, 0.0}
    assert json.loads(result.stdout)["model"] == "small"


@pytest.mark.parametrize(
    ("script", "arguments", "told"),
    [
        (in_turn([error(401, "bad key")]), [], "the model does not answer: "),
        (in_turn([error(401, "bad key")]), [], "bad key"),
        (
            [Reply(stall=True)],
            ["--timeout", "0.2"],
            "no reply within the timeout of 0.2 s; --timeout gives it longer",
        ),
    ],
)
def test_a_model_that_does_not_answer_is_told_of(
    script: Any, arguments: list[str], told: str
) -> None:
    result = run_on(script, *arguments)
    assert result.exit_code == 2
    assert told in " ".join(result.stderr.split())
    assert result.stdout == ""
    assert "Traceback" not in result.output


def test_a_server_that_is_not_there_is_told_of() -> None:
    result = run_at("http://127.0.0.1:9/v1")
    assert result.exit_code == 2
    assert "the model does not answer: " in result.stderr
    assert "refused" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--base-url", "http://127.0.0.1:9/v1"], "--base-url needs --model"),
        (["--model", "nobody:small"], "'nobody:small' cannot be set up"),
        (["--timeout", "0"], "--timeout is seconds above 0; got 0"),
        (["--temperature", "-1", "--model", "openai:x"], "temperature must be"),
    ],
)
def test_wrong_usage_is_told(
    arguments: list[str], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "test")
    result = run(*arguments)
    assert result.exit_code == 2
    assert told in result.stderr


def test_a_model_that_is_never_sampled_is_told_of(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def searching(*_args: Any, **_options: Any) -> Any:
        return chat_openai(server).bind(tools=[{"type": "web_search"}])

    monkeypatch.setattr("snne_guard.cli.doctor.chat_model", searching)
    with ChatServer(Sampler()) as server:
        result = run()
    assert result.exit_code == 2
    assert "this model is not sampled" in result.stderr
    assert "does not answer" not in result.stderr
