"""BERTScore as grader: any model of Hugging Face, loaded once, asked in batches."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

from snne_guard.errors import ConfigurationError, MissingExtraError
from snne_guard.evaluation.grading.abstention import is_abstention, is_unanswerable
from snne_guard.evaluation.grading.grade import Grade, check_threshold, graded
from snne_guard.evaluation.recording.recordings import Recording

__all__ = ["BERT_SCORE_MODEL", "BertScoreGrader"]

BERT_SCORE_MODEL = "microsoft/deberta-v2-xlarge-mnli"
"""The paper's model; bert-score takes its 17th layer."""

_PAIRS_AT_ONCE = 512  # since bert-score keeps every embedding of a call in memory
_PLAIN_WINDOW = 512
_one_at_a_time = threading.Lock()


class BertScoreGrader:
    """F1 of BERTScore against the references, the best of them; ``bert_score``.

    Tokens of answer and reference are matched by the cosine of their embeddings in one
    layer of a model; without weights for rare words and without rescaling, as in the
    paper. Unrelated texts score well above 0 then. An answer that is empty scores 0,
    and empty references are left out. The model is loaded at the first grade, in
    float32, once for all graders with the same one.

    Args:
        model: Name on the Hugging Face Hub, or folder. The paper's has 900 million
            parameters.
        num_layers: The layer, from 1. None: the one that bert-score has found best, of
            models that it knows.
        threshold: Smallest F1 that counts as right. The paper draws no such line, so
            that by default there is a quality and no AUROC.
        batch_size: Texts that go through the model at once.
        device: Such as ``"cpu"`` or ``"cuda:1"``; None: a GPU if there is one.

    Raises:
        MissingExtraError: bert-score is not installed; at the first grade: the model is
            not there.
        ConfigurationError: An option makes no sense, or nobody knows the layer.

    Source:
        Zhang et al., BERTScore, ICLR 2020; bert-score 0.3.13.
    """

    lexical = False

    def __init__(
        self,
        model: str = BERT_SCORE_MODEL,
        *,
        num_layers: int | None = None,
        threshold: float | None = None,
        batch_size: int = 64,
        device: str | None = None,
    ) -> None:
        best: int | None = _bert_score().model2layers.get(model)
        layers = best if num_layers is None else num_layers
        if layers is None:
            msg = (
                f"expected num_layers for {model!r}, since bert-score does not know it"
            )
            raise ConfigurationError(msg)
        for option, value in (("num_layers", layers), ("batch_size", batch_size)):
            if value < 1:
                msg = f"expected {option} of at least 1, got {value}"
                raise ConfigurationError(msg)
        changed = [
            *([f":{model}"] if model != BERT_SCORE_MODEL else []),
            *([f"[num_layers={layers}]"] if layers != best else []),
            *([f"[threshold={threshold}]"] if threshold is not None else []),
        ]
        self._name = "".join(["bert_score", *changed])
        check_threshold(threshold, self._name)
        self._what = model, layers, device
        self._threshold = threshold
        self._batch_size = batch_size

    @property
    def name(self) -> str:
        """What its figures are labelled with: the model too, if it is another one."""
        return self._name

    def __call__(self, recording: Recording, /) -> Grade | None:
        """Return the grade of one recording, None without references."""
        return self.grade_all([recording])[0]

    def grade_all(self, recordings: Sequence[Recording], /) -> list[Grade | None]:
        """Return the grade of each recording, None for each without references.

        Raises:
            MissingExtraError: The model is not there.
            ConfigurationError: It has fewer layers than were asked for.
        """
        pairs = [_pairs(recording) for recording in recordings]
        distinct = list(dict.fromkeys(pair for some in pairs for pair in some))
        known = dict(zip(distinct, self._f1(distinct), strict=True))
        return [
            self._grade(recording, [known[pair] for pair in some])
            for recording, some in zip(recordings, pairs, strict=True)
        ]

    def _grade(self, recording: Recording, f1: Sequence[float]) -> Grade | None:
        if is_unanswerable(recording):
            quality = float(is_abstention(recording.main_answer))
        elif _references(recording):
            quality = max(f1, default=0.0)
        else:
            return None
        return graded(quality, self._threshold, self._name)

    def _f1(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        found: list[float] = []
        for start in range(0, len(pairs), _PAIRS_AT_ONCE):
            some = pairs[start : start + _PAIRS_AT_ONCE]
            with _one_at_a_time:
                scores = _loaded(*self._what).score(some, self._batch_size)
            # A cosine can be a little below 0, and above 1 in its last digits.
            found += [min(max(one, 0.0), 1.0) for one in scores[:, 2].tolist()]
        return found


def _references(recording: Recording) -> list[str]:
    return [text for text in recording.answers or () if text.strip()]


def _pairs(recording: Recording) -> list[tuple[str, str]]:
    """Return the answer beside each of its references, where there is both."""
    answer = recording.main_answer
    if is_unanswerable(recording) or not answer.strip():
        return []
    return [(answer, text) for text in _references(recording)]


class _Loaded(NamedTuple):
    model: Any
    tokenizer: Any

    def score(self, pairs: Sequence[tuple[str, str]], batch_size: int) -> Any:  # noqa: ANN401
        """Return precision, recall and F1 of each answer with its reference."""
        weights: defaultdict[int, float] = defaultdict(lambda: 1.0)
        weights |= {self.tokenizer.sep_token_id: 0.0, self.tokenizer.cls_token_id: 0.0}
        return _bert_score().bert_cos_score_idf(
            self.model,
            [reference for _, reference in pairs],
            [answer for answer, _ in pairs],
            self.tokenizer,
            weights,
            batch_size=batch_size,
            device=self.model.device,
        )


@cache
def _bert_score() -> Any:  # noqa: ANN401 - bert-score has no types
    try:
        from bert_score import utils
    except ImportError as error:
        needed = f"{error.name or 'bert-score'} (for BERTScore)"
        raise MissingExtraError(needed, extra="eval") from error
    return utils


@cache
def _loaded(name: str, layers: int, device: str | None) -> _Loaded:
    import torch

    utils = _bert_score()
    try:
        tokenizer = utils.get_tokenizer(name)
        model = utils.get_model(name, layers)
    except OSError as error:
        command = (
            f"hf download {name} (where there is no way to the Hugging Face Hub: pass "
            "the path of a folder that holds the model)"
        )
        needed = f"the model {name!r}"
        raise MissingExtraError(needed, extra="eval", command=command) from error
    except AssertionError as error:
        msg = f"expected num_layers that {name!r} has, got {layers}"
        raise ConfigurationError(msg) from error
    # Many tokenizers say nothing, which Rust cannot hold.
    tokenizer.model_max_length = min(tokenizer.model_max_length, _window(model))
    if device is None:
        device = "cuda" if torch.cuda.is_available() else "cpu"
    return _Loaded(model.float().to(device), tokenizer)


def _window(model: Any) -> int:  # noqa: ANN401 - transformers has no types
    said = getattr(model.config, "max_position_embeddings", None)
    window = said if isinstance(said, int) and said > 0 else _PLAIN_WINDOW
    table = getattr(getattr(model, "embeddings", None), "position_embeddings", None)
    # Those of RoBERTa begin behind the one of the padding.
    padding = getattr(table, "padding_idx", None)
    return window if padding is None else window - padding - 1
