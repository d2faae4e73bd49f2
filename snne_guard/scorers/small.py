"""Questions to arrays so small that numpy's usual calls take longer than the answer."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snne_guard.types import FloatArray

__all__ = ["all_finite", "is_symmetric", "max_of", "min_of", "square_of"]

# Sets have some ten answers, and methods ask these of every matrix that they are given.


def max_of(values: FloatArray, /) -> float:
    """Return the largest number, NaN where one is NaN, in a quarter of numpy's time.

    Example:
        >>> import numpy as np
        >>> max_of(np.array([[0.5, 1.0], [0.0, -math.inf]]))
        1.0
    """
    found: float = values.item(values.argmax())
    return found


def min_of(values: FloatArray, /) -> float:
    """Return the smallest number, NaN where one is NaN.

    Example:
        >>> import numpy as np
        >>> min_of(np.array([0.5, math.nan]))
        nan
    """
    found: float = values.item(values.argmin())
    return found


def all_finite(values: FloatArray, /) -> bool:
    """Return whether there is neither NaN nor an infinity.

    Example:
        >>> import numpy as np
        >>> all_finite(np.array([0.5, 1e308])), all_finite(np.array([0.5, math.nan]))
        (True, False)
    """
    return not values.size or (
        values.item(values.argmin()) > -math.inf
        and values.item(values.argmax()) < math.inf
    )


def is_symmetric(matrix: NDArray[Any], /) -> bool:
    """Return whether a matrix is its own transpose, bit by bit: -0.0 is not 0.0.

    Example:
        >>> import numpy as np
        >>> (
        ...     is_symmetric(np.eye(2)),
        ...     is_symmetric(np.array([[True, True], [False, True]])),
        ... )
        (True, False)
    """
    return matrix.tobytes() == matrix.T.tobytes()


def square_of(n: int, data: bytes, /) -> FloatArray:
    """Return the ``(n, n)`` matrix whose ``tobytes`` these are; read-only.

    Example:
        >>> import numpy as np
        >>> square_of(2, np.eye(2).tobytes())
        array([[1., 0.],
               [0., 1.]])
    """
    return np.ndarray((n, n), np.float64, data)
