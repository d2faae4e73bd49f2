"""The uncertainty of each part of an answer."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import Any, cast

from snne_guard.arrays import as_numbers
from snne_guard.decision import Threshold
from snne_guard.errors import ConfigurationError, InputError
from snne_guard.similarity import NLI, resolve_similarity
from snne_guard.similarity.pairs import check_texts
from snne_guard.spans.cutting import Part, cut
from snne_guard.spans.grounding import ground, resolve_grounding, with_support
from snne_guard.spans.matching import NLIMatch, word_match
from snne_guard.types import FloatArray, Grounding, Span, SpanSimilarity

_HALF = 0.5
_FIELDS = ("main_answer", "samples", "sentences", "sentence_labels", "id")


def score_spans(
    answer: str,
    samples: Sequence[str],
    *,
    sentences: Sequence[str] | None = None,
    question: str | None = None,
    context: str | None = None,
    similarity: str | NLI | SpanSimilarity | None = None,
    grounding: str | Grounding = "words",
) -> list[Span]:
    r"""Return the uncertainty of each sentence of an answer; never calls the model.

    It is the anchored SNNE of a sentence. If :math:`f_j` is how far sample j says it,

    .. math:: SNNE = -\log\Big(e + \sum_{j=1}^k \exp(f_j)\Big)

    mapped to [0, 1] as for whole answers: the mean of :math:`(e - e^{f_j}) / (e - 1)`.

    Args:
        answer: The answer, as plain text or Markdown.
        samples: The ``k`` samples, at least one.
        sentences: The parts of the answer, in order. None cuts it into sentences, list
            items, table rows and blocks of code.
        question: The question; its words count for little.
        context: The text that the model was given to answer from. Each span then says
            how far it is ``grounded`` in it, and which numbers and names are
            ``missing``; the uncertainty does not depend on it.
        similarity: What compares the parts with the samples: None compares words;
            ``"nli:MODEL"``, an ``NLI``, a ``SpanJudge``, or any ``SpanSimilarity``.
        grounding: What compares them with the context: ``"words"``, ``"nli:MODEL"``,
            ``"cross_encoder:MODEL"``, or a function of the sentences and the context.

    Returns:
        The spans in order, without overlap. An empty list for a blank answer.

    Raises:
        InputError: There are no samples, something is not a text, or a sentence is not
            in the answer after the one before it.
        ConfigurationError: The similarity or the grounding makes no sense.
        MissingExtraError: The extra ``spans``, or ``nli``, is not installed.
        ScoringError: A model that compares failed.

    Example:
        >>> answer = "Ida Frick was born in Bern. She won a medal in 1907."
        >>> samples = ["Ida Frick was born in Bern.", "She was born in Bern in 1880."]
        >>> for span in score_spans(answer, samples):
        ...     print(answer[span.start : span.end], round(span.uncertainty, 2))
        Ida Frick was born in Bern. 0.35
        She won a medal in 1907. 0.99
    """
    check_texts([answer, *([] if context is None else [context])])
    check_texts(samples)
    if not samples:
        msg = "expected at least one sample, got none"
        raise InputError(msg)
    compare = resolve_span_similarity(similarity)
    if grounding == "judge":
        msg = 'grounding="judge" asks the model of a guard; give a function here'
        raise ConfigurationError(msg)
    _, by = resolve_grounding(grounding)
    parts = cut(answer) if sentences is None else _located(answer, sentences)
    if not parts:
        return []
    texts = [*samples]
    pieces = [answer[start:end] for start, end in parts]
    matches = compare(pieces, texts, question=question)
    shape = (len(parts), len(texts))
    matrix = as_numbers(matches, what="matches", shape=shape, least=0, most=1)
    spans: list[Span] = []
    for (start, end), row in zip(parts, matrix, strict=True):
        u, supported = _uncertainty(row), int((row > _HALF).sum())
        spans.append(Span(start=start, end=end, uncertainty=u, supported=supported))
    if context is None:
        return spans
    return with_support(spans, ground(answer, context, by=by, parts=parts))


def resolve_span_similarity(similarity: object, /) -> SpanSimilarity:
    """Return the similarity that an option of ``score_spans`` names."""
    if similarity is None:
        return word_match
    given: Any = similarity
    if isinstance(similarity, str):
        _, given = resolve_similarity(similarity)
    if isinstance(given, NLI):
        return NLIMatch(given)
    if isinstance(similarity, str) or not callable(given):
        msg = (
            'expected "nli:MODEL" or a function of parts and texts to compare spans, '
            f"got {similarity!r}"
        )
        raise ConfigurationError(msg)
    return cast("SpanSimilarity", given)


def calibrate_spans(
    rows: Iterable[Mapping[str, Any]],
    *,
    alpha: float,
    delta: float = 0.1,
    similarity: str | SpanSimilarity | None = None,
) -> Threshold:
    """Return a threshold for parts that carries a guarantee.

    The sentences of one answer are right or wrong together more often than by chance,
    so one of each answer is used, chosen by the answer's id. The guarantee is about a
    sentence that is chosen in the same way: at most the share ``alpha`` of those with
    an uncertainty up to the threshold is wrong, with confidence 1 - ``delta``.

    Args:
        rows: Recordings that are labelled by sentence, each with ``id``,
            ``main_answer``, ``samples``, ``sentences`` and, for each of these, a 1
            (right) or 0 (wrong) in ``sentence_labels``; ``question`` where known.
        alpha: Largest share of wrong sentences among those that are not marked.
        delta: Probability that the guarantee fails.
        similarity: As for ``score_spans``.

    Raises:
        InputError: A field is missing, or labels do not fit the sentences; as for
            ``Threshold.for_error_rate``, too.

    Example:
        >>> oak, elm = "It is oak.", "It is elm."
        >>> row = {"main_answer": oak, "sentences": [oak]}
        >>> right = row | {"samples": [oak], "sentence_labels": [1]}
        >>> wrong = row | {"samples": [elm], "sentence_labels": [0]}
        >>> rows = [{"id": n, **(right if n % 2 else wrong)} for n in range(200)]
        >>> calibrate_spans(rows, alpha=0.1).status
        'certified'
    """
    us: list[float] = []
    labels: list[Any] = []
    for row in rows:
        spans, known = labelled_spans(row, similarity=similarity)
        if spans:
            # By the id, so that nobody can draw until a threshold is to their liking.
            place = Random(str(row["id"])).randrange(len(spans))  # noqa: S311 - no secret
            us.append(spans[place].uncertainty)
            labels.append(known[place])
    return Threshold.for_error_rate(us, labels, alpha=alpha, delta=delta)


def labelled_spans(
    row: Mapping[str, Any], *, similarity: str | SpanSimilarity | None = None
) -> tuple[list[Span], Sequence[Any]]:
    """Return the sentences of a recording, and the label of each."""
    where = f"recording {row.get('id')!r}"
    if missing := [name for name in _FIELDS if row.get(name) is None]:
        msg = f"{where}: expected the field {missing[0]!r}, got none"
        raise InputError(msg)
    sentences, labels = row["sentences"], row["sentence_labels"]
    if not (isinstance(sentences, list | tuple) and isinstance(labels, list | tuple)):
        msg = f"{where}: expected lists of sentences and sentence_labels"
        raise InputError(msg)
    n = len(sentences)
    if len(labels) != n:
        msg = f"{where}: expected {n} sentence_labels, got {len(labels)}"
        raise InputError(msg)
    spans = score_spans(
        row["main_answer"],
        row["samples"],
        sentences=sentences,
        question=row.get("question"),
        context=row.get("context"),
        similarity=similarity,
    )
    return spans, labels


def _uncertainty(row: FloatArray) -> float:
    """Return the anchored SNNE of the row (1, f_1, ..., f_k), mapped to [0, 1]."""
    # Of the mean of exp(f) alone: e, the part itself, is in every sum.
    return 1.0 - math.fsum(map(math.expm1, row.tolist())) / len(row) / math.expm1(1)


def _located(answer: str, sentences: Sequence[str]) -> list[Part]:
    """Return the positions of given sentences."""
    check_texts(sentences)
    parts: list[Part] = []
    end = 0
    for number, sentence in enumerate(sentences, 1):
        start = answer.find(sentence, end)
        if start < 0:
            msg = f"sentence {number} is not in the answer, or not in this order"
            raise InputError(msg)
        end = start + len(sentence)
        parts.append(Part(start, end))
    return parts
