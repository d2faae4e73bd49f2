"""What a guarded call costs in tokens, as a multiple of the bare call.

Pure arithmetic, no model: a prompt of P tokens, replies of C tokens each, a written
token at ``--output-price`` times the price of a read one.

    python benchmarks/cost_model.py            # the table of the README, n = 5
    python benchmarks/cost_model.py --n 3 --output-price 5
    python benchmarks/cost_model.py --paper    # ten samples besides the answer
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

SIZES = ((100, 20), (1500, 50), (1500, 300), (8000, 200))
HEADINGS = (
    "prompt, reply (tokens)",
    "a request for each reply",
    "the same, prompt cached at 50 %",
    "the same, prompt cached at 10 %",
    "samples in one `n=` request",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CostModel:
    """The bill of one guarded call.

    Attributes:
        samples: Replies drawn besides the answer.
        output_price: Price of a written token over that of a read one.
    """

    samples: int = 4
    output_price: float = 4.0

    def multiple(
        self, prompt: int, reply: int, *, cached: float = 1.0, one_request: bool = False
    ) -> float:
        """Return the cost over that of the bare call.

        Args:
            prompt: Tokens of the prompt.
            reply: Tokens of each reply.
            cached: Price of a prompt token that the provider has in its cache, over
                that of a fresh one. The answer's own prompt is always fresh.
            one_request: Whether the samples come in one ``n=`` request, which bills
                their prompt once.
        """
        bare = prompt + self.output_price * reply
        read_again = prompt * cached * (1 if one_request else self.samples)
        return (bare + read_again + self.samples * self.output_price * reply) / bare

    def row(self, prompt: int, reply: int) -> tuple[str, ...]:
        """Return one line of the table."""
        figures = (
            self.multiple(prompt, reply),
            self.multiple(prompt, reply, cached=0.5),
            self.multiple(prompt, reply, cached=0.1),
            self.multiple(prompt, reply, one_request=True),
        )
        return (f"{prompt}, {reply}", *(f"{figure:.1f}" for figure in figures))


def table(model: CostModel) -> str:
    """Return the table in Markdown."""
    rows = [HEADINGS, ("---",) * len(HEADINGS), *(model.row(*size) for size in SIZES)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def main() -> None:
    parser = argparse.ArgumentParser(description="Cost of a guarded call.")
    parser.add_argument("--n", type=int, default=5, help="members, the answer included")
    parser.add_argument("--output-price", type=float, default=4.0)
    parser.add_argument("--paper", action="store_true", help="10 samples besides it")
    options = parser.parse_args()
    samples = 10 if options.paper else options.n - 1
    print(table(CostModel(samples=samples, output_price=options.output_price)))


if __name__ == "__main__":
    main()
