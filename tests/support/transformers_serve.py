"""A tiny random Llama in a folder, and ``transformers serve`` on it as a process."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.ports import free_port

__all__ = ["serving", "tiny_llama"]

_WORDS = 300
_TEMPLATE = (
    "{% for message in messages %}<{{ message['role'] }}> {{ message['content'] }} "
    "{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"
)


def tiny_llama(folder: Path, *, do_sample: bool) -> Path:
    """Save a random Llama of a few thousand weights, which writes random words.

    Args:
        folder: Where to.
        do_sample: What its generation config says: without it ``transformers serve``
            decodes greedily, whatever temperature it is asked for.
    """
    tokenizers: Any = importlib.import_module("tokenizers")
    torch: Any = importlib.import_module("torch")
    transformers: Any = importlib.import_module("transformers")

    # Digits apart, so that prompts with other numbers are other prompts to it.
    special = ["<unk>", "<eos>", "<user>", "<assistant>", *"0123456789"]
    vocabulary = special + [f"word{number:03}" for number in range(_WORDS)]
    known = {word: index for index, word in enumerate(vocabulary)}
    names = {"unk_token": "<unk>", "eos_token": "<eos>"}
    words = tokenizers.Tokenizer(
        tokenizers.models.WordLevel(known, unk_token=names["unk_token"])
    )
    split = tokenizers.pre_tokenizers
    words.pre_tokenizer = split.Sequence(
        [split.Whitespace(), split.Digits(individual_digits=True)]
    )
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=words, chat_template=_TEMPLATE, **names
    )
    torch.manual_seed(0)
    model = transformers.LlamaForCausalLM(
        transformers.LlamaConfig(
            vocab_size=len(vocabulary),
            hidden_size=16,
            intermediate_size=32,
            num_hidden_layers=2,
            num_attention_heads=2,
            initializer_range=1.0,  # so that it heeds what it reads
            max_position_embeddings=2048,
            bos_token_id=None,
            eos_token_id=1,
        )
    )
    model.generation_config = transformers.GenerationConfig(
        do_sample=do_sample, eos_token_id=1, pad_token_id=1
    )
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@contextmanager
def serving(folder: Path, log: Path) -> Iterator[str]:
    """Run ``transformers serve`` on a model of this machine; yield its base URL.

    Args:
        folder: The model, which is also its name.
        log: File for what the process prints.
    """
    port = free_port()
    command = [sys.executable, "-m", "transformers.cli.transformers", "serve"]
    options = ["--host", "127.0.0.1", "--port", str(port), "--device", "cpu"]
    quiet = {
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
        "OMP_WAIT_POLICY": "PASSIVE",
    }
    with log.open("wb") as output:
        process = subprocess.Popen(  # noqa: S603 - our own arguments
            [*command, str(folder), *options],
            env={**os.environ, **quiet},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        _wait(f"http://127.0.0.1:{port}/health", process, log)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.kill()
        process.wait()


def _wait(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    while process.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=5):  # noqa: S310 - our own server
                return
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.1)
    raise AssertionError(log.read_text(encoding="utf-8", errors="replace"))
