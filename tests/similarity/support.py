"""Tiny models with random weights, made on the spot."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from snne_guard.types import FloatArray

__all__ = ["EMBEDDED", "is_similarity", "save_classifier", "save_embedding"]

EMBEDDED = ("paris", "lyon", "is", "the", "capital", "of", "france", "[UNK]")
_WORDS = "yes no the a is it in of not paris rome lyon capital france which".split()  # noqa: SIM905 - words
_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789.?!,"
_VOCABULARY = [*_SPECIAL, *_WORDS, *_LETTERS, *(f"##{each}" for each in _LETTERS)]


def is_similarity(matrix: FloatArray, n: int) -> bool:
    """Return whether a matrix is what a similarity must give."""
    return (
        matrix.shape == (n, n)
        and matrix.dtype == np.float64
        and bool((matrix == matrix.T).all())
        and bool(((matrix >= 0) & (matrix <= 1)).all())
        and bool((matrix.diagonal() == 1).all())
    )


def save_classifier(folder: Path, labels: Sequence[str], *, places: int = 64) -> str:
    """Save a BERT that classifies pairs of Latin text, and return its path."""
    import torch
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import (
        BertConfig,
        BertForSequenceClassification,
        PreTrainedTokenizerFast,
    )

    ids = {token: place for place, token in enumerate(_VOCABULARY)}
    inner = Tokenizer(models.WordPiece(vocab=ids, unk_token="[UNK]"))  # noqa: S106 - no password
    inner.normalizer = normalizers.Lowercase()
    inner.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    inner.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    names = ("pad_token", "unk_token", "cls_token", "sep_token")
    options: dict[str, Any] = dict(zip(names, _SPECIAL, strict=True))
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=inner, model_max_length=places, **options
    )
    torch.set_num_threads(1)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = BertForSequenceClassification(
            BertConfig(
                vocab_size=len(_VOCABULARY),
                hidden_size=32,
                num_hidden_layers=2,
                num_attention_heads=4,
                intermediate_size=64,
                max_position_embeddings=places,
                initializer_range=0.6,
                id2label=dict(enumerate(labels)),
                label2id={label: place for place, label in enumerate(labels)},
            )
        )
    model.eval().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def save_embedding(folder: Path) -> str:
    """Save a model that takes the mean of a random vector a word; return its path."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    library = import_module("sentence_transformers")
    static = import_module(
        "sentence_transformers.sentence_transformer.modules"
    ).StaticEmbedding
    vocabulary = {word: place for place, word in enumerate(EMBEDDED)}
    inner = Tokenizer(models.WordLevel(vocab=vocabulary, unk_token="[UNK]"))  # noqa: S106 - no password
    inner.normalizer = normalizers.Lowercase()
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    weights = np.random.default_rng(7).normal(size=(len(EMBEDDED), 6))
    model = library.SentenceTransformer(
        modules=[static(inner, weights.astype(np.float32))]
    )
    model.save(str(folder))
    return str(folder)
