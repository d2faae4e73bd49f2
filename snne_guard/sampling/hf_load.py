"""Getting hold of a model of ``transformers``: loading it, or finding it in what is."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NamedTuple, cast

from snne_guard._devices import best_device
from snne_guard._hub import from_hub
from snne_guard.errors import ConfigurationError, MissingExtraError
from snne_guard.sampling.hf_settings import GenerationSettings

__all__ = [
    "Loaded",
    "check_extra",
    "check_model",
    "defaults_of",
    "held",
    "load",
    "settings_held",
]

_SHARED = frozenset(
    {"cache_dir", "gguf_file", "local_files_only", "revision", "subfolder", "token"}
)
"""Options of ``from_pretrained`` that hold for the tokenizer as well."""

_DRAWN_WITH = ("do_sample", "max_new_tokens", "temperature", "top_k", "top_p")


class Loaded(NamedTuple):
    """A model in memory with its tokenizer."""

    model: Any
    tokenizer: Any


def check_extra() -> None:
    """Check that torch and transformers are installed.

    Raises:
        MissingExtraError: If one is not.
    """
    try:
        import torch  # noqa: F401  # pyright: ignore[reportUnusedImport]
        import transformers  # noqa: F401  # pyright: ignore[reportUnusedImport]
    except ImportError as error:
        needed = f"{error.name or 'torch'} (for local Hugging Face models)"
        raise MissingExtraError(needed, extra="hf") from error


def load(
    name: str,
    *,
    device: str | None,
    dtype: Any,  # noqa: ANN401 - a torch.dtype or its name
    trust_remote_code: bool,
    options: dict[str, Any],
) -> Loaded:
    """Load a causal language model and its tokenizer; see ``HuggingFaceModel``."""
    transformers: Any = import_module("transformers")
    placed = "device_map" in options or "quantization_config" in options
    if device is not None and "device_map" in options:
        msg = "pass device or device_map, not both"
        raise ConfigurationError(msg)
    device = device or best_device()
    if dtype is None:
        dtype = "float32" if device == "cpu" and not placed else "bfloat16"
    if "local_files_only" not in options:
        options = {**options, **from_hub(name, revision=options.get("revision"))}
    shared = {key: value for key, value in options.items() if key in _SHARED}
    tokenizer = transformers.AutoTokenizer.from_pretrained(
        name, trust_remote_code=trust_remote_code, **shared
    )
    model = transformers.AutoModelForCausalLM.from_pretrained(
        name, dtype=dtype, trust_remote_code=trust_remote_code, **options
    )
    model.eval()
    return Loaded(model if placed else model.to(device), tokenizer)


def held(thing: object) -> Loaded:
    """Return the model in a pipeline, or in LangChain's classes around one.

    Args:
        thing: A text-generation pipeline of ``transformers``, a ``HuggingFacePipeline``
            on one, or a ``ChatHuggingFace`` on that.

    Raises:
        ConfigurationError: If there is no local model in it.
    """
    *outer, inner = _layers(thing)
    tokenizer = getattr(outer[0], "tokenizer", None) if outer else None
    model, own = getattr(inner, "model", None), getattr(inner, "tokenizer", None)
    if own is None or not hasattr(model, "generate"):
        msg = (
            "a local model is taken from a text-generation pipeline of transformers, "
            "a HuggingFacePipeline, or a ChatHuggingFace on one; got "
            f"{type(thing).__name__}" + (f" on {type(inner).__name__}" if outer else "")
        )
        raise ConfigurationError(msg)
    return Loaded(model, tokenizer or own)


def settings_held(thing: object) -> dict[str, Any]:
    """Return the settings that a pipeline, or what is around it, draws with.

    Args:
        thing: As for ``held``.

    Returns:
        Token limit, temperature, and as far as they are set top-k, top-p, stop texts.
    """
    *outer, pipeline = _layers(thing)
    given: dict[str, Any] = {}
    for config in (
        getattr(pipeline, "_default_generation_config", None),
        pipeline.model.generation_config,
    ):
        given |= {
            name: value
            for name in _DRAWN_WITH
            if (value := getattr(config, name, None)) is not None
        }
    # What it was made with, a call's own options aside: kept under no public name.
    given |= getattr(pipeline, "_generate_kwargs", {})
    found: dict[str, Any] = {"temperature": 0.0}
    if given.get("do_sample"):
        found["temperature"] = given.get("temperature", 1.0)
        found |= {name: given.get(name) or None for name in ("top_k", "top_p")}
    found["max_tokens"] = given.get("max_new_tokens") or GenerationSettings().max_tokens
    if outer and (stop := getattr(outer[0], "stop", None)):
        found["stop"] = [stop] if isinstance(stop, str) else stop
    return found


def _layers(thing: object) -> list[Any]:
    """Return what lies in one another, from the outermost to the pipeline."""
    layers: list[Any] = [thing]
    for attribute in ("llm", "pipeline"):
        # Only of pydantic models, which LangChain's are: others may have anything.
        fields: Any = getattr(cast("Any", type(layers[-1])), "model_fields", ())
        if attribute in fields:
            layers.append(getattr(layers[-1], attribute))
    return layers


def check_model(model: Any) -> None:  # noqa: ANN401 - transformers has no types
    """Check that a model can be drawn from as it is.

    Raises:
        ConfigurationError: If it cannot.
    """
    if not callable(getattr(model, "generate", None)) or not hasattr(model, "config"):
        msg = (
            "model must be a causal language model of transformers; got "
            f"{type(model).__name__}"
        )
        raise ConfigurationError(msg)
    if getattr(model.config, "is_encoder_decoder", False):
        msg = (
            f"{type(model).__name__} is an encoder-decoder model; a causal language "
            "model is needed"
        )
        raise ConfigurationError(msg)
    if model.training:
        msg = (
            "the model is in training mode, in which dropout changes what it says: "
            "call model.eval() first"
        )
        raise ConfigurationError(msg)
    if "past_key_values" not in arguments_of(model):
        msg = (
            f"{type(model).__name__} has no key-value cache that replies could share "
            "(its forward takes no past_key_values)"
        )
        raise ConfigurationError(msg)
    if getattr(getattr(model, "active_peft_config", None), "is_prompt_learning", False):
        msg = (
            "PEFT adapters that learn a prompt put tokens of their own before each "
            "request, which the shared prefill does not do; LoRA and its kin work"
        )
        raise ConfigurationError(msg)


def arguments_of(model: Any) -> frozenset[str]:  # noqa: ANN401 - see above
    """Return the names of the arguments that the model's ``forward`` takes."""
    base = model.get_base_model() if hasattr(model, "get_base_model") else model
    return frozenset(inspect.signature(base.forward).parameters)


