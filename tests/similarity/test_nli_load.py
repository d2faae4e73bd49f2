"""Getting hold of an NLI model: what is missing, broken or none, and says so."""

from __future__ import annotations

import json
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import pytest
from transformers import BertConfig, BertModel

from snne_guard.errors import ConfigurationError, MissingExtraError
from snne_guard.similarity import _nli_engine, _nli_load
from snne_guard.similarity._nli_load import MadeOnce, Source, load
from snne_guard.similarity.nli import NLI
from tests.support.tiny_nli import make_tokenizer, save_model, save_sentencepiece

TWO = ["yes", "no"]


def test_a_model_that_is_not_there(tmp_path: Path) -> None:
    nli = NLI("microsoft/deberta-base-mnli", revision="v9")
    with pytest.raises(MissingExtraError) as caught:
        nli(TWO)
    assert caught.value.extra == "nli"
    said = str(caught.value)
    assert "hf download microsoft/deberta-base-mnli --revision v9" in said
    assert "path of a folder" in said
    with pytest.raises(MissingExtraError, match="nothing-here"):
        NLI(tmp_path / "nothing-here").load()


@pytest.mark.parametrize("package", ["torch", "transformers"])
def test_a_package_that_is_not_installed(
    package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=rf"{package}.*snne-guard\[nli\]"):
        NLI("any/model")(TWO)


def test_the_vocabulary_of_the_papers_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It comes as a file of sentencepiece, and nothing else.
    path = save_sentencepiece(tmp_path)
    assert NLI(path)(TWO)[0, 1] < 1

    def find_spec(name: str) -> ModuleSpec | None:
        return None if name == "sentencepiece" else ModuleSpec(name, None)

    (tmp_path / "spm.model").write_bytes(b"\x0e broken")
    NLI(path).unload()
    with pytest.raises(ConfigurationError, match="cannot be loaded"):
        NLI(path)(TWO)
    monkeypatch.setattr(_nli_load, "find_spec", find_spec)
    NLI(path).unload()
    with pytest.raises(MissingExtraError, match="sentencepiece"):
        NLI(path)(TWO)


def test_a_lost_vocabulary_is_not_agreement(tmp_path: Path) -> None:
    # transformers makes up an empty one, with which all answers are the same.
    path = save_sentencepiece(tmp_path)
    (tmp_path / "spm.model").unlink()
    with pytest.raises(ConfigurationError, match="knows no word"):
        NLI(path)(TWO)


def test_a_model_without_a_trained_classifier(tmp_path: Path) -> None:
    config = BertConfig(
        vocab_size=200, hidden_size=8, num_hidden_layers=1, num_attention_heads=1
    )
    BertModel(config).save_pretrained(tmp_path)
    make_tokenizer().save_pretrained(tmp_path)
    nli = NLI(tmp_path, labels=("entailment", "contradiction"))
    with pytest.raises(ConfigurationError, match="no trained classifier"):
        nli(TWO)


def test_a_model_of_another_kind(tmp_path: Path) -> None:
    path = save_model(tmp_path)
    config = tmp_path / "config.json"
    told = json.loads(config.read_text(encoding="utf-8"))
    config.write_text(json.dumps({**told, "model_type": "clvp"}), encoding="utf-8")
    with pytest.raises(ConfigurationError, match="sequence-classification"):
        NLI(path)(TWO)


def test_a_device_that_is_not_there(tmp_path: Path) -> None:
    for device in ("cuda:99", "nonsense"):
        with pytest.raises(ConfigurationError, match=f"cannot be put on '{device}'"):
            NLI(save_model(tmp_path), device=device)(TWO)


def test_code_that_comes_with_a_model_is_not_run(tmp_path: Path) -> None:
    path = save_model(tmp_path)
    config = tmp_path / "config.json"
    told = json.loads(config.read_text(encoding="utf-8"))
    own = {"AutoModelForSequenceClassification": "own.Own", "AutoConfig": "own.Config"}
    told |= {"model_type": "own", "auto_map": own}
    config.write_text(json.dumps(told), encoding="utf-8")
    (tmp_path / "own.py").write_text("raise SystemExit", encoding="utf-8")
    with pytest.raises(ConfigurationError):
        NLI(path)(TWO)


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        (("LABEL_0", "LABEL_1", "LABEL_2"), r"Pass labels= .*model card"),
        (("entailment", "not_entailment"), r"two classes.*labels="),
        (("positive", "negative"), r"two classes"),
        (("a", "b", "c", "d"), r"no NLI model"),
        (("contradiction", "neutral", "entailment", "other"), r"no NLI model"),
        (("only",), r"no NLI model"),
    ],
)
def test_labels_that_do_not_tell(
    tmp_path: Path, labels: tuple[str, ...], said: str
) -> None:
    with pytest.raises(ConfigurationError, match=said):
        NLI(save_model(tmp_path, labels=labels)).load()


