"""What was decided and why, in words."""

from __future__ import annotations

from snne_guard.types import Assessment, Cost, Decision

__all__ = [
    "DECISIONS",
    "cost_in_words",
    "decision_in_words",
    "p_wrong_in_words",
    "reasons_in_words",
]

DECISIONS: dict[Decision | None, tuple[str, str]] = {
    "accept": ("ACCEPTED", "green"),
    "flag": ("FLAGGED", "yellow"),
    "refuse": ("HELD BACK", "red"),
    "fallback": ("HANDED OVER", "yellow"),
    "unscored": ("NOT SCORED", "yellow"),
    None: ("MEASURED", "cyan"),
}
"""The word in capitals and its colour."""

_NEARLY = 0.01
"""So close to 0 or 1 a share in whole per cents would say too much."""

_CONSEQUENCES: dict[Decision | None, str] = {
    "accept": "the answer is delivered",
    "flag": "the answer is delivered, marked as uncertain",
    "refuse": "the application gets a refusal instead",
    "fallback": "the fallback answers instead",
    "unscored": "the answer is delivered without a score",
    None: "nothing is decided without a threshold",
}

_REASONS = {
    "answer_empty": "the answer has no text",
    "answer_failed": "the answer itself failed",
    "answer_reasoning_only": "the answer is reasoning without a result",
    "answer_refused": "the provider refused to answer",
    "answer_truncated": "the answer was cut off by the token limit",
    "answer_unread": "the answer holds more than text, such as an image, which nothing "
    "compares",
    "calibration_mismatch": "the calibration was made for other settings, so "
    "nothing is certified",
    "calibration_stale": "the calibration no longer fits",
    "calibration_watch": "the calibration may no longer fit",
    "cancelled": "the call was cancelled",
    "empty_samples": "empty samples were left out",
    "logprobs_missing": "token log-probabilities were missing, so SNNE was used",
    "mixed_models": "not all replies come from the same model",
    "monitor_failed": "the state of the monitor could not be read or kept",
    "no_threshold": "no threshold is set",
    "not_sampled": "this call was not chosen for sampling",
    "over_budget": "the budget did not allow all samples",
    "question_failed": "what the question is could not be read from the prompt",
    "reasoning_only_samples": "samples without a result were left out",
    "refused_samples": "samples that the provider refused were left out",
    "sample_when_failed": "the rule about which calls to sample failed",
    "samples_failed": "some samples failed",
    "samples_late": "some samples did not come in time",
    "samples_shed": "the provider is failing, so samples were left out",
    "scoring_failed": "the similarity or the method failed",
    "scoring_late": "the score was not there in time",
    "skipped_by_rule": "the rule about which calls to sample left this one out",
    "stopped_early": "the decision was settled before all samples were drawn",
    "suspect_agreement": "the replies agree as independent draws would not; "
    "snne-guard doctor finds out why",
    "temperature_capped": "the provider takes a narrower range of temperatures",
    "temperature_unset": "the provider did not take the sampling temperature",
    "too_few_samples": "too few replies could be compared",
    "tool_call_samples": "samples that call tools were left out",
    "tool_calls": "the answer calls tools",
    "unread_samples": "samples that hold more than text were left out",
    "uncalibrated_answer_temperature": "the answer was drawn at another temperature "
    "than was calibrated",
    "uncalibrated_max_tokens": "the answer had another token limit than was calibrated",
    "uncalibrated_stop": "the answer was to end at other texts than was calibrated",
    "uncalibrated_top_p": "the answer was drawn with another top_p than was calibrated",
    "uncalibrated_method": "another method ran than was calibrated",
    "uncalibrated_temperature": "samples were drawn at another temperature than was "
    "calibrated",
    "uncalibrated_model": "another model replied than was calibrated",
    "uncalibrated_set": "the set is not a whole one, as was calibrated",
    "truncated_samples": "samples cut off by the token limit were left out",
}


def decision_in_words(assessment: Assessment) -> str:
    """Return one sentence: what u says beside the threshold, and what follows."""
    follows = _CONSEQUENCES[assessment.decision]
    u, threshold = assessment.uncertainty, assessment.threshold
    if u is None:
        return f"There is no u to decide by: {follows}."
    if threshold is None:
        return f"u = {u:.2f}; {follows}."
    side = "is within" if u <= threshold else "is above"
    # A threshold accepts only sets like those that it was made for.
    other = u <= threshold and assessment.decision in {"flag", "refuse", "fallback"}
    why = ", which is not for this one" if other else ""
    return f"u = {u:.2f} {side} the threshold {threshold:.2f}{why}: {follows}."


def p_wrong_in_words(assessment: Assessment) -> str:
    """Return how probable it is that the answer is wrong, empty where nobody knows."""
    p, band = assessment.p_wrong, assessment.p_wrong_interval
    if p is None or band is None:
        return ""
    low, high = (_per_cent(end) for end in band)
    return f"wrong with a probability of {_per_cent(p)} % ({low} to {high} %)"


def _per_cent(share: float) -> str:
    """Return a share in per cent, never as 0 or 100."""
    digits = 1 if min(share, 1 - share) < _NEARLY else 0
    return f"{100 * share:.{digits}f}"


def reasons_in_words(assessment: Assessment) -> str:
    """Return what was not as usual, an empty string where all was."""
    words = [_REASONS.get(reason, reason) for reason in assessment.reasons]
    return "; ".join(words)


def cost_in_words(cost: Cost) -> str:
    """Return requests, tokens, time, money and samples saved.

    It says where the true figure is higher.
    """
    requests = f"{cost.calls} request{'' if cost.calls == 1 else 's'}"
    if cost.attempts > cost.calls:
        requests += f" of {cost.attempts} sent"
    cached = f" ({cost.cached_tokens} from a cache)" if cost.cached_tokens else ""
    least = "at least " if cost.lower_bound else ""
    tokens = (
        f"{least}{cost.prompt_tokens} tokens read{cached}, "
        f"{least}{cost.completion_tokens} written"
    )
    saved = cost.samples_saved
    spared = f", {saved} sample{'' if saved == 1 else 's'} saved" if saved else ""
    money = "" if cost.money is None else f", price {least}{cost.money:.6f}"
    return f"{requests}, {tokens}, {cost.seconds:.1f} s{money}{spared}"