def ends_of(loaded: Loaded) -> frozenset[int]:
    """Return the tokens that end a reply; chat models often have several."""
    found: set[int] = set()
    for each in (
        loaded.model.generation_config.eos_token_id,
        loaded.tokenizer.eos_token_id,
    ):
        if isinstance(each, int):
            found.add(each)
        elif isinstance(each, Sequence):
            found.update(cast("Sequence[int]", each))
    return frozenset(found)


def window_of(model: Any) -> int | None:  # noqa: ANN401 - see above
    """Return how many tokens prompt and reply may have together, None if unknown."""
    config = model.config
    text = config.get_text_config() if hasattr(config, "get_text_config") else config
    window = getattr(text, "max_position_embeddings", None)
    return window if isinstance(window, int) and window > 0 else None


def layers_of(model: Any) -> int:  # noqa: ANN401 - see above
    """Return how many layers the model has."""
    return int(model.config.get_text_config().num_hidden_layers)


def defaults_of(model: Any) -> GenerationSettings:  # noqa: ANN401 - see above
    """Return the settings that the model's authors recommend.

    They are those of its ``generation_config``: greedy unless it says ``do_sample``.
    Its penalties and other processors are not applied.
    """
    config = model.generation_config
    if not config.do_sample:
        return GenerationSettings(temperature=0.0)
    given = {
        "temperature": config.temperature,
        "top_k": config.top_k or None,
        "top_p": config.top_p,
    }
    known = {name: value for name, value in given.items() if value is not None}
    return GenerationSettings(**known)
