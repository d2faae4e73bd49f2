"""Which fields of a structured answer the samples support."""

from snne_guard.fields.scoring import score_fields

__all__ = ["score_fields"]
