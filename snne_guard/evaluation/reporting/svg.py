"""Figures of matplotlib as small SVGs that take the colours of the page they are in."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Generator
from contextlib import contextmanager
from html import escape
from threading import Lock
from typing import Any, NamedTuple, TypeAlias

import matplotlib as mpl
from matplotlib import figure as figures

__all__ = ["FAINT", "INK", "Axes", "Panel", "inks", "inline", "panel", "plotting"]

# matplotlib says of few keyword arguments what they are, so that a strict checker of
# types takes its methods for unknown.
Axes: TypeAlias = Any
Figure: TypeAlias = Any
_mpl: Any = mpl

_WIDTH, _HEIGHT = 360.0, 252.0
"""Size of a chart in units of 1/72 inch, the pixels of its view box."""
_LEFT, _RIGHT, _TOP, _BOTTOM = 44.0, 16.0, 8.0, 38.0

# matplotlib knows no CSS variables, so that each stands in as a colour nobody uses.
INK, FAINT = "#0a0b01", "#0a0b02"
_VARIABLES = {INK: "currentColor", FAINT: "var(--faint)"}
_INKS = 8

_settings = {
    "svg.fonttype": "none",
    "font.family": ["sans-serif"],
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 11.0,
    "axes.linewidth": 0.8,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.unicode_minus": True,
    "xtick.color": INK,
    "ytick.color": INK,
    "path.simplify_threshold": 0.5,
}
_lock = Lock()


def inks() -> tuple[str, ...]:
    """Return the colours of curves: the page's variables ``--c0``, ``--c1``, ..."""
    return tuple(f"#0a0c0{which}" for which in range(_INKS))


@contextmanager
def plotting(salt: str) -> Generator[None]:
    """Draw as the report does, whatever the user's own settings of matplotlib are.

    Args:
        salt: Of the ids in the figures, so that those of two differ on one page.
    """
    # The settings belong to the process: they are ours only while a figure is drawn.
    with _lock, _mpl.rc_context():
        _mpl.rcdefaults()
        _mpl.rcParams.update({**_settings, "svg.hashsalt": salt})
        yield


class Panel(NamedTuple):
    """A figure with its axes, and below them those of the counts, where any are."""

    figure: Figure
    axes: Axes
    counts: Axes | None


def panel(*, x_label: str, y_label: str, counts: bool = False) -> Panel:
    """Return an empty figure."""
    figure: Figure = figures.Figure(
        figsize=(_WIDTH / 72, _HEIGHT / 72), facecolor="none"
    )
    foot = _BOTTOM + (44.0 if counts else 0.0)
    axes = _axes(figure, foot, _HEIGHT - foot - _TOP)
    axes.set_ylabel(y_label)
    if not counts:
        axes.set_xlabel(x_label)
        return Panel(figure, axes, None)
    below = _axes(figure, _BOTTOM, 32.0)
    below.set_xlabel(x_label)
    axes.tick_params(labelbottom=False)
    return Panel(figure, axes, below)


def _axes(figure: Figure, foot: float, height: float) -> Axes:
    width = _WIDTH - _LEFT - _RIGHT
    place = (_LEFT / _WIDTH, foot / _HEIGHT, width / _WIDTH, height / _HEIGHT)
    axes: Axes = figure.add_axes(place)
    axes.patch.set_visible(False)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(length=0, pad=4)
    axes.grid(visible=True, axis="y", color=FAINT, linewidth=0.8)
    axes.set_axisbelow(True)
    return axes


def inline(figure: Figure, name: str, *, title: str, description: str) -> str:
    """Return a figure as an ``<svg>`` for the inside of a page.

    Args:
        figure: What to write, made within ``plotting``.
        name: Unique in the page, for the ids of title and description.
        title: What it shows, in a few words.
        description: What it says, for those who do not see it.
    """
    stream = io.StringIO()
    figure.savefig(stream, format="svg", metadata={"Date": None})
    text = stream.getvalue()
    body = text[text.index(' <g id="figure_1">') : text.rindex("</svg>")]
    return (
        f'<svg viewBox="0 0 {_WIDTH:g} {_HEIGHT:g}" role="img" '
        f'aria-labelledby="{name}-t {name}-d">'
        f'<title id="{name}-t">{escape(title)}</title>'
        f'<desc id="{name}-d">{escape(description)}</desc>{_small(body)}</svg>'
    )


def _rounded(found: re.Match[str]) -> str:
    return f"{float(found[0]):.1f}"


_SHORTER: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    (re.compile(r"\s+"), " "),
    # Only what another element refers to needs its id, and these ids are hashes.
    (re.compile(r' id="(?![mp][0-9a-f]{10}")[^"]*"'), ""),
    (re.compile(r"xlink:href"), "href"),
    (re.compile(r"font(-size|-family)?: [^;\"]*;? ?"), ""),
    (re.compile(r' transform="rotate\(-0 [^"]*"'), ""),
    (re.compile(r"-?\d+\.\d{2,}"), _rounded),
    (re.compile(r"(\d)\.0(?!\d)"), r"\1"),
    (re.compile(r"([:;]) "), r"\1"),
    # Nothing is drawn beyond the axes, and a text has the colour of its surroundings.
    (re.compile(r' clip-path="[^"]*"'), ""),
    (re.compile(r"stroke-dashoffset:0;"), ""),
    (re.compile(rf"(text-anchor:\w+);fill:{INK}"), r"\1"),
    (re.compile(r' (?="|/>)'), ""),
    (re.compile(r' style=""'), ""),
)
_TAG = re.compile(r"<[^>]*>")
_BETWEEN = re.compile(r">\s+<")
_USELESS = re.compile(r"<g ?/>|</?g>|<defs><clipPath.*?</defs>")


def _small(body: str) -> str:
    body = _USELESS.sub("", _BETWEEN.sub("><", _TAG.sub(_shorter, body)))
    variables = {**_VARIABLES, **{c: f"var(--c{i})" for i, c in enumerate(inks())}}
    for colour, variable in variables.items():
        body = body.replace(colour, variable)
    return body


def _shorter(tag: re.Match[str]) -> str:
    text = tag[0]
    for pattern, instead in _SHORTER:
        text = pattern.sub(instead, text)
    return text
