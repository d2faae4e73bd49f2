"""Placeholder docstring, replaced by the module that lives here."""
