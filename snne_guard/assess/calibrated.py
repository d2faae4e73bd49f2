"""From a calibration among a guard's options to what it sets and what it binds to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from os import PathLike
from typing import Any, cast

from snne_guard.assess.binding import Binding
from snne_guard.assess.judge import Judge
from snne_guard.decision import Calibration
from snne_guard.errors import ConfigurationError
from snne_guard.sampling import SamplingPlan
from snne_guard.sampling.options import AnswerSettings
from snne_guard.scorers import Combination
from snne_guard.scorers.needs import compares_answers

__all__ = ["bind", "calibration_of", "settings_of", "with_calibration"]


def calibration_of(calibration: object) -> Calibration:
    """Return the calibration that an option means.

    Args:
        calibration: One, or the path of its file.

    Raises:
        ConfigurationError: It is none of these.
        InputError: The file holds none, or was changed.
        OSError: The file cannot be read.
    """
    if isinstance(calibration, Calibration):
        return calibration
    if isinstance(calibration, str | PathLike):
        return Calibration.load(cast("str | PathLike[str]", calibration))
    msg = (
        "calibration must be a Calibration or the path of the file of one; "
        f"got {calibration!r}"
    )
    raise ConfigurationError(msg)


def with_calibration(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return a guard's options with what its calibration settles.

    Raises:
        ConfigurationError: If others have no sense beside it.
        InputError: The file holds none, or was changed.
        OSError: The file cannot be read.
    """
    given = options.get("calibration")
    calibration = None if given is None else calibration_of(given)
    version = options.get("prompt_version")
    if version is not None and not isinstance(version, str):
        msg = f"prompt_version must be a text or None; got {version!r}"
        raise ConfigurationError(msg)
    if calibration is None:
        if options.get("allow_mismatch"):
            msg = (
                "allow_mismatch=True (snne-guard ask --allow-mismatch) needs a "
                "calibration that something may differ from"
            )
            raise ConfigurationError(msg)
        return {**options, "method": _method(options["method"], None)}
    if options["threshold"] is not None:
        msg = (
            "threshold= beside calibration= is one too many: a calibration has its own"
        )
        raise ConfigurationError(msg)
    stopping = options.get("stopping")
    if stopping is not None and stopping != "certificate":
        msg = (
            "stopping= beside calibration= is one too many: what is promised holds for "
            "the rounds that the calibration was made with"
        )
        raise ConfigurationError(msg)
    method = _method(options["method"], calibration)
    return {**options, "calibration": calibration, "method": method}


def _method(method: object, calibration: Calibration | None) -> Any:  # noqa: ANN401 - a name or a Method
    """Return the method that is meant beside a calibration, or without one."""
    combination = None if calibration is None else calibration.combination
    if method == "calibrated" and combination is None:
        msg = (
            'method="calibrated" needs a calibration that has learnt one; '
            "snne-guard calibrate --method calibrated makes it"
        )
        raise ConfigurationError(msg)
    if calibration is None or not (method == "auto" or method == "calibrated"):  # noqa: PLR1714 - a Method may have no hash
        return method
    if combination is not None:
        return Combination.from_dict(combination)
    return calibration.settings.get("method") or method


def settings_of(
    plan: SamplingPlan,
    judge: Judge,
    *,
    model: str | None,
    answer_settings: AnswerSettings,
    prompt_version: str | None = None,
) -> dict[str, Any]:
    """Return what a calibration is bound to, of a plan and who judges.

    Args:
        plan: What is drawn.
        judge: How it is scored.
        model: Name of the model.
        answer_settings: What it draws the answer with, as far as that is known.
        prompt_version: What the user calls the prompt.

    Returns:
        The settings by the names in ``bound_settings.BOUND``; without those of the
        answer that are not known to be one value.
    """
    method = judge.resolve(logprobs=True)
    relation = judge.relation_for()
    one = {
        name: next(iter(found))
        for name, found in answer_settings.items()
        if len(found) == 1
    }
    return {
        "model": model,
        "prompt_version": prompt_version,
        "temperature": float(plan.temperature),
        **one,
        "n": plan.n,
        "include_answer": plan.include_answer,
        "rounds": None if plan.rounds is None else list(plan.rounds),
        "method": method.name,
        "similarity": relation.name if compares_answers(method) else None,
        "anchor": relation.anchor_for(method, member=plan.include_answer),
        "tau": 1.0 if judge.tau is None else float(judge.tau),
    }


def bind(
    options: Mapping[str, Any],
    plan: SamplingPlan,
    judge: Judge,
    *,
    model: str | None,
    answer_settings: AnswerSettings,
) -> Judge:
    """Return a judge that holds to the calibration among the options, if there is one.

    Args:
        options: The options of a guard, after ``with_calibration``.
        plan: What is drawn.
        judge: How it is scored.
        model: Name of the model that is asked, None where nobody knows it yet.
        answer_settings: What it draws the answer with, as far as that is known yet.

    Raises:
        ConfigurationError: The calibration was made for other settings.
    """
    calibration: Calibration | None = options.get("calibration")
    if calibration is None:
        return judge
    settings = settings_of(
        plan,
        judge,
        model=model,
        answer_settings=answer_settings,
        prompt_version=options.get("prompt_version"),
    )
    if model is None:
        # Whether it is the right one shows in its replies.
        del settings["model"]
    lenient = bool(options.get("allow_mismatch"))
    binding = Binding(
        calibration=calibration,
        settings=settings,
        answer_settings=answer_settings,
        stages=frozenset(plan.rounds or (plan.n,)),
        differs=calibration.check(settings, allow_mismatch=lenient),
        lenient=lenient,
    )
    policy = judge.policy
    if "method" in binding.differs and policy.threshold is not None:
        policy = replace(policy, threshold=replace(policy.threshold, method=None))
    return replace(judge, policy=policy, binding=binding)
