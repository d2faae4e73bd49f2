"""From what a first look found to what is run: questions, samples, methods."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from snne_guard.evaluation.comparison.ablation import strips
from snne_guard.evaluation.comparison.figures import Draws
from snne_guard.evaluation.comparison.measure import Columns, Provider
from snne_guard.evaluation.comparison.members import ENOUGH, common_size
from snne_guard.evaluation.comparison.plan import Planned, Tools, plan_methods
from snne_guard.evaluation.comparison.scan import Scan, Strip
from snne_guard.evaluation.comparison.survey import OnProblem, Part, Row
from snne_guard.evaluation.grading.grade import Grader, LabelGrader
from snne_guard.scorers.needs import LOGPROB_NEEDS, RELATION_NEEDS
from snne_guard.scorers.relation import Relation
from snne_guard.similarity import SIMILARITIES
from snne_guard.similarity.exact import exact, normalised, numeric
from snne_guard.types import Method

__all__ = ["Options", "prepare"]

_FEWEST = 2  # one answer has nothing to differ from
_MOSTLY = 1 / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What an evaluation does, as its arguments say.

    Attributes:
        methods: Which methods.
        graded: Similarities that run without a model.
        usual: Such that run for the methods alone which take them by default.
        models: Relations behind which a model is.
        named: What names in brackets behind methods mean.
        providers: What meets needs that recordings do not.
        include_answer: Whether the delivered answer is a member.
        tau: Temperature of the similarity's softmax.
        samples: Samples that count, None for the number that keeps most of them.
        by: Field by which files are split.
        grader: Says which delivered answers are right.
        second_grader: Another one, to be compared with the first.
        ablate: What is varied.
        draws: How intervals are made.
        strict: Whether the first bad line ends the run.
        on_problem: Told of each bad line.
        on_progress: Told what is done, how far, and of how many.
    """

    methods: str | Sequence[str | Method] = "all"
    graded: tuple[Relation, ...] = ()
    usual: tuple[Relation, ...] = ()
    models: tuple[Relation, ...] = ()
    named: Mapping[str, Relation] = field(default_factory=dict[str, Relation])
    providers: Mapping[str, Provider] = field(default_factory=dict[str, Provider])
    include_answer: bool = True
    tau: float = 1.0
    samples: int | None = None
    by: str | None = None
    grader: Grader = field(default_factory=LabelGrader)
    second_grader: Grader | None = None
    ablate: frozenset[str] = frozenset()
    draws: Draws = field(default_factory=Draws)
    strict: bool = False
    on_problem: OnProblem | None = None
    on_progress: Callable[[str, int, int], object] | None = None


def prepare(part: Part, options: Options, /) -> Scan:
    """Return what is to be run on a part, and note in it what is left out."""
    graded, n = _of_one_kind(part), options.samples
    if n is None:
        n = common_size(row.n_samples for row in graded)
    rows = [row for row in graded if row.n_samples >= n]
    if few := len(graded) - len(rows):
        part.left_out[f"fewer than {n} samples"] += few
    if cut := [row.n_samples - n for row in rows if row.n_samples > n]:
        part.notes.append(
            f"{n} samples of each question count; not looked at: {sum(cut)} more, in "
            f"{len(cut)} of {len(rows)} questions"
        )
    plan = plan_methods(options.methods, _tools(part, options))
    plan = tuple(_checked(one, rows, n=n, options=options) for one in plan)
    members = n + options.include_answer
    beside = strips(
        plan,
        n=len(rows),
        members=members,
        tau=options.tau,
        wanted=options.ablate,
        similarities=_similarities(options),
    )
    return Scan(
        part=part,
        rows=rows,
        n_samples=n,
        members=members,
        clusters=_clusters_by(options),
        strips=[Strip(columns=Columns.of(plan, len(rows)), tau=options.tau), *beside],
    )


def _of_one_kind(part: Part) -> list[Row]:
    """Return the rows that are right or wrong, or those that are better or worse.

    Whichever are more: the two are scales that cannot be mixed.
    """
    judged = [row for row in part.rows if row.grade and row.grade.correct is not None]
    others = len(part.rows) - len(judged)
    if not judged or not others:
        return part.rows
    if len(judged) >= others:
        part.left_out["graded, but neither right nor wrong"] += others
        return judged
    part.left_out["right or wrong, where most are better or worse"] += len(judged)
    return [row for row in part.rows if row.grade and row.grade.correct is None]


def _similarities(options: Options) -> tuple[Relation, ...]:
    own = (Relation.of(one) for one in (*SIMILARITIES.values(), exact, normalised))
    every = {one.name: one for one in (*options.graded, *own, *options.models)}
    return tuple(every.values())


def _tools(part: Part, options: Options) -> Tools:
    equal = [exact, normalised]
    # Numbers are compared where numbers are asked for.
    if part.rows and part.numeric > _MOSTLY * len(part.rows):
        equal.append(numeric)
    recorded = {
        need for need, n in part.recorded.items() if n >= ENOUGH * len(part.rows)
    }
    return Tools(
        graded=options.graded,
        usual=options.usual,
        equal=tuple(Relation.of(one) for one in equal),
        models=options.models,
        named=options.named,
        given=frozenset(recorded | set(options.providers)),
    )


def _clusters_by(options: Options) -> Relation:
    """Return what tells equal answers: a model where there is one, else the words."""
    models = (one for one in options.models if one.entails or one.equates)
    return next(models, Relation.of(normalised))


def _checked(
    planned: Planned, rows: Sequence[Row], *, n: int, options: Options
) -> Planned:
    """Return a method with the reason why it cannot run on these rows, if any."""
    needs = planned.method.needs
    members = n + options.include_answer
    why: str | None = None
    if planned.status != "evaluated":
        return planned
    if not rows:
        why = "there is no question to score"
    elif needs & RELATION_NEEDS and members < _FEWEST:
        why = "there is one answer a question, which has nothing to differ from"
    elif needs & LOGPROB_NEEDS:
        missing = sum(_lacks_logprobs(row, needs, n=n, options=options) for row in rows)
        if missing > (1 - ENOUGH) * len(rows):
            why = (
                f"token log-probabilities are missing on {missing} of "
                f"{len(rows)} questions"
            )
    return planned if why is None else replace(planned, status="skipped", why=why)


def _lacks_logprobs(
    row: Row, needs: frozenset[str], *, n: int, options: Options
) -> bool:
    """Return whether log-probabilities are missing that these needs look at."""
    of_members = needs & {"mean_logprobs", "token_logprobs"}
    of_main = "main_logprobs" in needs or (of_members and options.include_answer)
    of_samples = of_members or "sample_mean_logprobs" in needs
    return bool(
        (of_main and not row.main_logprobs) or (of_samples and row.logprobs < n)
    )
