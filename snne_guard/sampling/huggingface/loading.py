"""Load a model of ``transformers``, or take it out of what holds it already."""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Any, NamedTuple

from snne_guard.errors import ConfigurationError, MissingExtraError

__all__ = [
    "Loaded",
    "Model",
    "Tokenizer",
    "arguments_of",
    "check_extra",
    "check_model",
    "eos_ids",
    "load",
    "out_of_pipeline",
    "window_of",
]

Model = Any
"""A causal language model of ``transformers``, which has no usable types."""

Tokenizer = Any
"""Its tokenizer."""

_OF_TOKENIZER_TOO = frozenset(
    {"cache_dir", "gguf_file", "local_files_only", "revision", "subfolder", "token"}
)


class Loaded(NamedTuple):
    """A model in memory with its tokenizer."""

    model: Model
    tokenizer: Tokenizer


def check_extra() -> None:
    """Check that torch and transformers are installed.

    Raises:
        MissingExtraError: If one is not.
    """
    for package in ("torch", "transformers"):
        try:
            import_module(package)
        except ImportError as error:
            needed = f"{error.name or package} (for local Hugging Face models)"
            raise MissingExtraError(needed, extra="hf") from error


def load(
    name: str,
    *,
    device: str | None,
    dtype: Any,  # noqa: ANN401 - a torch.dtype or its name
    trust_remote_code: bool,
    options: dict[str, Any],
) -> Loaded:
    """Load a model and its tokenizer; see ``HuggingFaceModel.from_pretrained``."""
    transformers: Any = import_module("transformers")
    # Whoever sets one of these leaves placing the weights to transformers.
    is_placed = "device_map" in options or "quantization_config" in options
    if device is not None and "device_map" in options:
        msg = "pass device or device_map, not both"
        raise ConfigurationError(msg)
    device = device or _best_device()
    if dtype is None:
        dtype = "float32" if device == "cpu" and not is_placed else "bfloat16"
    shared = {key: options[key] for key in _OF_TOKENIZER_TOO & options.keys()}
    tokenizer = transformers.AutoTokenizer.from_pretrained(
        name, trust_remote_code=trust_remote_code, **shared
    )
    model = transformers.AutoModelForCausalLM.from_pretrained(
        name, dtype=dtype, trust_remote_code=trust_remote_code, **options
    )
    model.eval()
    return Loaded(model if is_placed else model.to(device), tokenizer)


def out_of_pipeline(pipeline: object) -> Loaded:
    """Return the model and tokenizer that a pipeline holds.

    Args:
        pipeline: A text-generation pipeline of ``transformers``, a
            ``HuggingFacePipeline`` around one, or a ``ChatHuggingFace`` around that.

    Raises:
        ConfigurationError: If there is no local model in it.
    """
    inner: Any = getattr(pipeline, "llm", pipeline)
    inner = getattr(inner, "pipeline", inner)
    model, tokenizer = getattr(inner, "model", None), getattr(inner, "tokenizer", None)
    if tokenizer is None or not callable(getattr(model, "generate", None)):
        msg = (
            "expected a text-generation pipeline of transformers, a "
            "HuggingFacePipeline, or a ChatHuggingFace around one; got "
            f"{type(pipeline).__name__}"
        )
        raise ConfigurationError(msg)
    # ChatHuggingFace may have a tokenizer, and so a chat template, of its own.
    return Loaded(model, getattr(pipeline, "tokenizer", None) or tokenizer)


def check_model(model: Model) -> None:
    """Check that replies can be drawn from a model as it is.

    Raises:
        ConfigurationError: If they cannot.
    """
    name = type(model).__name__
    if not callable(getattr(model, "generate", None)) or not hasattr(model, "config"):
        msg = f"model must be a causal language model of transformers; got {name}"
        raise ConfigurationError(msg)
    if getattr(model.config, "is_encoder_decoder", False):
        msg = f"{name} is an encoder-decoder model; a causal language model is needed"
        raise ConfigurationError(msg)
    if model.training:
        msg = (
            "the model is in training mode, in which dropout changes its replies: "
            "call model.eval() first"
        )
        raise ConfigurationError(msg)
    if getattr(getattr(model, "active_peft_config", None), "is_prompt_learning", False):
        msg = (
            "a PEFT adapter that learns a prompt cannot be used: it puts tokens of its "
            "own before every request; LoRA and similar adapters can"
        )
        raise ConfigurationError(msg)


def arguments_of(model: Model) -> frozenset[str]:
    """Return the names of the arguments that the model's ``forward`` takes."""
    base = model.get_base_model() if hasattr(model, "get_base_model") else model
    return frozenset(inspect.signature(base.forward).parameters)


def eos_ids(loaded: Loaded) -> tuple[int, ...]:
    """Return the tokens that end a reply; chat models often have several."""
    configured = loaded.model.generation_config.eos_token_id
    several = configured if isinstance(configured, list) else [configured]
    found = [*several, loaded.tokenizer.eos_token_id]
    return tuple(dict.fromkeys(int(each) for each in found if each is not None))


def window_of(model: Model) -> int | None:
    """Return how many tokens prompt and reply may have together, None if unknown."""
    window = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    return window if isinstance(window, int) and window > 0 else None


def _best_device() -> str:
    import torch

    if torch.cuda.is_available():  # pragma: no cover - needs a GPU
        return "cuda"
    if torch.backends.mps.is_available():  # pragma: no cover - needs a Mac
        return "mps"
    return "cpu"
