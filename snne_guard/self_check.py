"""The self-check: one more call in which the model judges its own answer."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args
from unicodedata import normalize

from snne_guard.checks import check_choice, check_number
from snne_guard.errors import ConfigurationError
from snne_guard.text import without_reasoning
from snne_guard.types import Reply, Score

UNKNOWN = 0.5
"""P(Yes) of a self-check that failed or said neither."""

Form = Literal["yes_no", "number"]
"""What a self-check asks for: Yes or No, or a number from 0 to 100."""

_PROMPTS: Mapping[Form, str] = {
    "yes_no": "Is your answer correct? Reply with one word only: Yes or No.",
    "number": "How likely is it, from 0 to 100, that your answer is correct? "
    "Reply with the number only.",
}
# Other scripts may stand beside a Yes without a space, as in 答案是Yes.
_WORD = re.compile(r"[a-z\u00df-\u024f\u0300-\u036f\u1e00-\u1eff]+|[^\W\d_]")
"""A word of Latin letters with their accents, or one letter of another script."""

_MARKUP = re.compile(r"[*_`\"\u201c\u201d{}\[\]#\u200e\u200f]")
# One or two words, as in "Final answer:"; a turn of the user is made up by the model.
_LABEL = r"(?:(?!user|human)\w[^\s.!?:\uff1a]*(?: [^\s.!?:\uff1a]+)?\s?[:\uff1a]\s*)?"
_END = r"[^\w?]*$"  # "Yes?" asks
# The word that a reply begins with: "Yes.", or "Answer: no, since ..."
_FIRST = re.compile(
    rf"[^\w?]*{_LABEL}(yes|no)"
    rf"(?:\s*[.,;:!(\n\u2013\u2014\u2026\u3002\uff0c\uff1a\uff01]| ?-+ |{_END})"
)
# The word that is its last sentence: "It was so. Yes."
_LAST = re.compile(rf"(?:[.!] |[\n\u3002\uff01])\s?{_LABEL}(yes|no){_END}")
_DENIAL = re.compile(
    r"\b(?:nope|not|cannot|never|hardly|wrong|false|incorrect|errors?|mistaken?|mistakes)\b"
    r"|n['\u2019]t\b"
    # One word was asked for: a Yes that is hedged says nothing.
    r"|\b(?:but|however|although|except|unless|if|actually|partly|partially|almost)\b"
    r"|\b(?:maybe|perhaps|possibly|probably|unsure|unlikely|doubtful|inaccurate)\b"
)

# One number, with its unit or scale; neither a part of another nor a minus or price.
_NUMBER = re.compile(
    r"(?<![\w.,/<>+\u00b1\u2212$\u20ac\u00a3-])(\d*[.,]?\d+)"
    r"(?: ?(%|\u066a|percent|per cent)| ?(?:/|out of) ?(100?))?(?![\w/+%\u00b0]|[.,]\d)"
)
# What may stand before it in its sentence: "The answer is 90" says the answer again.
_BEFORE = re.compile(
    r"(?:^|\n|[.!] )\W*(?:(?:about|around|approximately|roughly|perhaps|only|yes"
    r"|i(?:'m| am|'d say| would say))\b\W*)*$"
    r"|\b(?:likelihood|probability|confidence|certainty|chance)\W*(?:(?:level|score|that"
    r"|the|this|my|answer|it|correct|right|being|is|of|at|about|around)\b\W*)*$"
)
_AFTER = re.compile(r"(?: (?:confident|certain|sure|likely)\b)?(?:[^\w?]*$|\s*[.!\n])")


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfCheck:
    """Asks the model, in a further turn, whether the answer that it gave is correct.

    Attributes:
        form: ``"yes_no"``, or ``"number"`` for a number from 0 to 100, which says more
            where the provider gives no log-probabilities.
        prompt: The question, in any language; empty for the form's own. It must ask for
            the English word Yes or No, since a reply in other words, such as Ja or 是,
            counts as unknown; or name 0 and 100, and neither of these words.
        weight: Weight of the self-check in the uncertainty, where the disagreement of
            the replies has weight 1; above 0.

    Raises:
        ConfigurationError: The prompt does not ask for what the form wants, or the
            weight is not a number above 0.

    Example:
        >>> SelfCheck(weight=1.0).uncertainty(disagreement=0.25, p_correct=0.75)
        0.25
    """

    form: Form = "yes_no"
    prompt: str = ""
    weight: float = 0.5

    def __post_init__(self) -> None:
        check_choice(self.form, get_args(Form), what="the self-check's form")
        if self.prompt == "":
            object.__setattr__(self, "prompt", _PROMPTS[self.form])
        if form_of(str(self.prompt)) != self.form:
            wanted = "Yes or No" if self.form == "yes_no" else "a number from 0 to 100"
            given = f"prompt to ask for {wanted}, got {self.prompt!r}"
            msg = f"expected the self-check's {given}"
            raise ConfigurationError(msg)
        check_number(self.weight, what="the self-check's weight", above=0)

    def uncertainty(self, *, disagreement: float, p_correct: float) -> float:
        """Return the weighted mean of the disagreement and ``1 - p_correct``."""
        return (disagreement + self.weight * (1.0 - p_correct)) / (1.0 + self.weight)

    def applied(self, score: Score, p_correct: float, /) -> Score:
        """Return a score with the doubt of the self-check in its uncertainty."""
        u = score.disagreement
        if u is not None:
            u = self.uncertainty(disagreement=u, p_correct=p_correct)
        return replace(score, uncertainty=u, self_check=p_correct)


def form_of(prompt: str, /) -> Form | None:
    """Return the form that a prompt asks for, None if it is neither."""
    if {"yes", "no"} <= {*_words(prompt)}:
        return "yes_no"
    return "number" if {"0", "100"} <= {*re.findall(r"\d+", prompt)} else None


def read_self_check(
    reply: Reply, entries: object = None, *, form: Form | None = "yes_no"
) -> float | None:
    """Return the probability that a reply to a self-check says Yes, or states.

    A reply says Yes or No if it begins with the word, before a mark or line end, or if
    the word is its last sentence; a block of reasoning and a label such as "Answer:"
    may stand before. It may say so once only, and a Yes beside a denial says nothing.
    If the provider gives alternatives to that token, the result is the share of Yes
    among Yes and No.

    A number is read where the reply has one only, alone in its sentence or line, or
    said to be a likelihood. 90, 90 %, 0.9, 0,9, 9/10, "about 90" and "90 out of 100"
    are the same. 1 may be the least or the most, so it is unknown.

    ``entries`` are log-probabilities of the reply's tokens as in OpenAI's
    ``logprobs.content``, with ``top_logprobs`` where the provider gives them.

    Returns:
        A probability in [0, 1]. None where that is in doubt: "Hardly yes", "Yes and
        no", "Yes, it is wrong", "80 to 90", "above 90", "The answer is 90", a refusal,
        a call of a tool, or a text that was cut off.

    Example:
        >>> read_self_check(Reply(text="Yes - it is."))
        1.0
        >>> read_self_check(Reply(text="I cannot say yes.")) is None
        True
    """
    if reply.truncated or reply.refused or reply.unreadable or reply.tool_calls:
        return None
    if form == "number":
        return _stated(without_reasoning(reply.text))
    word = _verdict(without_reasoning(reply.text))
    if word is None:
        return None
    share = _share_of_yes(entries, word)
    return float(word == "yes") if share is None else share


def _verdict(text: str) -> str | None:
    """Return the Yes or No of a reply, in lower case."""
    plain = _plain(text)
    # Said once, it is the word whose log-probabilities are read.
    said = [word for word in _words(plain) if word in {"yes", "no"}]
    if len(said) != 1 or plain.startswith("<think>"):  # cut off in its reasoning
        return None
    found = _FIRST.match(plain) or _LAST.search(plain)
    if found is None or (found[1] == "yes" and _DENIAL.search(plain)):
        return None
    return found[1]


def _stated(text: str) -> float | None:
    """Return the probability that the only number of a reply states."""
    plain = _plain(normalize("NFKC", text).replace("\u2019", "'"))
    number = _NUMBER.search(plain)
    if number is None or _DENIAL.search(plain) or re.search(r"\bno\b|[?]", plain):
        return None
    before, after = plain[: number.start()], plain[number.end() :]
    alone = _BEFORE.search(before) and _AFTER.match(after)
    if not alone or re.search(r"\d", before + after):
        return None
    digits, percent, scale = number.groups()
    value = float(digits.replace(",", "."))
    if value == 1 and not (percent or scale):
        return None
    if scale or percent or value > 1:
        value /= float(scale or 100)
    return value if value <= 1 else None


def _plain(text: str) -> str:
    """Return a text without markup, in lower case, with single spaces."""
    bare = _MARKUP.sub("", text).casefold().splitlines()
    lines = (" ".join(line.split()) for line in bare)
    return "\n".join(filter(None, lines))


def _share_of_yes(entries: object, word: str) -> float | None:
    """Return the probability of Yes over Yes and No where the word was last said."""
    tokens = _mappings(entries)
    around = ["", *(str(entry.get("token")) for entry in tokens), ""]
    said = [
        entry
        for at, entry in enumerate(tokens)
        # Not the "no" of "no" and "tes".
        if _word_of(entry) == word and word in _words("".join(around[at : at + 3]))
    ]
    if not said:
        return None
    entry = said[-1]
    known = {each.get("token"): each for each in _mappings(entry.get("top_logprobs"))}
    if not known:  # 1 - p covers other spellings too: it is not the other word's p
        return None
    mass = {"yes": 0.0, "no": 0.0}
    # Keyed by the token: the one that was drawn is among the alternatives as well.
    for each in {**known, entry.get("token"): entry}.values():
        logprob = each.get("logprob")
        if _word_of(each) in mass and isinstance(logprob, int | float):
            mass[_word_of(each)] += math.exp(min(0.0, logprob))
    if not mass[word]:
        return None
    return mass["yes"] / (mass["yes"] + mass["no"])


def _word_of(entry: Mapping[str, Any]) -> str:
    token = entry.get("token")
    words = _words(token) if isinstance(token, str) else []
    return words[0] if len(words) == 1 else ""


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _mappings(value: object) -> list[Mapping[str, Any]]:
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        return []
    return [each for each in value if isinstance(each, Mapping)]
