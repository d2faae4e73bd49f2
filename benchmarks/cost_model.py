"""What a guarded call costs in tokens, as a multiple of the bare call: arithmetic.

python -m benchmarks.cost_model
"""

from __future__ import annotations

N, OUTPUT_PRICE = 5, 4.0
SIZES = ((100, 20), (1500, 50), (1500, 300), (8000, 200))
HEADINGS = (
    "prompt, reply (tokens)",
    "one request per reply",
    "the same, cached tokens at 50% of the price",
    "the same, cached tokens at 10% of the price",
    "samples in one `n=` request",
)


def multiple(prompt: int, reply: int, *, read_again: float) -> float:
    """Return the cost of a guarded call over that of the bare one.

    Args:
        prompt: Tokens of the prompt.
        reply: Tokens of each reply.
        read_again: How often the samples read the prompt, at its full price.
    """
    bare = prompt + OUTPUT_PRICE * reply
    return (bare + read_again * prompt + (N - 1) * OUTPUT_PRICE * reply) / bare


def table() -> str:
    """Return the table in Markdown."""
    reads = (N - 1, 0.5 * (N - 1), 0.1 * (N - 1), 1)
    lines = [HEADINGS, ("---",) * len(HEADINGS)]
    for prompt, reply in SIZES:
        figures = (multiple(prompt, reply, read_again=one) for one in reads)
        lines.append((f"{prompt}, {reply}", *(f"{figure:.1f}" for figure in figures)))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    print(table())
