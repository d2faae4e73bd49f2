"""The page of the report: its templates, and what they may call."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from importlib import resources
from typing import Any, cast

from jinja2 import DictLoader, Environment, StrictUndefined
from markupsafe import Markup, escape

from snne_guard.evaluation.reporting import text
from snne_guard.evaluation.reporting.view import LENGTH, view
from snne_guard.evaluation.results import Evaluation

__all__ = ["environment", "page"]

_TEMPLATES = (
    "report.html.j2",
    "report_set.html.j2",
    "calibration.html.j2",
    "report.css",
)
_JOINT = re.compile(r"(?<=[_:/])(?=\w\w)|(?=\[)")


def page(evaluation: Evaluation) -> str:
    """Return the page as a text that any file can hold."""
    shown = {
        name: json.dumps(value, ensure_ascii=False, default=str)
        for name, value in evaluation.settings.items()
    }
    made = environment().get_template(_TEMPLATES[0])
    return text.clean(
        made.render(
            evaluation=evaluation,
            views=[
                view(found, f"set-{at}")
                for at, found in enumerate(evaluation.sets, start=1)
            ],
            settings=shown,
            length=LENGTH,
        )
    )


def environment() -> Environment:
    """Return what makes pages of the templates."""
    home = resources.files("snne_guard.evaluation.reporting")
    sources = {
        name: home.joinpath(name).read_text(encoding="utf-8") for name in _TEMPLATES
    }
    found = Environment(
        loader=DictLoader(sources),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters = cast("dict[str, Callable[..., Any]]", found.filters)
    filters.update(
        number=text.number,
        signed=text.signed,
        interval=text.interval,
        percent=text.share,
        clip=text.clip,
        repeats=text.repeats,
        moment=text.moment,
        breakable=_breakable,
    )
    return found


def _breakable(name: str) -> Markup:
    """Return a name that a narrow column may break where its parts meet."""
    joint = Markup("<wbr>")
    return joint.join(escape(part) for part in _JOINT.split(name))
