"""Draw answers and samples as the paper does, into a recording."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.paper.data_sets import DATA_SETS, MODELS
from benchmarks.paper.prompts import STOP, Shot, examples
from benchmarks.paper.questions import Chosen
from snne_guard.cli.models import chat_model
from snne_guard.cost import Cost
from snne_guard.errors import InputError
from snne_guard.evaluation import Question, squad_f1
from snne_guard.evaluation.recorded_calls import drawn_fields
from snne_guard.evaluation.recorder import RecordingRun, record
from snne_guard.huggingface import Completion, GenerationSettings, HuggingFaceModel
from snne_guard.scorers.likelihood import p_true_prompt
from snne_guard.types import Assessment, Reply

__all__ = ["Run", "draw", "draw_here", "draw_served", "load"]

_SENT_STOP = [text for text in STOP if text == "\n" or "\n" not in text]
"""The same ends in three texts: OpenAI takes four at most."""

ANSWER_TEMPERATURE = 0.1
_RIGHT = 0.5
_TOKEN_LIMIT = 4096
_RESERVE = 200
_DIGITS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """How the answers to a data set are drawn.

    Attributes:
        data_set: Its name.
        model: A name in ``MODELS``, ``"hf:NAME"`` for another model of the hub or a
            folder, ``"hf:embedded"`` for the embedded model by ``transformers``, or one
            that the commands of snne-guard take.
        samples: Samples of each question.
        temperature: Theirs.
        seed: Fixes what is drawn; None leaves that to a served model, and is 0 here.
        batch: Questions that a local model answers together.
    """

    data_set: str
    model: str
    samples: int = 10
    temperature: float = 1.0
    seed: int | None = None
    batch: int = 4

    @property
    def is_local(self) -> bool:
        """Whether the model runs here and continues the prompt as it is."""
        return self.model in MODELS or self.model.startswith("hf:")

    def settings(self) -> dict[str, Any]:
        """Return what each line of the recording has as its settings."""
        return {
            "model": MODELS.get(self.model, self.model),
            "temperature": self.temperature,
            "answer_temperature": ANSWER_TEMPERATURE,
            "samples": self.samples,
            "seed": self.seed,
            "max_tokens": DATA_SETS[self.data_set].max_tokens,
            "stop": [*STOP],
            "completion": self.is_local,
            "dataset": {"name": self.data_set},
        }


def draw(run: Run, chosen: Chosen, path: Path) -> RecordingRun:
    """Draw what a recording does not have yet, and append it."""
    with RecordingRun(
        path, chosen.questions, settings=run.settings(), n_samples=run.samples
    ) as drawing:
        if run.is_local:
            draw_here(run, load(run.model), chosen, drawing)
        else:
            draw_served(run, drawing)
    return drawing


# -- A model that is served, or embedded -----------------------------------------------


def draw_served(run: Run, drawing: RecordingRun) -> None:
    """Send each prompt as a user's message, to any model of the commands."""
    from snne_guard.langchain import SNNEGuard

    chat = chat_model(
        run.model,
        temperature=ANSWER_TEMPERATURE,
        max_tokens=DATA_SETS[run.data_set].max_tokens,
        seed=run.seed,
    )
    guard = SNNEGuard(
        chat.bind(stop=_SENT_STOP),
        n=run.samples + 1,
        temperature=run.temperature,
        schedule="answer_first",
        question=lambda _: "",  # nothing is compared here
    )

    async def ask(question: Question) -> Assessment:
        prompt = [("human", question.extra["prompt"])]
        made: Assessment = await guard.aassess(prompt)
        samples = [replace(each, text=each.text.strip()) for each in made.samples]
        answer = made.answer and replace(made.answer, text=made.answer.text.strip())
        return replace(made, answer=answer, samples=(*samples,))

    asyncio.run(record(drawing, ask))


# -- A model of Hugging Face, by completion --------------------------------------------


def load(name: str) -> HuggingFaceModel:
    """Load a model by its name in the paper, or as ``"hf:NAME"``."""
    if name == "hf:embedded":
        from snne_guard.langchain.embedded import model_file

        file = model_file()
        return HuggingFaceModel.from_pretrained(str(file.parent), gguf_file=file.name)
    return HuggingFaceModel.from_pretrained(MODELS.get(name, name.removeprefix("hf:")))


