"""Many methods on the same answers, which are there already: no model is called.

python examples/methods.py
"""

from __future__ import annotations

from snne_guard import score

SETS = {
    "the same": ["Paris", "Paris", "paris.", "Paris"],
    "other words": ["It is Paris", "Paris", "The capital is Paris", "Paris, France"],
    "scattered": ["Paris", "Lyon", "Marseille", "Nice"],
}
RUNS = (
    ("snne", "rouge_l"),
    ("lex_sim", "rouge_l"),
    ("kle_heat", "rouge_l"),
    ("dse", "exact"),
    ("dse", "normalised"),
)

print("answers       ", *(f"{method}[{name}]".ljust(19) for method, name in RUNS))
for title, answers in SETS.items():
    found = [score(answers, method=method, similarity=name) for method, name in RUNS]
    print(f"{title:14}", *(f"u = {one.uncertainty:.2f}".ljust(19) for one in found))
