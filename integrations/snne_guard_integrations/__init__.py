"""Adapters of snne-guard: one framework or one tracing tool, one module."""
