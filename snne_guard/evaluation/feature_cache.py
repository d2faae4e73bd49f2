"""What a model said of answers, kept on disk so that it is not asked again."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snne_guard.files import replace_file
from snne_guard.similarity import resolve_similarity
from snne_guard.types import FloatArray, Similarity

__all__ = ["FeatureCache"]

_Matrix = NDArray[Any]
_FORMS: dict[str, tuple[np.dtype[Any], tuple[int, ...]]] = {
    "__call__": (np.dtype("<f8"), ()),
    "equivalent": (np.dtype(np.bool_), ()),
    "probabilities": (np.dtype("<f8"), (3,)),
}
"""The numbers of what a similarity computes, and dimensions after ``(n, n)``."""


class FeatureCache:
    """A similarity that keeps in a folder what another one computed.

    It has the methods ``equivalent`` and ``probabilities`` where the other has. A
    matrix is found by the name of the similarity, the version of this library, the
    question and the texts; neither is stored. The content of a model's folder is not
    looked at: delete the cache when you change a model in place. A file of the wrong
    size is computed anew.

    Args:
        similarity: What computes; a name or a callable.
        folder: Created where there is none.

    Raises:
        ConfigurationError: The name is unknown.
        OSError: The folder cannot be made.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     kept = FeatureCache("rouge_l", folder=folder)
        ...     kept(["a b", "a"])
        array([[1.    , 0.6667],
               [0.6667, 1.    ]])
    """

    def __init__(
        self, similarity: str | Similarity, *, folder: str | os.PathLike[str]
    ) -> None:
        self.name, compare = resolve_similarity(similarity)
        self._folder = Path(folder)
        self._folder.mkdir(parents=True, exist_ok=True)
        kinds = {kind: getattr(compare, kind, None) for kind in _FORMS}
        self._kinds = {kind: one for kind, one in kinds.items() if one is not None}

    def __call__(
        self, texts: Sequence[str], /, *, question: str | None = None
    ) -> FloatArray:
        """Return the ``(n, n)`` similarities, computed or kept."""
        return np.asarray(self._get("__call__", texts, question), dtype=np.float64)

    def __getattr__(self, kind: str) -> Callable[..., _Matrix]:
        """Return ``equivalent`` or ``probabilities``, computed or kept."""
        if kind not in _FORMS or kind not in self._kinds:
            raise AttributeError(kind)

        def compare(texts: Sequence[str], /, *, question: str | None = None) -> _Matrix:
            return self._get(kind, texts, question)

        return compare

    def _get(self, kind: str, texts: Sequence[str], question: str | None) -> _Matrix:
        path = self._folder / f"{_digest(self.name, kind, texts, question)}.bin"
        found = _load(path, kind=kind, n=len(texts))
        if found is None:
            computed = self._kinds[kind](texts, question=question)
            found = np.asarray(computed, dtype=_FORMS[kind][0])
            with replace_file(path) as stream:
                stream.write(found.tobytes())
        return found


def _digest(name: str, kind: str, texts: Sequence[str], question: str | None) -> str:
    from snne_guard import __version__

    digest = blake2b(digest_size=20)
    for part in (__version__, name, kind, question or "", *texts):
        content = part.encode("utf-8", "surrogatepass")
        digest.update(len(content).to_bytes(8) + content)
    return digest.hexdigest()


def _load(path: Path, *, kind: str, n: int) -> _Matrix | None:
    """Return a kept matrix, None where there is none or the file is damaged."""
    dtype, rest = _FORMS[kind]
    shape = (n, n, *rest)
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    if len(content) != math.prod(shape) * dtype.itemsize:
        return None
    return np.frombuffer(content, dtype=dtype).reshape(shape).copy()
