"""Whether answers mean the same, by asking an LLM: for those without an NLI model."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from snne_guard._forks import begin_in_forks
from snne_guard.errors import ConfigurationError, ScoringError, SnneGuardError
from snne_guard.similarity._memo import PairMemo, pair_key
from snne_guard.similarity._options import check_whole
from snne_guard.similarity._verdicts import Verdict, entailment_prompt, read_verdict
from snne_guard.similarity.lexical import distinct_texts
from snne_guard.types import BoolArray, FloatArray, Generate

__all__ = ["EntailmentJudge", "Verdict", "entailment_prompt", "read_verdict"]


class EntailmentJudge:
    """An LLM that says whether one answer follows from another one.

    It is an equivalence, and a similarity of 0 and 1. For each pair of different
    answers it is asked whether the second follows from the first, and, unless that
    settles it, the other way round: between n (n - 1) / 2 and n (n - 1) requests for
    n different answers. A request that was answered is not sent again, whichever
    method or round asks: the verdict is remembered under a digest of the pair.

    A reply that holds no clear verdict is counted in :attr:`unclear`, and the two
    answers do not mean the same: doubt makes uncertain, never certain. Where a
    request fails, what was answered is kept, and :class:`ScoringError` is raised.

    Take a model at temperature 0, and not the one whose answers are compared where
    you can: a model that is wrong about the answers is wrong about them twice.

    Args:
        generate: From a prompt to the text of the model's reply; it is called from
            several threads. ``snne_guard.langchain.ChatGenerate`` makes one of any
            LangChain chat model.
        name: What the judge is called, as in ``dse[judge:gpt-4o-mini]``; the callable's
            own name unless given.
        condition_on_question: Whether the question, where there is one, is told.
        strict: Whether two answers mean the same only if each entails the other; else
            no contradiction and not two neutrals suffice.
        max_concurrency: Requests in flight for this judge, all calls together.
        prompt: From question, premise and hypothesis to the prompt, for another
            wording or language; the verdict's words stay English.

    Attributes:
        name: ``"judge:"`` and the name.

    Raises:
        ConfigurationError: An option makes no sense.

    Example:
        >>> def generate(prompt: str) -> str:
        ...     return "neutral" if "Lyon" in prompt else "entailment"
        >>> judge = EntailmentJudge(generate, name="toy")
        >>> judge.equivalent(["Paris", "It is Paris.", "Lyon"])
        array([[ True,  True, False],
               [ True,  True, False],
               [False, False,  True]])
        >>> judge.name, judge.calls
        ('judge:toy', 4)
    """

    def __init__(
        self,
        generate: Generate,
        *,
        name: str | None = None,
        condition_on_question: bool = True,
        strict: bool = True,
        max_concurrency: int = 8,
        prompt: Callable[[str | None, str, str], str] = entailment_prompt,
    ) -> None:
        given: object = generate
        if not callable(given):
            msg = f"generate must be callable; got {type(generate).__name__}"
            raise ConfigurationError(msg)
        check_whole("max_concurrency", max_concurrency, least=1)
        self.name = f"judge:{_name_of(generate) if name is None else name}"
        self.strict = strict
        self._generate = generate
        self._with_question = condition_on_question
        self._width = max_concurrency
        self._prompt = prompt
        self._known: PairMemo[Verdict] = PairMemo()
        self._calls = 0
        self._unclear = 0
        begin_in_forks(self)

    def begin(self) -> None:
        """Keep what is known and counted, and wait for nobody else's request."""
        self._slots = threading.BoundedSemaphore(self._width)
        self._lock = threading.Lock()
        self._asked: dict[bytes, Future[Verdict]] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy needs: no locks, and nothing in flight or counted."""
        left = {"_slots", "_lock", "_asked", "_calls", "_unclear"}
        return {key: value for key, value in vars(self).items() if key not in left}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._calls = self._unclear = 0
        begin_in_forks(self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(name={self.name.partition(':')[2]!r})"

    @property
    def cache_key(self) -> str:
        """What its verdicts depend on, besides the texts and the question.

        That is what is asked, as the prompt stands around texts that are always the
        same, and who: a text ``cache_key`` of ``generate``, else its own name.
        """
        who = getattr(self._generate, "cache_key", None)
        if not isinstance(who, str):
            who = _code_of(self._generate)
        questions = (None, "Q") if self._with_question else (None,)
        prompts = [self._shown(question) for question in questions]
        return repr((self.name, self.strict, self._with_question, who, prompts))

    def _shown(self, question: str | None) -> str:
        try:
            return self._prompt(question, "P", "H")
        except Exception as error:  # noqa: BLE001 - one that wants a question, say
            return type(error).__name__

    @property
    def calls(self) -> int:
        """Requests that were sent so far, the failed ones too."""
        return self._calls

    @property
    def unclear(self) -> int:
        """Replies so far that held no clear verdict."""
        return self._unclear

    def __call__(
        self, texts: Sequence[str], /, *, question: str | None = None
    ) -> FloatArray:
        """Return 1 where two texts mean the same, else 0.

        Args:
            texts: The ``n`` texts.
            question: What was asked.

        Returns:
            ``(n, n)`` float64 matrix of 0 and 1, symmetric, diagonal 1.

        Raises:
            InputError: ``texts`` is not a sequence of strings.
            ScoringError: A request failed.
        """
        return self.equivalent(texts, question=question).astype(np.float64)

    def equivalent(
        self, texts: Sequence[str], /, *, question: str | None = None
    ) -> BoolArray:
        """Return which texts mean the same; see ``strict``.

        Args:
            texts: The ``n`` texts. Texts that differ in the white space around them
                alone mean the same, and nobody is asked.
            question: What was asked.

        Returns:
            ``(n, n)`` booleans, symmetric, diagonal True; not always transitive.

        Raises:
            InputError: ``texts`` is not a sequence of strings.
            ScoringError: A request failed.
        """
        distinct_texts(texts)
        bare = [text.strip() for text in texts]
        distinct = list(dict.fromkeys(bare))
        same = np.eye(len(distinct), dtype=np.bool_)
        told = question if self._with_question else None
        pairs = list(combinations(range(len(distinct)), 2))
        asked = [(told, distinct[i], distinct[j]) for i, j in pairs]
        for (i, j), alike in zip(pairs, self._ask_all(asked), strict=True):
            same[i, j] = same[j, i] = alike
        place = {text: row for row, text in enumerate(distinct)}
        rows = [place[text] for text in bare]
        return same[np.ix_(rows, rows)]

    def _ask_all(self, pairs: Sequence[tuple[str | None, str, str]]) -> list[bool]:
        if not pairs:
            return []
        with ThreadPoolExecutor(
            min(self._width, len(pairs)), thread_name_prefix="snne-guard-judge"
        ) as pool:
            # Each with the context of the caller, for whatever traces the requests.
            futures = [
                pool.submit(contextvars.copy_context().run, partial(self._same, *pair))
                for pair in pairs
            ]
            try:
                wait(futures, return_when=FIRST_EXCEPTION)
            finally:
                pool.shutdown(wait=False, cancel_futures=True)
        failed = [
            error
            for future in futures
            if not future.cancelled() and (error := future.exception())
        ]
        if failed:
            raise self._failure(failed)
        return [future.result() for future in futures]

    def _failure(self, failed: Sequence[BaseException]) -> BaseException:
        first = failed[0]
        if isinstance(first, SnneGuardError) or not isinstance(first, Exception):
            return first
        error = ScoringError(
            f"{self.name} failed with {type(first).__name__}; what it had answered is "
            "kept, and asking again asks only the rest"
        )
        error.__cause__ = first
        return error

    def _same(self, question: str | None, one: str, other: str) -> bool:
        first = self._verdict(question, one, other)
        possible = {"entailment"} if self.strict else {"entailment", "neutral"}
        if first not in possible:
            return False
        second = self._verdict(question, other, one)
        return second in possible and "entailment" in {first, second}

    def _verdict(self, question: str | None, premise: str, hypothesis: str) -> Verdict:
        """Return the verdict on an ordered pair; who asks the same meanwhile waits."""
        told = () if question is None else (question,)
        key = pair_key(premise, hypothesis, *told)
        with self._lock:
            known = self._known.get(key)
            if known is not None:
                return known
            other = self._asked.get(key)
            mine = self._asked.setdefault(key, Future())
        if other is not None:
            return other.result()
        try:
            verdict = self._ask(self._prompt(question, premise, hypothesis))
        except BaseException as error:
            with self._lock:
                del self._asked[key]
            mine.set_exception(error)
            raise
        with self._lock:
            self._known.put(key, verdict)
            self._unclear += verdict == "unclear"
            del self._asked[key]
        mine.set_result(verdict)
        return verdict

    def _ask(self, prompt: str) -> Verdict:
        with self._slots:
            with self._lock:
                self._calls += 1
            reply = self._generate(prompt)
        self._check_text(reply)
        return read_verdict(reply)

    def _check_text(self, reply: object) -> None:
        if not isinstance(reply, str):
            msg = f"expected a text from {self.name}, got {type(reply).__name__}"
            raise ScoringError(msg)


def _code_of(generate: object) -> str:
    name = getattr(generate, "__qualname__", None)
    if isinstance(name, str):
        return f"{generate.__module__}.{name}"
    return f"{type(generate).__module__}.{type(generate).__qualname__}"


def _name_of(generate: object) -> str:
    for attribute in ("name", "__qualname__"):
        name = getattr(generate, attribute, None)
        if isinstance(name, str) and name:
            return name
    return type(generate).__qualname__
