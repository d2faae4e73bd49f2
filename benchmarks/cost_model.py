"""What a guarded call costs in tokens, as a multiple of the bare call: arithmetic.

python -m benchmarks.cost_model                     # the README's table, n = 5
python -m benchmarks.cost_model --n 3 --output-price 5
"""

from __future__ import annotations

import argparse
import sys

SIZES = ((100, 20), (1500, 50), (1500, 300), (8000, 200))
HEADINGS = (
    "prompt, reply (tokens)",
    "a request for each reply",
    "the same, prompt cached at 50 %",
    "the same, prompt cached at 10 %",
    "samples in one `n=` request",
)


def multiple(
    prompt: int, reply: int, *, n: int, output_price: float, read_again: float
) -> float:
    """Return the cost of a guarded call over that of the bare one.

    Args:
        prompt: Tokens of the prompt.
        reply: Tokens of each reply.
        n: Members of the response set, the answer included.
        output_price: Price of a written token over that of a read one.
        read_again: How often the samples read the prompt, at its full price.
    """
    bare = prompt + output_price * reply
    return (bare + read_again * prompt + (n - 1) * output_price * reply) / bare


def table(*, n: int = 5, output_price: float = 4.0) -> str:
    """Return the table in Markdown."""
    reads = (n - 1, 0.5 * (n - 1), 0.1 * (n - 1), 1)
    lines = [HEADINGS, ("---",) * len(HEADINGS)]
    for prompt, reply in SIZES:
        figures = (
            multiple(prompt, reply, n=n, output_price=output_price, read_again=one)
            for one in reads
        )
        lines.append((f"{prompt}, {reply}", *(f"{figure:.1f}" for figure in figures)))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--n", type=int, default=5, help="members, the answer included")
    parser.add_argument("--output-price", type=float, default=4.0)
    options = parser.parse_args()
    print(table(n=options.n, output_price=options.output_price))
    return 0


if __name__ == "__main__":
    sys.exit(main())
