"""The experiments of the SNNE paper: draw a data set, compare methods, vary settings.

    python -m benchmarks.paper draw svamp --model llama3.1-8b --output svamp.jsonl
    python -m benchmarks.paper tables squad.jsonl svamp.jsonl --nli MODEL
    python -m benchmarks.paper ablate tau svamp.jsonl

Without a GPU or a network, on a few questions of a file and the embedded model:

    python -m benchmarks.paper draw squad --file squad.jsonl --limit 20 --output a.jsonl
    python -m benchmarks.paper tables a.jsonl
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.paper.ablations import ABLATIONS, ablate
from benchmarks.paper.data_sets import DATA_SETS, MODELS
from benchmarks.paper.draw import Run, draw
from benchmarks.paper.questions import N_QUESTIONS, choose
from benchmarks.paper.tables import compare, paper_methods, tables
from snne_guard.errors import SnneGuardError
from snne_guard.evaluation import read_recordings

P_TRUE_SHOTS = 20


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        status: int = options.run(options)
    except (SnneGuardError, OSError) as error:
        print(f"benchmarks.paper: {error}", file=sys.stderr)
        return 2
    return status


def _draw(options: argparse.Namespace) -> int:
    data_set = DATA_SETS[options.data_set]
    run = Run(
        data_set=options.data_set,
        model=options.model,
        samples=options.samples,
        temperature=options.temperature,
        seed=options.seed,
        batch=options.batch,
    )
    for_p_true = P_TRUE_SHOTS if data_set.shots and run.is_local else 0
    chosen = choose(
        options.data_set,
        file=options.file,
        limit=options.limit,
        p_true_shots=for_p_true,
    )
    tally = draw(run, chosen, options.output)
    print(f"{tally.recorded} recorded, {tally.known} were there, {tally.failed} failed")
    if tally.stopped:
        print(tally.stopped)
    return 1 if tally.failed else 0


def _tables(options: argparse.Namespace) -> int:
    methods = paper_methods(nli=options.nli, cross_encoder=options.cross_encoder)
    evaluations = {
        path.stem: compare(
            [*read_recordings(path)],
            methods=methods,
            grader=options.grader,
            cross_encoder=options.cross_encoder,
            samples=options.samples,
            name=path.stem,
        )
        for path in options.files
    }
    for text in tables(evaluations):
        print(text)
    return 0


def _ablate(options: argparse.Namespace) -> int:
    print(
        ablate(
            options.what,
            [[*read_recordings(path)] for path in options.files],
            methods=options.methods.split(","),
            similarities=options.similarity.split(","),
            grader=options.grader,
        )
    )
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.paper",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_draw(
        commands.add_parser("draw", help="draw answers and samples of a data set")
    )
    command = commands.add_parser("tables", help="AUROC, AUARC and PRR of every method")
    command.set_defaults(run=_tables)
    _add_recordings(command)
    command.add_argument("--nli", help="NLI model; in the paper deberta-v2-xlarge-mnli")
    command.add_argument(
        "--cross-encoder", help="for SAR: cross-encoder/stsb-roberta-large"
    )
    command.add_argument(
        "--samples", type=int, help="samples of each question that count"
    )
    command = commands.add_parser(
        "ablate", help="figures by samples, T, tau or similarity"
    )
    command.set_defaults(run=_ablate)
    command.add_argument("what", choices=[*ABLATIONS])
    _add_recordings(command)
    command.add_argument(
        "--methods", default="snne,wsnne", help="names with commas between them"
    )
    command.add_argument(
        "--similarity", default="rouge_l_paper", help="rouge_l_paper,nli:MODEL,..."
    )
    return parser


def _add_draw(command: argparse.ArgumentParser) -> None:
    command.set_defaults(run=_draw)
    command.add_argument("data_set", choices=[*DATA_SETS], metavar="DATA_SET")
    command.add_argument(
        "--output", type=Path, required=True, help="continued where it ended"
    )
    command.add_argument(
        "--model",
        default="embedded",
        help=f"{', '.join(MODELS)} or hf:NAME, by completion; else a chat model as "
        "`snne-guard record` takes it (default: embedded)",
    )
    command.add_argument("--file", type=Path, help="questions, in place of the hub")
    command.add_argument("--limit", type=int, default=N_QUESTIONS)
    command.add_argument("--samples", type=int, default=10)
    command.add_argument(
        "--temperature", type=float, default=1.0, help="of the samples"
    )
    command.add_argument("--seed", type=int, help="of the draws")
    command.add_argument(
        "--batch", type=int, default=4, help="questions at once, on a GPU"
    )


def _add_recordings(command: argparse.ArgumentParser) -> None:
    command.add_argument("files", nargs="+", type=Path, metavar="FILE.jsonl")
    command.add_argument(
        "--grader", help="such as bert_score; default: that of the paper"
    )


if __name__ == "__main__":
    sys.exit(main())
