"""Adapters of snne-guard to frameworks and tracing tools, one a module."""
