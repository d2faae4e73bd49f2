"""An LLM as grader: its requests in bounded threads, its verdicts, its failures."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context

from snne_guard.errors import ConfigurationError, ScoringError, SnneGuardError
from snne_guard.evaluation.grading.abstention import is_abstention, is_unanswerable
from snne_guard.evaluation.grading.grade import Grade, graded
from snne_guard.evaluation.grading.judge_prompt import judge_prompt, read_yes_no
from snne_guard.evaluation.recording.recordings import Recording
from snne_guard.types import Generate

__all__ = ["JudgeGrader"]


class JudgeGrader:
    """An LLM that says whether an answer means what a reference answer means.

    It does not look at words, so it is the second grader where a similarity does. It
    can be wrong, and can be talked into a verdict by an answer; take a model other
    than the one that is graded, at temperature 0, and look at the agreement with
    another grader. A reply without a clear verdict, and a request that fails, leave
    the answer without a grade, and are counted. A question that has been judged is not
    asked again. An empty reply is settled without asking.

    Args:
        generate: From a prompt to the text of the model's reply; called from several
            threads.
        name: What the judge is called; its figures are labelled ``judge:`` and this.
            The callable's own name unless given.
        max_concurrency: Requests in flight at once.

    Raises:
        ConfigurationError: An option makes no sense.

    Example:
        >>> judge = JudgeGrader(lambda prompt: "yes", name="toy")
        >>> judge(
        ...     Recording(
        ...         id="1",
        ...         question="2+2?",
        ...         main_answer="4",
        ...         samples=(),
        ...         answers=("four",),
        ...     )
        ... )
        Grade(quality=1.0, correct=1, grader='judge:toy')
        >>> judge.calls, judge.unclear, judge.failed
        (1, 0, 0)
    """

    lexical = False

    def __init__(
        self,
        generate: Generate,
        *,
        name: str | None = None,
        max_concurrency: int = 8,
    ) -> None:
        given: object = generate
        if not callable(given):
            msg = f"expected generate to be callable, got {type(given).__name__}"
            raise ConfigurationError(msg)
        if max_concurrency < 1:
            msg = f"expected max_concurrency of at least 1, got {max_concurrency}"
            raise ConfigurationError(msg)
        own = getattr(generate, "name", None) or getattr(
            generate, "__qualname__", type(generate).__qualname__
        )
        self._name = f"judge:{own if name is None else name}"
        self._generate = generate
        self._width = max_concurrency
        self._lock = threading.Lock()
        self._verdicts: dict[str, bool | None] = {}
        self._calls = self._unclear = self._failed = 0

    @property
    def name(self) -> str:
        """What its figures are labelled with."""
        return self._name

    @property
    def calls(self) -> int:
        """Requests that were sent so far, the failed ones too."""
        return self._calls

    @property
    def unclear(self) -> int:
        """Replies so far that held no clear verdict."""
        return self._unclear

    @property
    def failed(self) -> int:
        """Requests so far that failed."""
        return self._failed

    def __call__(self, recording: Recording, /) -> Grade | None:
        """Return the grade, None without references or a clear verdict.

        Raises:
            ScoringError: The request failed.
        """
        return self.grade_all([recording])[0]

    def grade_all(self, recordings: Sequence[Recording], /) -> list[Grade | None]:
        """Return the grade of each recording; each prompt is sent once.

        Raises:
            ScoringError: Every request failed. As long as one is answered, those that
                fail leave their answers without a grade.
        """
        prompts = [self._prompt(recording) for recording in recordings]
        self._ask([prompt for prompt in prompts if prompt is not None])
        return [
            self._grade(recording, prompt)
            for recording, prompt in zip(recordings, prompts, strict=True)
        ]

    def _prompt(self, recording: Recording) -> str | None:
        return judge_prompt(recording) if recording.main_answer.strip() else None

    def _grade(self, recording: Recording, prompt: str | None) -> Grade | None:
        if prompt is not None:
            verdict = self._verdicts.get(prompt)
        elif is_unanswerable(recording):
            verdict = is_abstention(recording.main_answer)
        else:
            verdict = False if recording.answers else None
        return None if verdict is None else graded(float(verdict), 0.5, self._name)

    def _ask(self, prompts: Sequence[str]) -> None:
        """Send each prompt whose verdict is not known; remember what comes back."""
        new = [prompt for prompt in dict.fromkeys(prompts) if not self._knows(prompt)]
        if not new:
            return
        with ThreadPoolExecutor(
            min(self._width, len(new)), thread_name_prefix="snne-guard-grader"
        ) as pool:
            # Each with the context of the caller, for whatever traces the requests.
            sent = [
                pool.submit(copy_context().run, self._verdict, prompt) for prompt in new
            ]
            try:
                errors = [error for one in sent if (error := _failure(one))]
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        if len(errors) == len(new):
            first = errors[0]
            msg = (
                f"{self._name} failed in all of {len(new)} requests, at first with "
                f"{type(first).__name__}"
            )
            raise ScoringError(msg) from first

    def _knows(self, prompt: str) -> bool:
        return prompt in self._verdicts

    def _verdict(self, prompt: str) -> None:
        with self._lock:
            self._calls += 1
        try:
            reply = self._generate(prompt)
        except BaseException:
            with self._lock:
                self._failed += 1
            raise
        self._check_text(reply)
        verdict = read_yes_no(reply)
        with self._lock:
            self._unclear += verdict is None
            self._verdicts[prompt] = verdict

    def _check_text(self, reply: object) -> None:
        if not isinstance(reply, str):
            msg = f"expected a text from {self._name}, got {type(reply).__name__}"
            raise ScoringError(msg)


def _failure(sent: Future[None]) -> Exception | None:
    """Return why a request failed; what no other request would cure is raised."""
    error = sent.exception()
    if isinstance(error, SnneGuardError) or not isinstance(error, Exception | None):
        raise error
    return error
