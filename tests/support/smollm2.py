"""SmolLM2-135M-Instruct from the package that ships its file, for ``transformers``."""

from __future__ import annotations

from functools import cache

import gguf
import pytest

from snne_guard.langchain.embedded import _model_file
from snne_guard.sampling.huggingface import HuggingFaceModel

__all__ = ["smollm2"]


@cache
def smollm2() -> HuggingFaceModel:
    """Return it, loaded once for a run of the tests.

    Raises:
        MissingExtraError: If the file is not installed.
    """
    file = _model_file()
    with pytest.MonkeyPatch.context() as patch:
        # transformers reads the whole file three times, and makes the same table of
        # names for each of 397 modules: seconds each.
        for name in ("GGUFReader", "get_tensor_name_map"):
            patch.setattr(gguf, name, cache(getattr(gguf, name)))
        return HuggingFaceModel.from_pretrained(str(file.parent), gguf_file=file.name)
