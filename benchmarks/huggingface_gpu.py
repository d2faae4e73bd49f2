"""Local models on a GPU: an 8B Llama with random weights, ten samples of a long prompt.

Ten samples of 64 tokens to a prompt of 1,500, drawn at once, are compared with ten
calls of ``generate`` of transformers, and with the floor: the time that reading the
weights, and the key-value cache of ten rows, once a step takes at the bandwidth that a
plain copy reaches on the card. The exit status is 1 if the first ratio misses its
target; the second has none. Without a CUDA device it says so and does nothing.

    python benchmarks/huggingface_gpu.py
"""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from snne_guard.sampling.hf_rows import Job

SAMPLES, PROMPT, TOKENS = 10, 1500, 64
TARGET = 6.0
ROUNDS = 3
GIBIBYTE = 2**30


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
    with torch.device("cuda"):
        default = torch.get_default_dtype()
        torch.set_default_dtype(torch.bfloat16)
        try:
            return LlamaForCausalLM(config).eval()
        finally:
            torch.set_default_dtype(default)


class Numbers:
    """Stands where the tokenizer is; random weights say nothing to read."""

    def decode(self, token_ids: Any, **_options: Any) -> str:  # noqa: ANN401
        return " ".join(map(str, token_ids))


def job() -> Job:
    from snne_guard.sampling.hf_rows import Job
    from snne_guard.sampling.hf_settings import GenerationSettings

    settings = GenerationSettings(max_tokens=TOKENS, seed=1)
    prompt = tuple(range(1000, 1000 + PROMPT))
    return Job(prompt=prompt, n=SAMPLES, settings=settings, room=TOKENS)


def together(model: Any) -> None:  # noqa: ANN401 - see above
    """Draw all samples from one prefill, as the library does."""
    from snne_guard.sampling.hf_decode import Weights, decode

    accepts = frozenset({"position_ids", "logits_to_keep"})
    weights = Weights(model=model, ends=frozenset(), accepts=accepts)
    decode(
        weights,
        job().rows(Numbers()),
        max_batch_size=64,
        ended=lambda _row: None,
        failed=lambda _row, error: sys.exit(str(error)),
    )


def in_turn(model: Any) -> None:  # noqa: ANN401 - see above
    """Draw each sample with a call of its own, as users of transformers do."""
    import torch

    prompt = torch.tensor([job().prompt], device="cuda")
    for _ in range(SAMPLES):
        model.generate(
            input_ids=prompt,
            attention_mask=torch.ones_like(prompt),
            do_sample=True,
            temperature=1.0,
            top_k=0,
            max_new_tokens=TOKENS,
            min_new_tokens=TOKENS,
            pad_token_id=0,
        )


def shortest(way: Callable[[], object]) -> float:
    """Return the shortest time in seconds, the first repetition left out."""
    import torch

    best = float("inf")
    for number in range(ROUNDS + 1):
        torch.cuda.synchronize()
        start = time.perf_counter()
        way()
        torch.cuda.synchronize()
        if number:
            best = min(best, time.perf_counter() - start)
    return best


def bandwidth() -> float:
    """Return the bytes a second that a copy on the card reads and writes."""
    import torch

    source = torch.empty(4 * GIBIBYTE, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    return 2 * source.numel() / shortest(lambda: target.copy_(source))


def floor(model: Any) -> float:  # noqa: ANN401 - see above
    """Return the seconds that reading weights and cache once a step takes."""
    config = model.config
    embedding = config.vocab_size * config.hidden_size  # of which a step reads rows
    read = sum(int(each.numel()) for each in model.parameters()) - embedding
    head = config.hidden_size // config.num_attention_heads
    token = 2 * 2 * config.num_hidden_layers * config.num_key_value_heads * head
    cache = SAMPLES * (PROMPT + TOKENS / 2) * int(token)
    return float(TOKENS * (2 * read + cache) / bandwidth())


def main() -> int:
    if not has_gpu():
        print("skipped: there is no CUDA device here, or no torch")
        return 0
    import torch

    model = llama()
    least = floor(model)
    ours, theirs = shortest(lambda: together(model)), shortest(lambda: in_turn(model))
    met = theirs / ours >= TARGET
    print(f"{torch.cuda.get_device_name()}: {SAMPLES} x {TOKENS} tokens, bfloat16")
    print(f"over ten calls: {theirs / ours:.1f}x (>= {TARGET})")
    print(f"of the time that reading takes: {ours / least:.2f}, prefill included")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
