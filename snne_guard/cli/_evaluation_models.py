"""Which models an evaluation asks, from the options that name them."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console

from snne_guard.cli._console import failure
from snne_guard.cli._models import LOCAL, chat_model
from snne_guard.evaluation.comparison.measure import Provider
from snne_guard.evaluation.comparison.providers import embedded, judged_true, weighed
from snne_guard.similarity import resolve_similarity
from snne_guard.types import Likelihood, Similarity

__all__ = ["Models", "cache_folder"]

_OPENAI = "openai:"


@dataclass(slots=True, kw_only=True)
class Models:
    """What compares answers, and what meets other needs.

    Attributes:
        similarities: Those behind which a model is.
        providers: Needs and what meets them.
    """

    similarities: list[str | Similarity] = field(
        default_factory=list["str | Similarity"]
    )
    providers: dict[str, Provider] = field(default_factory=dict[str, Provider])

    @classmethod
    def of(
        cls,
        *,
        nli: str | None,
        embedding: str | None,
        cross_encoder: str | None,
        judge: str | None,
        model: str | None,
        base_url: str | None,
    ) -> Models:
        """Return the models that the options name; weights are loaded here.

        Raises:
            typer.Exit: A chat model cannot be set up.
            SnneGuardError: A model cannot be loaded.
        """
        found = cls()
        if nli is not None:
            found._add(f"nli:{nli}").load()
        if embedding is not None:
            compare = found._add(f"embedding:{embedding}")
            compare.vectors(["loaded"])
            found.providers["hidden_states"] = embedded(compare)
        if cross_encoder is not None:
            from snne_guard.similarity.cross_encoder import CrossEncoder

            alike = CrossEncoder(cross_encoder).load()
            found.similarities.append(alike)
            found.providers["token_importance"] = weighed(alike)
        if judge is not None:
            found.similarities.append(_judge(judge, base_url))
        if model is not None:
            found.providers["p_true_logprob"] = judged_true(_itself(model, base_url))
        return found

    def _add(self, name: str) -> Any:  # noqa: ANN401 - what each family makes
        _, similarity = resolve_similarity(name)
        self.similarities.append(name)
        return similarity


def cache_folder() -> Path:
    """Return where this user's programs keep what can be computed anew."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "snne-guard"


def _judge(name: str, base_url: str | None) -> Similarity:
    from snne_guard.langchain.generate import ChatGenerate
    from snne_guard.similarity.judge import EntailmentJudge

    console = Console(stderr=True)
    model = chat_model(name, base_url=base_url, seed=None, console=console)
    return EntailmentJudge(ChatGenerate(model.bind(temperature=0), name=name))


def _local(name: str) -> Likelihood:
    from snne_guard.sampling.hf_likelihood import HuggingFaceLikelihood
    from snne_guard.sampling.huggingface import HuggingFaceModel

    try:
        return HuggingFaceLikelihood(HuggingFaceModel.from_pretrained(name))
    except Exception as error:
        told = f"the model {name!r} cannot be set up: {error}"
        raise failure(told) from error


def _itself(name: str, base_url: str | None) -> Likelihood:
    if name.startswith(LOCAL):
        return _local(name.removeprefix(LOCAL))
    if not name.startswith(_OPENAI):
        told = f"expected --model {LOCAL}NAME or {_OPENAI}NAME, got {name!r}"
        raise failure(told)
    from openai import OpenAI

    from snne_guard.sampling.openai_likelihood import OpenAILikelihood

    key = None if os.environ.get("OPENAI_API_KEY") or not base_url else "none-needed"
    client = OpenAI(base_url=base_url, api_key=key)
    return OpenAILikelihood(client, model=name.removeprefix(_OPENAI))
