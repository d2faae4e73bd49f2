"""Which fields of a structured answer the samples support.

``score_fields`` gives each field its own uncertainty, as a guard does for every
structured answer. ``render_fields`` shows what is uncertain.
"""

from snne_guard.fields.rendering import render_fields
from snne_guard.fields.scoring import calibrate_fields, score_fields

__all__ = ["calibrate_fields", "render_fields", "score_fields"]
