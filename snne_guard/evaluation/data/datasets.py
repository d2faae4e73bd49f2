"""The paper's nine data sets: where they are, what is in them, how they are asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from snne_guard.errors import ConfigurationError
from snne_guard.evaluation.data.prompts import (
    AESLC,
    QUESTION_ANSWERING,
    STOP,
    XSUM,
    Prompt,
    translation,
)

__all__ = ["DATASETS", "Dataset", "dataset_named"]

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """A data set with the settings of the paper.

    Attributes:
        name: Its key in ``DATASETS``.
        hub: Its name on the Hugging Face hub, None where it is not there.
        config: Which part of it.
        asked: The split whose questions are asked.
        shown: The split whose questions are shown with their answers; None where
            they are the rest of a split that ``share`` divides, or none are shown.
        share: The part of the split that is asked, None for all of it.
        columns: What a row must have.
        fields: A row to ``question``, ``answers``, and where known ``id``, ``context``.
        prompt: How a question is put.
        n_shots: Questions that are shown with their answers.
        max_tokens: Token limit of a reply.
        seed: Fixes which questions are shown and asked.
        answerable: Whether only questions with an answer are asked.
        ends_in: What a question ends in; added where it does not.
        n_questions: Questions that are asked where nobody says how many.
        temperature: Of the samples.
        answer_temperature: Of the answer.
        stop: Texts that end a reply.

    Source:
        https://arxiv.org/abs/2506.00245, section 5 and appendix, and its code.
    """

    name: str
    hub: str | None
    config: str | None = None
    asked: str
    shown: str | None = None
    share: float | None = None
    columns: tuple[str, ...]
    fields: Callable[[Row], dict[str, Any]] = field(repr=False)
    prompt: Prompt = field(default=QUESTION_ANSWERING, repr=False)
    n_shots: int = 5
    max_tokens: int = 50
    seed: int = 10
    answerable: bool = False
    ends_in: str = ""
    n_questions: int = 400
    temperature: float = 1.0
    answer_temperature: float = 0.1
    stop: tuple[str, ...] = STOP


def dataset_named(name: str | Dataset, /) -> Dataset:
    """Return a data set by its name.

    Raises:
        ConfigurationError: There is none of that name.

    Example:
        >>> dataset_named("svamp").hub
        'ChilleD/SVAMP'
    """
    if isinstance(name, Dataset):
        return name
    if name in DATASETS:
        return DATASETS[name]
    msg = f"expected a data set of {sorted(DATASETS)}, got {name!r}"
    raise ConfigurationError(msg)


def _squad(row: Row) -> dict[str, Any]:
    return {
        "id": row["id"],
        "question": row["question"],
        "answers": list(row["answers"]["text"]),
    }


def _nq_open(row: Row) -> dict[str, Any]:
    return {"question": row["question"], "answers": list(row["answer"])}


def _svamp(row: Row) -> dict[str, Any]:
    return {
        "id": row["ID"],
        "question": row["Question"],
        "context": row["Body"],
        "answers": [str(row["Answer"])],
    }


def _bioasq(row: Row) -> dict[str, Any]:
    exact = row["exact_answer"]
    names: list[Any] = exact if _is_list(exact) else [exact]
    # Of an answer with synonyms the first one, as in the authors' code.
    firsts: list[Any] = [name[0] if name and _is_list(name) else name for name in names]
    return {
        "id": row["id"],
        "question": row["body"],
        "answers": [name for name in firsts if name],
    }


def _is_list(value: object) -> bool:
    # A plain bool: narrowing to list leaves a checker with unknown elements.
    return isinstance(value, list)


def _xsum(row: Row) -> dict[str, Any]:
    return {
        "id": row["id"],
        "question": row["document"],
        "answers": [row["summary"]],
    }


def _aeslc(row: Row) -> dict[str, Any]:
    return {"question": row["email_body"], "answers": [row["subject_line"]]}


def _from(language: str) -> Callable[[Row], dict[str, Any]]:
    def wmt14(row: Row) -> dict[str, Any]:
        pair = row["translation"]
        return {"question": pair[language], "answers": [pair["en"]]}

    return wmt14


def _translation(code: str, language: str) -> Dataset:
    return Dataset(
        name=f"wmt14_{code}_en",
        hub="wmt/wmt14",
        config=f"{code}-en",
        asked="test",
        columns=("translation",),
        fields=_from(code),
        prompt=translation(language),
        n_shots=0,
        max_tokens=107,
        seed=42,
    )


_ALL = (
    Dataset(
        name="squad",
        hub="rajpurkar/squad_v2",
        asked="validation",
        shown="train",
        columns=("id", "question", "answers"),
        fields=_squad,
        answerable=True,
    ),
    Dataset(
        name="triviaqa",
        hub="TimoImhof/TriviaQA-in-SQuAD-format",
        asked="unmodified",
        share=0.2,
        columns=("id", "question", "answers"),
        fields=_squad,
    ),
    Dataset(
        name="nq_open",
        hub="google-research-datasets/nq_open",
        asked="validation",
        shown="train",
        columns=("question", "answer"),
        fields=_nq_open,
        ends_in="?",
    ),
    Dataset(
        name="svamp",
        hub="ChilleD/SVAMP",
        asked="test",
        shown="train",
        columns=("ID", "Body", "Question", "Answer"),
        fields=_svamp,
        prompt=Prompt(
            instruction=QUESTION_ANSWERING.instruction,
            context="Context: {context}\n",
            item=QUESTION_ANSWERING.item,
        ),
    ),
    Dataset(
        name="bioasq",
        hub=None,
        asked="questions",
        share=0.8,
        columns=("id", "body", "exact_answer"),
        fields=_bioasq,
    ),
    Dataset(
        name="xsum",
        hub="EdinburghNLP/xsum",
        asked="test",
        columns=("id", "document", "summary"),
        fields=_xsum,
        prompt=XSUM,
        n_shots=0,
        max_tokens=56,
        seed=42,
    ),
    Dataset(
        name="aeslc",
        hub="Yale-LILY/aeslc",
        asked="test",
        columns=("email_body", "subject_line"),
        fields=_aeslc,
        prompt=AESLC,
        n_shots=0,
        max_tokens=31,
        seed=42,
    ),
    _translation("de", "German"),
    _translation("fr", "French"),
)

DATASETS: Mapping[str, Dataset] = MappingProxyType({each.name: each for each in _ALL})
"""The data sets by name."""
