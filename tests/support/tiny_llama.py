"""A tiny Llama with random weights and a tokenizer of bytes, made on the spot."""

from __future__ import annotations

from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

__all__ = ["CHAT_TEMPLATE", "NO_SYSTEM", "make_model", "make_tokenizer"]

# On a busy machine threads wait for one another longer than they work on so little.
torch.set_num_threads(1)

SPECIAL = ("<pad>", "<end>", "<turn>")
CHAT_TEMPLATE = (
    "{% for message in messages %}<turn>{{ message['role'] }}:{{ message['content'] }}"
    "{% endfor %}{% if add_generation_prompt %}<turn>assistant:{% endif %}"
)
NO_SYSTEM = (
    "{% if messages[0]['role'] == 'system' %}"
    "{{ raise_exception('System role not supported') }}{% endif %}" + CHAT_TEMPLATE
)
"""As that of Gemma: no system message."""


def make_tokenizer(*, chat_template: str | None = CHAT_TEMPLATE) -> Any:
    """Return a tokenizer with a token for each byte, and three special ones."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {text: place for place, text in enumerate((*SPECIAL, *letters))}
    inner = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(
        add_prefix_space=False, use_regex=False
    )
    inner.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=inner,
        pad_token="<pad>",  # noqa: S106 - a token of text
        eos_token="<end>",  # noqa: S106 - likewise
        additional_special_tokens=["<turn>"],
    )
    tokenizer.chat_template = chat_template
    return tokenizer


def make_model(*, seed: int = 0, **options: Any) -> Any:
    """Return a Llama of two layers whose distribution is neither flat nor peaked."""
    config = LlamaConfig(
        **{
            "vocab_size": 259,
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "max_position_embeddings": 512,
            "pad_token_id": 0,
            "bos_token_id": None,
            "eos_token_id": 1,
            "initializer_range": 0.3,
            **options,
        }
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return LlamaForCausalLM(config).eval()
