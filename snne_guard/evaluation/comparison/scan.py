"""The second look at a file: every question through every method, numbers kept."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import numpy as np

from snne_guard.errors import InputError
from snne_guard.evaluation.comparison.measure import Columns, Provided, Provider, Shared
from snne_guard.evaluation.comparison.members import materials_of
from snne_guard.evaluation.comparison.plan import Planned
from snne_guard.evaluation.comparison.survey import Part, Row, mark_of
from snne_guard.evaluation.recording.lines import decode
from snne_guard.evaluation.recording.recordings import Recording
from snne_guard.scorers.relation import Relation
from snne_guard.similarity.tokens import unicode_tokens
from snne_guard.types import FloatArray, IntArray

__all__ = ["Scan", "Strip", "recordings_at", "scan"]


@dataclass(slots=True, kw_only=True)
class Strip:
    """Columns under one setting.

    Attributes:
        columns: What the methods say.
        tau: Temperature of the similarity's softmax.
        n: Members that count, from the first on; None for all.
        of: What is varied; an empty text for the methods as they are ranked.
    """

    columns: Columns
    tau: float = 1.0
    n: int | None = None
    of: str = ""


@dataclass(slots=True, kw_only=True)
class Scan:
    """What is found out about the questions of one part of a file.

    Attributes:
        part: The part.
        rows: Its rows that are scored, in the order of the file.
        n_samples: Samples that count.
        members: Answers that are scored, the delivered one where it is a member.
        clusters: What tells equal answers.
        strips: The methods as they are ranked, then what ablations need.
        verdicts: Requests that each judge was sent, over all questions.
        answer_length: Tokens of each delivered answer.
        mean_length: Mean tokens of the scored answers of each question.
        n_clusters: Groups of equal answers of each question, 0 where unknown.
    """

    part: Part
    rows: Sequence[Row]
    n_samples: int
    members: int
    clusters: Relation
    strips: Sequence[Strip]
    verdicts: dict[str, int] = field(default_factory=dict[str, int])
    answer_length: IntArray = field(init=False)
    mean_length: FloatArray = field(init=False)
    n_clusters: IntArray = field(init=False)

    def __post_init__(self) -> None:
        self.answer_length = np.zeros(len(self.rows), dtype=np.intp)
        self.mean_length = np.zeros(len(self.rows))
        self.n_clusters = np.zeros(len(self.rows), dtype=np.intp)

    @property
    def plan(self) -> Sequence[Planned]:
        """The methods that are ranked."""
        return self.strips[0].columns.plan


def scan(
    path: str | os.PathLike[str],
    scans: Sequence[Scan],
    *,
    include_answer: bool = True,
    providers: Mapping[str, Provider] | None = None,
    on_progress: Callable[[int], object],
) -> None:
    """Run every method on every row of a file's parts, in one pass.

    Args:
        path: The file that was surveyed.
        scans: Where to write what is found.
        include_answer: Whether the delivered answer is a member.
        providers: Needs that no recording meets, and what meets them.
        on_progress: Told how many questions are done.

    Raises:
        InputError: The file is not the one that was surveyed.
        OSError: The file cannot be read.
    """
    places = {row.line: (one, at) for one in scans for at, row in enumerate(one.rows)}
    found = recordings_at(path, [row for one in scans for row in one.rows])
    for done, (line, recording) in enumerate(found, start=1):
        one, at = places[line]
        before = _requests(one.plan)
        provided = Provided.of(recording, providers or {}, n=one.n_samples)
        materials = materials_of(
            recording,
            one.n_samples,
            include_answer=include_answer,
            known=provided.known,
        )
        one.answer_length[at] = len(unicode_tokens(recording.main_answer))
        lengths = [len(unicode_tokens(text)) for text in materials.members]
        one.mean_length[at] = np.mean(lengths) if lengths else 0.0
        shared: dict[int | None, Shared] = {None: Shared(materials, provided)}
        failed = frozenset[str]()
        for strip in one.strips:
            if strip.n not in shared:
                shared[strip.n] = Shared(materials.first(strip.n or 0), provided)
            # What failed as it is ranked would only fail again.
            now = strip.columns.fill(at, shared[strip.n], tau=strip.tau, but=failed)
            failed = now if strip is one.strips[0] else failed
        # At last, so that no method finds its work done that it is to be timed for.
        one.n_clusters[at] = shared[None].n_clusters(one.clusters)
        for name, sent in _requests(one.plan).items():
            one.verdicts[name] = one.verdicts.get(name, 0) + sent - before[name]
        on_progress(done)


def _requests(plan: Sequence[Planned]) -> dict[str, int]:
    """Return the requests that judges among the relations were sent so far."""
    relations = {one.relation.name: one.relation for one in plan if one.relation}
    sent = {
        name: getattr(relation.similarity, "calls", None)
        for name, relation in relations.items()
    }
    return {name: calls for name, calls in sent.items() if isinstance(calls, int)}


def recordings_at(
    path: str | os.PathLike[str], rows: Iterable[Row]
) -> Iterator[tuple[int, Recording]]:
    """Read certain lines of a file of recordings again, in the order of the file.

    Yields:
        The number of the line, and the recording.

    Raises:
        InputError: One of them is not what it was.
    """
    with Path(path).open("rb") as stream:
        before = 0
        for row in sorted(rows, key=lambda row: row.line):
            line = row.line
            raw = next(islice(stream, line - before - 1, None), b"")
            before = line
            try:
                recording = Recording.from_dict(decode(raw.removeprefix(_BYTE_ORDER)))
            except InputError as error:
                raise _changed(path, line, str(error)) from error
            if mark_of(recording) != row.mark:
                raise _changed(path, line, "it says something else than before")
            yield line, recording


def _changed(path: str | os.PathLike[str], line: int, why: str) -> InputError:
    name = os.fspath(path)
    return InputError(f"{name} changed while it was read: line {line}: {why}")


_BYTE_ORDER = b"\xef\xbb\xbf"
