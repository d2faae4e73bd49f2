"""A tiny Llama made on the spot, a tokenizer of bytes, and slow ways to read it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import gguf
import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from snne_guard.huggingface import HuggingFaceModel

# On a busy machine threads wait for one another longer than they work on so little.
torch.set_num_threads(1)

CHAT_TEMPLATE = (
    "{% for message in messages %}<turn>{{ message['role'] }}:{{ message['content'] }}"
    "{% endfor %}{% if add_generation_prompt %}<turn>assistant:{% endif %}"
)


def make_tokenizer(*, chat_template: str | None = CHAT_TEMPLATE) -> Any:
    """Return a tokenizer with a token for each byte, and three special ones."""
    special = ("<pad>", "<end>", "<turn>")
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {text: place for place, text in enumerate((*special, *letters))}
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


TOKENIZER = make_tokenizer()


def ids_of(text: str) -> list[int]:
    ids: list[int] = TOKENIZER(text)["input_ids"]
    return ids


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
            "name_or_path": "tiny",
            **options,
        }
    )
    return seeded(lambda: LlamaForCausalLM(config), seed=seed)


def seeded(make: Any, *, seed: int = 0) -> Any:
    """Return a model with random weights, without moving torch's generator."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return make().eval()


def next_logprobs(model: Any, ids: Sequence[int]) -> torch.Tensor:
    """Return the log-probabilities of the token after these, all read anew."""
    with torch.inference_mode():
        logits = model(input_ids=torch.tensor([list(ids)]), use_cache=False).logits
    return torch.log_softmax(logits[0, -1].float(), dim=-1)


def teacher_forced(
    model: Any, prompt: Sequence[int], reply: Sequence[int]
) -> list[float]:
    """Return the log-probability of each token of a reply, one at a time, no cache."""
    return [
        float(next_logprobs(model, [*prompt, *reply[:place]])[token])
        for place, token in enumerate(reply)
    ]


def state_of(model: Any, ids: Sequence[int], layer: int) -> Any:
    """Return the hidden state of the last token at a layer."""
    with torch.inference_mode():
        output = model(
            input_ids=torch.tensor([list(ids)]),
            use_cache=False,
            output_hidden_states=True,
        )
    return output.hidden_states[layer][0, -1].double().numpy()


@cache
def tiny() -> HuggingFaceModel:
    """Return that Llama with that tokenizer."""
    return HuggingFaceModel(make_model(), TOKENIZER)


@cache
def smollm2() -> HuggingFaceModel:
    """Return SmolLM2 from the package that ships its file, loaded once."""
    from snne_guard.langchain.embedded import model_file

    file = model_file()
    with pytest.MonkeyPatch.context() as patch:
        # transformers reads the whole file three times, and makes the same table of
        # names for each of 397 modules: seconds each.
        for name in ("GGUFReader", "get_tensor_name_map"):
            patch.setattr(gguf, name, cache(getattr(gguf, name)))
        return HuggingFaceModel.from_pretrained(str(file.parent), gguf_file=file.name)
