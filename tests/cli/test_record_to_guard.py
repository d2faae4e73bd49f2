"""From ``snne-guard record`` to a guard on the same model, with nothing changed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from langchain.chat_models import init_chat_model

from snne_guard import ConfigurationError, SNNEGuard
from snne_guard.decision.bound_settings import ANSWER_SETTINGS
from tests.cli.lines import read, write
from tests.cli.record_command import TWO, arguments_for, run
from tests.support.calibrated import calibration
from tests.support.chat_server import ChatServer, always


@pytest.mark.parametrize(("provider", "top_p"), [("openai", None), ("mistralai", 1.0)])
def test_a_guard_has_the_top_p_that_was_recorded(
    provider: str, top_p: float | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip(f"langchain_{provider}")
    for key in ("MISTRAL_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.setenv(key, "test")
    questions, output = write(tmp_path / "in.jsonl", *TWO), tmp_path / "out.jsonl"
    with ChatServer(always("Au")) as server:
        _, _, *where = arguments_for(server)
        name = f"{provider}:small"
        result = run(questions, "--output", output, "--model", name, *where)
        assert result.exit_code == 0, result.output
        [settings] = {json.dumps(row["settings"]) for row in read(output)}
        told: dict[str, Any] = {
            name: json.loads(settings)[name] for name in ANSWER_SETTINGS
        }
        assert told["top_p"] == top_p
        made = calibration(model=name, **told)
        model = init_chat_model(name, base_url=server.url)
        SNNEGuard.from_calibration(model, made)
        other = init_chat_model(name, base_url=server.url, top_p=0.9)
        with pytest.raises(
            ConfigurationError, match=f"top_p was {top_p}, here it is 0.9"
        ):
            SNNEGuard.from_calibration(other, made)


def test_a_guard_ends_its_replies_where_the_recorded_ones_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "test")
    questions, output = write(tmp_path / "in.jsonl", *TWO), tmp_path / "out.jsonl"
    ends = ("--max-tokens", "48", "--stop", r"\n", "--stop", r"\n\n", "--stop", ".")
    with ChatServer(always("Au")) as server:
        result = run(questions, "--output", output, *arguments_for(server), *ends)
        assert result.exit_code == 0, result.output
        drawn = [request.body for request in server.requests]
        settings = read(output)[0]["settings"]
        told: dict[str, Any] = {name: settings[name] for name in ANSWER_SETTINGS}
        assert (told["max_tokens"], told["stop"]) == (48, ["\n", "\n\n", "."])
        made = calibration(model=settings["model"], **told)
        sent = {(body["max_completion_tokens"], *body["stop"]) for body in drawn}
        assert sent == {(48, "\n", ".")}

        def guard(**options: Any) -> SNNEGuard:
            own = {"max_tokens": 48, "stop": [".", "\n"], **options}
            model = init_chat_model(settings["model"], base_url=server.url, **own)
            return SNNEGuard.from_calibration(model, made)

        guard()
        for name, here in (("max_tokens", 1024), ("stop", None), ("stop", ["."])):
            told_so = f"{name} was .*, here it is {here}".replace("[", r"\[")
            with pytest.raises(ConfigurationError, match=told_so):
                guard(**{name: here})
