"""A structured answer field by field, with the uncertain ones marked."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Sequence
from typing import Any, Literal, get_args

from snne_guard.checks import check_choice
from snne_guard.decision import Threshold
from snne_guard.fields.scoring import read_value, value_at
from snne_guard.text import printable
from snne_guard.types import Field

FieldsForm = Literal["plain", "markdown", "html", "terminal"]

_ABSENT = object()
_MARKUP = re.compile(r"[\\`*_{}\[\]<>#|~&]")


def render_fields(
    answer: Any,  # noqa: ANN401 - JSON may be anything
    fields: Sequence[Field],
    *,
    threshold: float = 0.5,
    form: FieldsForm = "plain",
) -> str:
    r"""Return a structured answer as a table of its fields, uncertain ones marked.

    Args:
        answer: What ``score_fields`` took as the answer.
        fields: Its fields.
        threshold: Largest uncertainty of a field that is not marked.
        form: ``"plain"`` and ``"markdown"`` put ``[?]`` after an uncertainty,
            ``"html"`` puts the value into ``<mark>``, and ``"terminal"`` uses a yellow
            background. Paths and values are escaped, control characters are pictures.

    Raises:
        ConfigurationError: The threshold or the form makes no sense.

    Example:
        >>> from snne_guard import score_fields
        >>> answer = {"city": "Bern", "year": 1907}
        >>> fields = score_fields(answer, [{"city": "Basel", "year": 1907}])
        >>> print(render_fields(answer, fields))
        /city  "Bern"  1.00 [?]
        /year  1907  0.00
    """
    check_choice(form, get_args(FieldsForm), what="form")
    limit = Threshold.fixed(threshold).value
    escape, sure, doubted, whole = _FORMS[form]
    value = read_value(answer)
    lines: list[str] = []
    for each in fields:
        line = sure if each.uncertainty <= limit else doubted
        found = value_at(value, each.path, _ABSENT)
        said = json.dumps(found, ensure_ascii=False, default=str)
        said = "(absent)" if found is _ABSENT else said
        texts = [printable(each.path), printable(said)]
        lines.append(line.format(*map(escape, texts), each.uncertainty))
    return whole.format("\n".join(lines))


_FORMS: dict[str, tuple[Callable[[str], str], str, str, str]] = {
    "plain": (str, "{}  {}  {:.2f}", "{}  {}  {:.2f} [?]", "{}"),
    "terminal": (str, "{}  {}  {:.2f}", "\x1b[30;43m{}  {}  {:.2f}\x1b[0m", "{}"),
    "markdown": (
        lambda text: _MARKUP.sub(r"\\\g<0>", text),
        "| {} | {} | {:.2f} |",
        r"| {} | {} | {:.2f} \[?\] |",
        "| field | value | uncertainty |\n|---|---|---|\n{}",
    ),
    "html": (
        html.escape,
        "<tr><td>{}</td><td>{}</td><td>{:.2f}</td></tr>",
        "<tr><td>{}</td><td><mark>{}</mark></td><td>{:.2f}</td></tr>",
        "<table>\n<tr><th>field</th><th>value</th><th>uncertainty</th></tr>\n{}\n</table>",
    ),
}
"""How each form escapes a text, shows a sure and a doubted field, and all of them."""
