"""Loading a sequence-classification model of Hugging Face, once for a process."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Mapping
from copy import copy
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Generic, NamedTuple, TypeVar

from snne_guard._forks import begin_in_forks
from snne_guard._hub import from_hub
from snne_guard.errors import ConfigurationError, MissingExtraError, SnneGuardError

__all__ = ["Loaded", "MadeOnce", "Source", "check_extra", "load"]

_UNSET_LENGTH = 1_000_000
"""Tokenizers that know no limit say a larger number."""

_PLAIN_WINDOW = 512
_POSITIONS = ("position_embeddings", "embed_positions", "wpe")
_PROBE = "yes no the 1 a \u4e00 \u0434\u0430 \u0646"
"""A text in which every vocabulary knows something."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where a model comes from and how it is held.

    Attributes:
        model: Name on the Hugging Face Hub, or the path of a folder.
        revision: Branch, tag or commit, None for the main one.
        device: Such as ``"cuda:1"``.
        dtype: Such as ``"float32"``.
    """

    model: str
    revision: str | None
    device: str
    dtype: str


class Loaded(NamedTuple):
    """A model in memory.

    Attributes:
        model: In evaluation mode, on its device.
        tokenizer: Its tokenizer.
        id2label: What its configuration calls the outputs.
        window: Tokens that a pair may have unless told otherwise.
        most: Tokens that a pair may have at all, None if nothing limits them.
    """

    model: Any
    tokenizer: Any
    id2label: dict[int, str]
    window: int
    most: int | None


def check_extra() -> None:
    """Check that torch and transformers are installed.

    Raises:
        MissingExtraError: If one is not.
    """
    try:
        import torch  # noqa: F401  # pyright: ignore[reportUnusedImport]
        import transformers  # noqa: F401  # pyright: ignore[reportUnusedImport]
    except ImportError as error:
        needed = f"{error.name or 'torch'} (for NLI models)"
        raise MissingExtraError(needed, extra="nli") from error


def load(source: Source) -> Loaded:
    """Load a model and its tokenizer; code that comes with a model is never run.

    Raises:
        MissingExtraError: torch, transformers or sentencepiece is not installed, or
            the model's files are not there and cannot be fetched.
        ConfigurationError: It is no sequence-classification model, its classifier was
            never trained, its tokenizer has no vocabulary, or it cannot be put on the
            device.
    """
    check_extra()
    known = from_hub(source.model, revision=source.revision)
    where: dict[str, Any] = {"revision": source.revision, **known}
    try:
        tokenizer = _tokenizer(source, where)
        model = _model(source, where)
    except OSError as error:
        raise _not_there(source) from error
    try:
        model = model.to(source.device)
    except (RuntimeError, AssertionError) as error:
        msg = f"{source.model!r} cannot be put on {source.device!r}: {error}"
        raise ConfigurationError(msg) from error
    window, most = _window(model, tokenizer)
    names = {int(place): str(name) for place, name in model.config.id2label.items()}
    return Loaded(model, tokenizer, names, window, most)


def _tokenizer(source: Source, where: Mapping[str, Any]) -> Any:  # noqa: ANN401 - transformers has no types
    from transformers import AutoTokenizer

    auto: Any = AutoTokenizer
    try:
        tokenizer = auto.from_pretrained(source.model, **where)
    except (ValueError, ImportError) as error:
        # Without it, transformers takes a vocabulary of sentencepiece for another kind.
        if find_spec("sentencepiece") is None:
            needed = f"sentencepiece (for the tokenizer of {source.model!r})"
            raise MissingExtraError(needed, extra="nli") from error
        raise _not_loaded(source, error) from error
    known = set(tokenizer(_PROBE, add_special_tokens=False)["input_ids"])
    if not known - {tokenizer.unk_token_id}:
        # transformers makes up an empty one where the file is missing: all texts
        # would be alike.
        msg = f"the tokenizer of {source.model!r} knows no word: its vocabulary is lost"
        raise ConfigurationError(msg)
    return tokenizer


def _model(source: Source, where: Mapping[str, Any]) -> Any:  # noqa: ANN401 - transformers has no types
    import torch
    from transformers import AutoModelForSequenceClassification

    auto: Any = AutoModelForSequenceClassification
    try:
        model, info = auto.from_pretrained(
            source.model,
            **where,
            dtype=getattr(torch, source.dtype),
            output_loading_info=True,
        )
    except (ValueError, ImportError) as error:
        raise _not_loaded(source, error) from error
    _check_head(source.model, model, info["missing_keys"])
    model.eval()
    return model


def _not_there(source: Source) -> MissingExtraError:
    revision = f" --revision {source.revision}" if source.revision else ""
    command = (
        f"hf download {source.model}{revision} (where there is no way to the Hugging "
        "Face Hub: pass the path of a folder that holds the model)"
    )
    needed = f"the model {source.model!r}"
    return MissingExtraError(needed, extra="nli", command=command)


def _not_loaded(source: Source, error: Exception) -> ConfigurationError:
    return ConfigurationError(
        f"{source.model!r} cannot be loaded as a sequence-classification model: "
        f"{type(error).__name__}: {error}"
    )


def _check_head(
    name: str,
    model: Any,  # noqa: ANN401 - transformers has no types
    missing: Collection[str],
) -> None:
    """Refuse a model whose classifier transformers has just made up."""
    inside = f"{model.base_model_prefix}."
    made_up = sorted(key for key in missing if not key.startswith(inside))
    if made_up:
        msg = (
            f"{name!r} has no trained classifier (its files lack {made_up[0]!r}), so "
            "what it says would be random; pass a model that was fine-tuned for it"
        )
        raise ConfigurationError(msg)


def _window(
    model: Any,  # noqa: ANN401 - transformers has no types
    tokenizer: Any,  # noqa: ANN401 - likewise
) -> tuple[int, int | None]:
    """Return how many tokens a pair may have, by default and at most."""
    import torch

    tables: list[int] = []
    for name, module in model.named_modules():
        if name.endswith(_POSITIONS) and isinstance(module, torch.nn.Embedding):
            # Those of RoBERTa begin behind the one of the padding.
            padding = module.padding_idx
            tables.append(
                module.num_embeddings - (0 if padding is None else padding + 1)
            )
    limits = (
        getattr(model.config, "max_position_embeddings", None),
        tokenizer.model_max_length,
    )
    said = [each for each in limits if isinstance(each, int) and each < _UNSET_LENGTH]
    return min([*tables, *said], default=_PLAIN_WINDOW), min(tables, default=None)


Thing = TypeVar("Thing")


class MadeOnce(Generic[Thing]):
    """Things that are made once for each key, by whoever comes first.

    Args:
        pause: Seconds for which what could not be made is not tried again.
        clock: Tells the seconds.
    """

    def __init__(
        self, *, pause: float = 0.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._made: dict[object, Thing] = {}
        self._failed: dict[object, tuple[float, SnneGuardError]] = {}
        self._pause = pause
        self._clock = clock
        begin_in_forks(self)

    def begin(self) -> None:
        """Keep what is made, under locks that nobody holds."""
        self._lock = threading.Lock()
        self._locks: dict[object, threading.Lock] = {}

    def known(self, key: object) -> Thing | None:
        """Return the thing of a key if it is made already."""
        return self._made.get(key)

    def get(self, key: object, make: Callable[[], Thing]) -> Thing:
        """Return the thing of a key; who comes meanwhile waits for it.

        What ``make`` raises is raised, and an error of ours raised anew at once until
        the pause is over: else each of many would wait as long as the first one.
        """
        with self._own(key):
            if key not in self._made:
                self._raise_failure(key)
                try:
                    self._made[key] = make()
                except SnneGuardError as error:
                    # The copy keeps no frames, and nothing that they hold.
                    self._failed[key] = self._clock() + self._pause, copy(error)
                    raise
            return self._made[key]

    def drop(self, key: object) -> None:
        """Forget the thing of a key, or its failure; who holds it keeps it."""
        with self._own(key):
            self._made.pop(key, None)
            self._failed.pop(key, None)

    def _own(self, key: object) -> threading.Lock:
        with self._lock:
            return self._locks.setdefault(key, threading.Lock())

    def forgive(self, key: object) -> None:
        """Let the next one try again at once what could not be made."""
        with self._own(key):
            self._failed.pop(key, None)

    def _raise_failure(self, key: object) -> None:
        if key in self._failed:
            until, error = self._failed[key]
            if self._clock() < until:
                raise copy(error)
            del self._failed[key]