def test_labels_for_another_number_of_outputs(tmp_path: Path) -> None:
    path = save_model(tmp_path)
    nli = NLI(path, labels=("entailment", "contradiction"))
    with pytest.raises(ConfigurationError, match="labels names 2 outputs"):
        nli(TWO)


@pytest.mark.parametrize(
    "options",
    [
        {"model": ""},
        {"model": 3},
        {"dtype": "int8"},
        {"batch_size": 0},
        {"batch_size": True},
        {"max_length": 2},
        {"max_length": 2.5},
        {"last_characters": 0},
        {"labels": "entailment"},
        {"labels": ("entailment", "neutral")},
        {"labels": ("entailment", "contradiction", "contradiction")},
        {"labels": ("yes", "no")},
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        NLI(**{"model": "any/model", **options})


def test_where_the_positions_begin(tmp_path: Path) -> None:
    source: dict[str, Any] = {"revision": None, "device": "cpu", "dtype": "float32"}
    windows = {
        kind: load(Source(model=save_model(tmp_path / kind, kind=kind), **source))[3:]
        for kind in ("bert", "roberta", "deberta")
    }
    # Those of RoBERTa begin behind the padding's, those of DeBERTa are relative.
    assert windows == {
        "bert": (128, 128),
        "roberta": (127, 127),
        "deberta": (128, None),
    }


def test_loaded_again_after_a_failure_or_when_let_go(tmp_path: Path) -> None:
    path = tmp_path / "later"
    nli = NLI(path)
    with pytest.raises(MissingExtraError):
        nli.load()
    save_model(path)
    assert nli.load() is nli
    before = nli(TWO)
    save_model(path, seed=1)
    assert (nli(TWO) == before).all()
    nli.unload()
    assert (nli(TWO) != before).any()


def test_a_failure_is_remembered_for_a_while() -> None:
    now = [0.0]
    tried: list[float] = []
    made: MadeOnce[int] = MadeOnce(pause=60.0, clock=lambda: now[0])

    def make() -> int:
        tried.append(now[0])
        if len(tried) < 3:
            needed = "the model"
            raise MissingExtraError(needed, extra="nli") from OSError(needed)
        return 1

    for now[0] in (0.0, 1.0, 59.0):
        with pytest.raises(MissingExtraError, match="the model is not installed"):
            made.get("key", make)
    assert tried == [0.0]
    now[0] = 60.0
    with pytest.raises(MissingExtraError):
        made.get("key", make)
    made.forgive("key")
    assert made.known("key") is None
    assert made.get("key", make) == made.known("key") == 1
    assert tried == [0.0, 60.0, 60.0]


def test_a_model_that_is_not_there_is_looked_for_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[Source] = []

    def count(source: Source) -> Any:
        looked.append(source)
        return load(source)

    monkeypatch.setattr(_nli_engine, "load", count)
    nli = NLI(tmp_path / "none")
    for _ in range(3):
        with pytest.raises(MissingExtraError, match="hf download"):
            nli(TWO)
    assert (nli.cut_pairs, nli.alike_pairs, len(looked)) == (0, 0, 1)
    with pytest.raises(MissingExtraError):
        nli.load()
    assert len(looked) == 2


def test_to_let_go_waits_for_who_gets_it() -> None:
    made: MadeOnce[int] = MadeOnce()
    inside, leave, gone = threading.Event(), threading.Event(), threading.Event()

    def make() -> int:
        inside.set()
        assert leave.wait(60)
        return 1

    def drop() -> None:
        made.drop("key")
        gone.set()

    with ThreadPoolExecutor(2) as pool:
        got = pool.submit(made.get, "key", make)
        assert inside.wait(60)
        dropped = pool.submit(drop)
        assert not gone.is_set()
        leave.set()
        assert got.result(60) == 1
        dropped.result(60)
    assert made.known("key") is None


def test_what_cannot_be_made_is_tried_again() -> None:
    made: MadeOnce[int] = MadeOnce()
    answers = iter(["none", "1", "2"])

    def make() -> int:
        return int(next(answers))

    with pytest.raises(ValueError, match="none"):
        made.get("key", make)
    assert [made.get("key", make) for _ in range(2)] == [1, 1]
    made.drop("key")
    assert made.get("key", make) == 2
