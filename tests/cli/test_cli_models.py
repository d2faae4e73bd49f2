"""Which model a command asks: ``hf:`` names one that runs in this process."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner

from snne_guard import TransformersChatModel
from snne_guard.cli import build_app
from snne_guard.cli._models import chat_model


def chosen(name: str | None, **options: Any) -> Any:
    given = {"base_url": None, "seed": None, **options}
    return chat_model(name, console=Console(file=io.StringIO()), **given)


def test_hf_names_a_local_model(hub: str) -> None:
    chat = chosen(f"hf:{hub}", seed=7)
    assert isinstance(chat, TransformersChatModel)
    assert (chat.model.name, chat.seed) == (hub, 7)


def test_a_local_model_is_not_served(
    hub: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Exit):
        chosen(f"hf:{hub}", base_url="http://127.0.0.1:1/v1")
    assert "--base-url is for a model that is served" in capsys.readouterr().err


def test_a_local_model_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit):
        chosen("hf:nobody/nothing")
    told = " ".join(capsys.readouterr().err.split())
    assert "the model 'hf:nobody/nothing' cannot be set up" in told


def test_a_local_model_is_asked(hub: str) -> None:
    command = ["ask", "--model", f"hf:{hub}", "--n", "2", "--seed", "1", "--json"]
    result = CliRunner().invoke(build_app(), [*command, "hi"])
    told = json.loads(result.stdout)
    assert len(told["samples"]) == 1
    assert told["snne_guard"]["cost"]["calls"] == 2


def test_a_local_model_may_go_on_with_the_text(hub: str) -> None:
    read = [
        chosen(f"hf:{hub}", completion=completion).invoke("hi").usage_metadata
        for completion in (True, False)
    ]
    assert read[0]["input_tokens"] == 2  # a token a letter
    assert read[1]["input_tokens"] > 2


@pytest.mark.parametrize("name", [None, "openai:small"])
def test_only_a_local_model_may(
    name: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Exit):
        chosen(name, completion=True)
    assert "--completion needs a model that runs here" in capsys.readouterr().err
