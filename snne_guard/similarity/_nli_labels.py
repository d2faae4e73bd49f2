"""Which output of an NLI model means what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from snne_guard.errors import ConfigurationError

__all__ = ["CLASSES", "check_labels", "class_columns"]

CLASSES = ("contradiction", "neutral", "entailment")
"""The order of the last axis of every table of NLI probabilities."""

_STEMS = {"contradict": 0, "neutral": 1, "entail": 2}
_NEEDED = frozenset({"contradiction", "entailment"})


def check_labels(labels: Sequence[str] | None) -> tuple[str, ...] | None:
    """Return a user's own names of the outputs, in lower case.

    Args:
        labels: What each output of the model means, in the model's order. Without
            ``"neutral"`` the model knows two classes, and whatever is no entailment
            counts as contradiction.

    Raises:
        ConfigurationError: They are not among ``CLASSES``, or one is missing or twice.
    """
    if labels is None:
        return None
    named = (
        () if isinstance(labels, str) else tuple(str(name).lower() for name in labels)
    )
    known = set(named)
    if not known <= set(CLASSES) or not known >= _NEEDED or len(known) < len(named):
        msg = (
            "labels must name each output of the model once, in its order, such as "
            f"{CLASSES}; got {labels!r}"
        )
        raise ConfigurationError(msg)
    return named


def class_columns(
    id2label: Mapping[int, str], labels: tuple[str, ...] | None, *, model: str
) -> tuple[int | None, int | None, int | None]:
    """Return which output is contradiction, neutral, entailment; None if none is.

    Args:
        id2label: The names in the model's configuration.
        labels: The user's own, which are believed instead.
        model: Named in errors.

    Raises:
        ConfigurationError: The names do not tell, or there are not as many outputs.

    Example:
        >>> class_columns(
        ...     {0: "ENTAILMENT", 1: "neutral", 2: "Contradiction"}, None, model="m"
        ... )
        (2, 1, 0)
    """
    own = [str(id2label[place]) for place in sorted(id2label)]
    if labels is not None and len(labels) != len(own):
        msg = (
            f"labels names {len(labels)} outputs, and the model {model!r} has "
            f"{len(own)}: {own}"
        )
        raise ConfigurationError(msg)
    found = {
        place: column
        for column, label in enumerate(labels or own)
        for stem, place in _STEMS.items()
        if label.lower().startswith(stem)
    }
    if labels is None and (len(found) < len(CLASSES) or len(own) > len(CLASSES)):
        raise ConfigurationError(_untold(model, own))
    return found.get(0), found.get(1), found.get(2)


def _untold(model: str, own: Sequence[str]) -> str:
    if len(own) == len(CLASSES):
        return (
            f"the configuration of {model!r} does not say which output is entailment: "
            f"its labels are {own}. Pass labels= in the model's order, such as "
            f"labels={CLASSES} (its model card tells)"
        )
    if len(own) == len(_NEEDED):
        return (
            f"the model {model!r} knows two classes, {own}, and does not tell "
            "contradiction from neutral. Take a model with three, or pass "
            "labels=('entailment', 'contradiction') in the model's order, to count "
            "whatever is no entailment as contradiction"
        )
    return (
        f"the model {model!r} is no NLI model: its outputs are {own}; expected "
        f"{list(CLASSES)} in any order"
    )
