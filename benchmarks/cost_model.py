"""What a guarded call costs in tokens, as a multiple of the bare call: arithmetic.

A row with another model has one of the samples drawn by it, at a tenth of the price.

python -m benchmarks.cost_model
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

N, OUTPUT_PRICE, OTHER_PRICE = 5, 4.0, 0.1
SIZES = ((100, 20), (1500, 50), (1500, 300), (8000, 200))
READS: Mapping[str, Callable[[int], float]] = {
    "one request per reply": lambda samples: samples,
    "the same, cached tokens at 50% of the price": lambda samples: 0.5 * samples,
    "the same, cached tokens at 10% of the price": lambda samples: 0.1 * samples,
    "samples in one `n=` request": lambda _: 1,
}
"""How often so many samples read the prompt, at its full price."""


def multiple(
    prompt: int, reply: int, *, reads: Callable[[int], float], others: int
) -> float:
    """Return the cost of a guarded call over that of the bare one.

    Args:
        prompt: Tokens of the prompt.
        reply: Tokens of each reply.
        reads: How often so many samples of the guarded model read the prompt.
        others: How many of the samples another model draws.
    """
    bare, own = prompt + OUTPUT_PRICE * reply, N - 1 - others
    samples = reads(own) * prompt + own * OUTPUT_PRICE * reply
    return 1 + samples / bare + others * OTHER_PRICE


def table() -> str:
    """Return the table in Markdown."""
    headings = ("prompt, reply (tokens)", *READS)
    lines = [headings, ("---",) * len(headings)]
    for others, words in ((0, ""), (1, ", one by another model")):
        for prompt, reply in SIZES:
            figures = (
                multiple(prompt, reply, reads=reads, others=others)
                for reads in READS.values()
            )
            row = f"{prompt}, {reply}{words}"
            lines.append((row, *(f"{figure:.1f}" for figure in figures)))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    print(table())
