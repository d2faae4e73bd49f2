"""The paper's nine data sets and six models: where they are and how they are asked.

Source: arXiv 2506.00245, section 5 and appendix B, and the code of its authors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from benchmarks.paper.prompts import (
    AESLC,
    SVAMP,
    WITHOUT_CONTEXT,
    XSUM,
    Prompt,
    translation,
)

__all__ = ["DATA_SETS", "MODELS", "DataSet"]

Row = Mapping[str, Any]

MODELS: Mapping[str, str] = MappingProxyType(
    {
        "llama2-7b": "meta-llama/Llama-2-7b-chat-hf",
        "llama2-13b": "meta-llama/Llama-2-13b-chat-hf",
        "llama3.1-8b": "meta-llama/Llama-3.1-8B-Instruct",
        "phi3-mini": "microsoft/Phi-3-mini-4k-instruct",
        "gemma2-2b": "google/gemma-2-2b-it",
        "mistral-nemo": "mistralai/Mistral-Nemo-Instruct-2407",
    }
)
"""Names on the Hugging Face hub of the models that the paper asks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSet:
    """A data set with the settings of the paper.

    Attributes:
        hub: Its name on the Hugging Face hub, None where it is not there.
        config: Which part of it.
        asked: The split whose questions are asked.
        shown: The split whose questions are shown with their answers; None: the rest
            of a split that is divided, or none are shown.
        share: The part of the split that is asked, None for all of it.
        fields: A row of the hub to the fields of a ``Question``.
        prompt: How a question is put.
        shots: Questions that are shown before each one with their answers.
        max_tokens: Token limit of a reply.
        seed: Fixes which questions are shown and asked.
        ends_in: What a question ends in; added where it does not.
        grader: What the paper grades answers by; summaries and translations by
            ``bert_score``, too.
    """

    hub: str | None
    config: str | None = None
    asked: str = "test"
    shown: str | None = None
    share: float | None = None
    fields: Callable[[Row], dict[str, Any]] = field(repr=False)
    prompt: Prompt = WITHOUT_CONTEXT
    shots: int = 5
    max_tokens: int = 50
    seed: int = 10
    ends_in: str = ""
    grader: str = "squad_f1"


def _squad(row: Row) -> dict[str, Any]:
    answers = [*row["answers"]["text"]]
    return {"id": row["id"], "question": row["question"], "answers": answers}


def _svamp(row: Row) -> dict[str, Any]:
    return {
        "id": row["ID"],
        "question": row["Question"],
        "context": row["Body"],
        "answers": [str(row["Answer"])],
    }


def _bioasq(row: Row) -> dict[str, Any]:
    exact: Any = row.get("exact_answer") or []
    # Of an answer with synonyms the first, as in the authors' code.
    names = [
        one[0] if one and isinstance(one, list) else one
        for one in (exact if isinstance(exact, list) else [exact])
    ]
    answers = [name for name in names if name]
    return {"id": row["id"], "question": row["body"], "answers": answers}


def _pair(question: str, answer: str) -> Callable[[Row], dict[str, Any]]:
    def fields(row: Row) -> dict[str, Any]:
        given = row[answer]
        answers = [*given] if isinstance(given, list) else [given]
        return {"id": row.get("id"), "question": row[question], "answers": answers}

    return fields


def _translated(code: str, language: str) -> DataSet:
    return DataSet(
        hub="wmt/wmt14",
        config=f"{code}-en",
        fields=lambda row: _pair(code, "en")(row["translation"]),
        prompt=translation(language),
        shots=0,
        max_tokens=107,
        seed=42,
        grader="rouge_l",
    )


DATA_SETS: Mapping[str, DataSet] = MappingProxyType(
    {
        "squad": DataSet(
            hub="rajpurkar/squad_v2", asked="validation", shown="train", fields=_squad
        ),
        "triviaqa": DataSet(
            hub="TimoImhof/TriviaQA-in-SQuAD-format",
            asked="unmodified",
            share=0.2,
            fields=_squad,
        ),
        "nq_open": DataSet(
            hub="google-research-datasets/nq_open",
            asked="validation",
            shown="train",
            fields=_pair("question", "answer"),
            ends_in="?",
        ),
        "svamp": DataSet(
            hub="ChilleD/SVAMP", shown="train", fields=_svamp, prompt=SVAMP
        ),
        "bioasq": DataSet(hub=None, asked="questions", share=0.8, fields=_bioasq),
        "xsum": DataSet(
            hub="EdinburghNLP/xsum",
            fields=_pair("document", "summary"),
            prompt=XSUM,
            shots=0,
            max_tokens=56,
            seed=42,
            grader="rouge_l",
        ),
        "aeslc": DataSet(
            hub="Yale-LILY/aeslc",
            fields=_pair("email_body", "subject_line"),
            prompt=AESLC,
            shots=0,
            max_tokens=31,
            seed=42,
            grader="rouge_l",
        ),
        "wmt14_de_en": _translated("de", "German"),
        "wmt14_fr_en": _translated("fr", "French"),
    }
)
"""The data sets by name: five of questions, two of summaries, two of translations."""
