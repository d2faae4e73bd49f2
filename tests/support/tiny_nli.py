"""Tiny classifiers of pairs with random weights, made on the spot; a slow oracle."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    BertConfig,
    BertForSequenceClassification,
    DebertaV2Config,
    DebertaV2ForSequenceClassification,
    PreTrainedTokenizerFast,
    RobertaConfig,
    RobertaForSequenceClassification,
)

from snne_guard.similarity import _nli_engine, _nli_load
from snne_guard.similarity.nli import NLI

__all__ = [
    "LABELS",
    "WORDS",
    "Counted",
    "make_tokenizer",
    "one_by_one",
    "save_model",
    "save_sentencepiece",
]

# On a busy machine threads wait for one another longer than they work on so little.
torch.set_num_threads(1)

LABELS = ("contradiction", "neutral", "entailment")
WORDS = (  # noqa: SIM905 - words read better in one text
    "yes no the a is it in of not paris rome lyon capital france city what which why"
).split()
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
_NAMES = ("pad_token", "unk_token", "cls_token", "sep_token")
_ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789.?!,"
_VOCABULARY = [
    *SPECIAL,
    *WORDS,
    *_ALPHABET,
    *(f"##{letter}" for letter in _ALPHABET),
]


def make_tokenizer(**options: Any) -> Any:
    """Return a tokenizer of lower-case words and letters that knows no other script."""
    ids = {token: place for place, token in enumerate(_VOCABULARY)}
    inner = Tokenizer(models.WordPiece(vocab=ids, unk_token="[UNK]"))  # noqa: S106
    inner.normalizer = normalizers.Lowercase()
    inner.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    inner.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    names = dict(zip(_NAMES, SPECIAL, strict=True))
    return PreTrainedTokenizerFast(tokenizer_object=inner, **{**names, **options})


def save_model(
    folder: Path,
    *,
    kind: str = "deberta",
    labels: Sequence[str] | Mapping[int, str] = LABELS,
    seed: int = 0,
    places: int = 128,
    tokenizer: Any = None,
    **options: Any,
) -> str:
    """Save a classifier whose verdicts are neither flat nor peaked; return its path.

    ``options`` are those of its configuration.
    """
    named = dict(labels) if isinstance(labels, Mapping) else dict(enumerate(labels))
    size: dict[str, Any] = {
        "vocab_size": len(_VOCABULARY),
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 64,
        "max_position_embeddings": places,
        "initializer_range": 0.6,
        "pad_token_id": 0,
        "id2label": named,
        "label2id": {name: place for place, name in named.items()},
        **options,
    }
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = _MODELS[kind](size)
    model.eval().save_pretrained(folder)
    (tokenizer or make_tokenizer()).save_pretrained(folder)
    return str(folder)


def _deberta(size: dict[str, Any]) -> Any:
    # As the paper's model is built: relative positions, a convolution, no types.
    own: dict[str, Any] = {
        "relative_attention": True,
        "pos_att_type": ["p2c", "c2p"],
        "norm_rel_ebd": "layer_norm",
        "position_buckets": 16,
        "share_att_key": True,
        "type_vocab_size": 0,
        "position_biased_input": False,
        "conv_kernel_size": 3,
    }
    return DebertaV2ForSequenceClassification(DebertaV2Config(**size, **own))


def _bert(size: dict[str, Any]) -> Any:
    return BertForSequenceClassification(BertConfig(**size))


def _roberta(size: dict[str, Any]) -> Any:
    return RobertaForSequenceClassification(RobertaConfig(**size))


_MODELS = {"deberta": _deberta, "bert": _bert, "roberta": _roberta}


@functools.cache
def _plain_model(folder: str, dtype: torch.dtype) -> tuple[Any, Any]:
    auto_model: Any = AutoModelForSequenceClassification
    auto_tokenizer: Any = AutoTokenizer
    model = auto_model.from_pretrained(folder, dtype=dtype)
    return auto_tokenizer.from_pretrained(folder), model.eval()


def one_by_one(
    folder: str,
    texts: Sequence[str],
    *,
    question: str | None = None,
    dtype: torch.dtype = torch.float64,
) -> NDArray[np.float64]:
    """Return the (n, n, classes) softmax, each pair alone through its own model.

    The diagonal is 0.
    """
    tokenizer, model = _plain_model(folder, dtype)
    n = len(texts)
    sides = [text if question is None else f"{question} {text}" for text in texts]
    table = np.zeros((n, n, model.config.num_labels))
    for i in range(n):
        for j in range(n):
            if i == j:
                continue
            inputs = tokenizer(sides[i], sides[j], return_tensors="pt")
            with torch.inference_mode():
                logits = model(**inputs).logits[0].double().numpy()
            weights = np.exp(logits - logits.max())
            table[i, j] = weights / weights.sum()
    return table


class Counted:
    """Watches what goes through the shared models of one path, and spoils it.

    Attributes:
        path: The path.
        loads: How often the model was loaded.
        shapes: Rows and columns of each batch that went through.
        most: Rows above which the memory does not suffice.
        scale: What the outputs are multiplied with.
        before: Called before each batch.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.loads = 0
        self.shapes: list[tuple[int, int]] = []
        self.most = 1_000_000
        self.scale = 1.0
        self.before: Callable[[], object] = int
        self._patch = pytest.MonkeyPatch()

    @property
    def pairs(self) -> int:
        """Pairs that went through the model."""
        return sum(rows for rows, _ in self.shapes)

    def __enter__(self) -> Self:
        plain = _nli_load.load

        def load(source: Any) -> Any:
            self.loads += 1
            loaded = plain(source)
            forward = loaded.model.forward

            def watched(*, input_ids: Any, **rest: Any) -> Any:
                self.before()
                if len(input_ids) > self.most:
                    raise torch.OutOfMemoryError
                self.shapes.append(tuple(input_ids.shape))
                output = forward(input_ids=input_ids, **rest)
                output.logits = output.logits * self.scale
                return output

            loaded.model.forward = watched
            return loaded

        self._forget()
        self._patch.setattr(_nli_engine, "load", load)
        return self

    def __exit__(self, *_: object) -> None:
        self._patch.undo()
        self._forget()

    def _forget(self) -> None:
        for dtype in ("float32", "float64"):
            NLI(self.path, dtype=dtype).unload()


def save_sentencepiece(folder: Path) -> str:
    """Save a model whose vocabulary is a file of sentencepiece; return its path."""
    pytest.importorskip("sentencepiece")
    proto = importlib.import_module("sentencepiece.sentencepiece_model_pb2")
    vocabulary = proto.ModelProto()
    kinds = {"[PAD]": 3, "[CLS]": 3, "[SEP]": 3, "[UNK]": 2}
    words = ["\u2581", *(f"\u2581{word}" for word in WORDS), *_ALPHABET]
    for piece in [*kinds, *words]:
        entry = vocabulary.pieces.add()
        entry.piece, entry.type = piece, kinds.get(piece, 1)
        entry.score = -float(len(piece)) if entry.type == 1 else 0.0
    vocabulary.trainer_spec.model_type, vocabulary.trainer_spec.unk_id = 1, 3
    vocabulary.normalizer_spec.name = "identity"
    path = save_model(folder)
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer_config.json").write_text('{"vocab_type": "spm"}')
    (folder / "spm.model").write_bytes(vocabulary.SerializeToString())
    return path