def draw_here(
    run: Run, model: HuggingFaceModel, chosen: Chosen, drawing: RecordingRun
) -> None:
    """Continue each prompt as it is, without a chat template.

    Each line has also what EigenScore and pTrue need: the hidden state of the last
    token of each reply at the last layer, and how likely the model calls the answer
    true, after the examples.
    """
    fitting: list[Question] = []
    for question in drawing.left:
        if _fits(model, question):
            fitting.append(question)
        else:
            why = "the prompt is too long for the model"
            drawing.write(question, {}, cost=None, error=why)
    few_shot = _p_true_examples(run, model, chosen.for_p_true) if fitting else ""
    for question, replies in _replies(run, model, fitting):
        measured = {
            "p_true_logprob": _p_true_logprob(model, question, replies, few_shot),
            "hidden_states": [*map(_state, replies)],
        }
        answer, *samples = (_sample(reply, model) for reply in replies)
        made = Assessment(
            id=question.id,
            answer=answer,
            samples=(*samples,),
            cost=_cost(replies),
        )
        drawn = {**drawn_fields(made, settings=drawing.settings), **measured}
        drawing.write(question, drawn, cost=made.cost, error=None)


def _fits(model: HuggingFaceModel, question: Question) -> bool:
    window = model.context_window
    tokens = len(model.tokenizer(question.extra["prompt"])["input_ids"])
    return window is None or tokens < window


def _replies(
    run: Run, model: HuggingFaceModel, questions: Sequence[Question]
) -> Iterator[tuple[Question, list[Completion]]]:
    """Yield each question with its answer and samples."""
    config, seed = model.model.generation_config, run.seed or 0
    settings = GenerationSettings(
        max_tokens=DATA_SETS[run.data_set].max_tokens,
        temperature=run.temperature,
        # What the authors left to transformers and to the model's own settings.
        top_k=(50 if config.top_k is None else config.top_k) or None,
        top_p=config.top_p,
        stop=STOP,
        seed=2 * seed,
        hidden_layer=-1,
    )
    # With a seed of its own, else the answer would be drawn as the first sample is.
    cold = replace(settings, temperature=ANSWER_TEMPERATURE, seed=2 * seed + 1)
    for start in range(0, len(questions), run.batch):
        part = questions[start : start + run.batch]
        prompts = [str(question.extra["prompt"]) for question in part]
        answers = model.generate(prompts, settings=cold)
        samples = model.generate(prompts, n=run.samples, settings=settings)
        for question, first, others in zip(part, answers, samples, strict=True):
            yield question, [*first, *others]


def _p_true_examples(
    run: Run, model: HuggingFaceModel, questions: Sequence[Question]
) -> str:
    """Return as many examples of pTrue as leave room in the paper's token limit."""
    limit = _TOKEN_LIMIT - run.samples * DATA_SETS[run.data_set].max_tokens - _RESERVE
    shots: list[Shot] = []
    for question, (answer, *samples) in _replies(run, model, questions):
        shot = Shot(
            question=question.question,
            answer=answer.text.strip(),
            samples=[sample.text for sample in samples],
            correct=squad_f1(answer.text, question.answers or ()) >= _RIGHT,
        )
        text = examples([*shots, shot])
        if len(model.tokenizer(text)["input_ids"]) > limit:
            break
        shots.append(shot)
    return examples(shots)


def _p_true_logprob(
    model: HuggingFaceModel,
    question: Question,
    replies: Sequence[Completion],
    few_shot: str,
) -> float | None:
    answer, *samples = (reply.text.strip() for reply in replies)
    prompt = p_true_prompt(question.question, answer, samples, examples=few_shot)
    try:
        return model.likelihood(prompt, " A")
    except InputError:  # too long for the model
        return None


def _state(reply: Completion) -> list[float] | None:
    if reply.hidden_state is None:
        return None
    return [float(f"{value:.{_DIGITS}g}") for value in reply.hidden_state.tolist()]


def _sample(reply: Completion, model: HuggingFaceModel) -> Reply:
    return Reply(
        text=reply.text.strip(),
        token_logprobs=reply.token_logprobs,
        tokens=reply.tokens,
        finish_reason=reply.finish_reason,
        model=model.name,
    )


def _cost(replies: Sequence[Completion]) -> Cost:
    return Cost(
        calls=2,
        attempts=2,
        prompt_tokens=2 * replies[0].prompt_tokens,
        completion_tokens=sum(reply.completion_tokens for reply in replies),
    )
