"""Load a model of ``transformers``, or take it out of what holds it already."""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Any

from snne_guard.errors import ConfigurationError, MissingExtraError

__all__ = [
    "Model",
    "Tokenizer",
    "accepted",
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


def check_extra() -> None:
    """Check that torch and transformers are installed."""
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
) -> tuple[Model, Tokenizer]:
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
    return model if is_placed else model.to(device), tokenizer


def out_of_pipeline(pipeline: object) -> tuple[Model, Tokenizer]:
    """Return the model and tokenizer that a pipeline holds."""
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
    return model, getattr(pipeline, "tokenizer", None) or tokenizer


def check_model(model: Model) -> None:
    """Check that replies can be drawn from a model as it is."""
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


def accepted(model: Model, **arguments: Any) -> dict[str, Any]:  # noqa: ANN401 - of any kind
    """Return those of some arguments that the model's ``forward`` takes."""
    base = model.get_base_model() if hasattr(model, "get_base_model") else model
    known = inspect.signature(base.forward).parameters
    return {name: value for name, value in arguments.items() if name in known}


def eos_ids(model: Model, tokenizer: Tokenizer) -> tuple[int, ...]:
    """Return the tokens that end a reply; chat models often have several."""
    configured = model.generation_config.eos_token_id
    several = configured if isinstance(configured, list) else [configured]
    found = [*several, tokenizer.eos_token_id]
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
