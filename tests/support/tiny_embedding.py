"""A real sentence-transformers model of a few words, made on the spot."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import numpy as np

__all__ = ["WORDS", "save_embedding"]

WORDS = ("paris", "lyon", "is", "the", "capital", "of", "france", "[UNK]")
"""What it knows."""


def save_embedding(folder: Path) -> Path:
    """Save a model that takes the mean of a random vector a word; return its path."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    library = import_module("sentence_transformers")
    static = import_module(
        "sentence_transformers.sentence_transformer.modules"
    ).StaticEmbedding
    vocabulary = {word: place for place, word in enumerate(WORDS)}
    inner = Tokenizer(models.WordLevel(vocab=vocabulary, unk_token="[UNK]"))  # noqa: S106
    inner.normalizer = normalizers.Lowercase()
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    weights = np.random.default_rng(7).normal(size=(len(WORDS), 6)).astype(np.float32)
    library.SentenceTransformer(modules=[static(inner, weights)]).save(str(folder))
    return folder
