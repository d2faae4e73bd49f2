"""Five answers with an NLI model's probabilities and log-probabilities, by hand."""

from __future__ import annotations

import numpy as np

__all__ = ["MEAN_LOGPROBS", "NLI", "SIMILARITY"]

# The first two are the same text, the fourth means another thing than all the others.
# Premise, hypothesis, [contradiction, neutral, entailment].
_FIRST = [
    [0.001, 0.004, 0.995],
    [0.001, 0.004, 0.995],
    [0.0271, 0.2421, 0.7308],
    [0.5548, 0.03, 0.4152],
    [0.0458, 0.121, 0.8332],
]
NLI = np.array(
    [
        _FIRST,
        _FIRST,
        [
            [0.0439, 0.0661, 0.89],
            [0.0439, 0.0661, 0.89],
            [0.001, 0.004, 0.995],
            [0.1509, 0.5907, 0.2584],
            [0.0234, 0.1574, 0.8192],
        ],
        [
            [0.0311, 0.6109, 0.358],
            [0.0311, 0.6109, 0.358],
            [0.7118, 0.0214, 0.2668],
            [0.001, 0.004, 0.995],
            [0.1319, 0.6623, 0.2058],
        ],
        [
            [0.0361, 0.1449, 0.819],
            [0.0361, 0.1449, 0.819],
            [0.0074, 0.0407, 0.9519],
            [0.7093, 0.0144, 0.2763],
            [0.001, 0.004, 0.995],
        ],
    ]
)
SIMILARITY = np.array(
    [
        [1.0, 0.995, 0.8104, 0.3866, 0.8261],
        [0.995, 1.0, 0.8104, 0.3866, 0.8261],
        [0.8104, 0.8104, 1.0, 0.2626, 0.88555],
        [0.3866, 0.3866, 0.2626, 1.0, 0.24105],
        [0.8261, 0.8261, 0.88555, 0.24105, 1.0],
    ]
)
"""The mean of both directions' entailment, 1 on the diagonal."""

MEAN_LOGPROBS = np.array([-0.8222, -0.1617, -1.2648, -0.0592, -0.340175])
