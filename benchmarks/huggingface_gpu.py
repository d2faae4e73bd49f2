"""Local models on a GPU: ten samples of a long prompt, by an 8B Llama at random.

Drawing them from one prefill is compared with ten calls of ``generate`` of
transformers; medians of three rounds. The exit status is 1 if the ratio misses its
target. Without a CUDA device it says so and does nothing.

    python benchmarks/huggingface_gpu.py
"""

from __future__ import annotations

import importlib.util
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

SAMPLES, PROMPT, TOKENS, ROUNDS = 10, 1500, 64, 3
TARGET = 5.0


def has_gpu() -> bool:
    if any(
        importlib.util.find_spec(name) is None for name in ("torch", "transformers")
    ):
        return False
    import torch

    return torch.cuda.is_available()


def llama() -> Any:  # noqa: ANN401 - transformers has no types
    """Return a model of the size of Llama-3.1-8B, its weights drawn at random."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=128256,
        hidden_size=4096,
        intermediate_size=14336,
        num_hidden_layers=32,
        num_attention_heads=32,
        num_key_value_heads=8,
        max_position_embeddings=8192,
        eos_token_id=None,
    )
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.bfloat16)
    try:
        with torch.device("cuda"):
            return LlamaForCausalLM(config).eval()
    finally:
        torch.set_default_dtype(default)


class Numbers:
    """Stands where the tokenizer is: random weights say nothing to read."""

    pad_token_id = 0
    eos_token_id = None

    def __call__(self, text: str) -> dict[str, list[int]]:
        return {"input_ids": list(map(int, text.split()))}

    def decode(self, token_ids: Any, **_options: Any) -> str:  # noqa: ANN401
        return " ".join(map(str, token_ids))


def median(way: Callable[[], object]) -> float:
    """Return the median time in seconds, after a round that is not counted."""
    import torch

    times = []
    for _ in range(ROUNDS + 1):
        torch.cuda.synchronize()
        start = time.perf_counter()
        way()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return statistics.median(times[1:])


def main() -> int:
    if not has_gpu():
        print("skipped: there is no CUDA device here, or no torch")
        return 0
    import torch

    from snne_guard.sampling.huggingface import GenerationSettings, HuggingFaceModel

    model = llama()
    local = HuggingFaceModel(model, Numbers())
    ids = range(1000, 1000 + PROMPT)
    text = " ".join(map(str, ids))
    settings = GenerationSettings(max_tokens=TOKENS, seed=1)
    prompt = torch.tensor([list(ids)], device="cuda")

    def in_turn() -> None:
        for _ in range(SAMPLES):
            model.generate(
                input_ids=prompt,
                attention_mask=torch.ones_like(prompt),
                do_sample=True,
                temperature=1.0,
                top_k=0,
                max_new_tokens=TOKENS,
                pad_token_id=0,
            )

    ours = median(lambda: local.generate([text], n=SAMPLES, settings=settings))
    ratio = median(in_turn) / ours
    print(f"{torch.cuda.get_device_name()}: {SAMPLES} x {TOKENS} tokens, bfloat16")
    print(f"{ours:.2f} s from one prefill, {ratio:.1f}x ten calls (>= {TARGET})")
    return 0 if ratio >= TARGET else 1


if __name__ == "__main__":
    sys.exit(main())
