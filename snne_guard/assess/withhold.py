"""The error that stands in the place of an answer; it holds no text of it."""

from __future__ import annotations

from snne_guard.decision import Policy
from snne_guard.errors import SamplingError, SnneGuardError, UncertainAnswerError
from snne_guard.types import Assessment

__all__ = ["withholding_error"]


def withholding_error(
    assessment: Assessment,
    policy: Policy,
    *,
    causes: tuple[BaseException, ...] = (),
    unscored: type[SamplingError] = SamplingError,
    uncertain: type[UncertainAnswerError] = UncertainAnswerError,
) -> SnneGuardError:
    """Return the error for an answer that is withheld.

    Args:
        assessment: Its record.
        policy: What was decided by.
        causes: The exceptions of the samples that failed.
        unscored: Type of the error where it could not be scored and the policy is to
            raise then.
        uncertain: Type of the error for all else.
    """
    if assessment.uncertainty is None and policy.on_error == "raise":
        return unscored(
            f"the answer could not be scored: {', '.join(assessment.reasons)}; "
            f"{assessment.n_used} of {assessment.n_requested} members could be "
            f"used, {policy.min_samples} are needed",
            assessment_id=assessment.id,
            n_used=assessment.n_used,
            needed=policy.min_samples,
            reasons=assessment.reasons,
            causes=causes,
        )
    u = assessment.uncertainty
    what = "could not be scored" if u is None else f"has uncertainty {u:.3f}"
    return uncertain(
        f"the answer was withheld: it {what}, accepted is at most "
        f"{assessment.threshold} (assessment {assessment.id})",
        assessment_id=assessment.id,
        uncertainty=u,
        score=assessment.score,
        threshold=assessment.threshold,
        reasons=assessment.reasons,
    )
