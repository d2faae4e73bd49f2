"""The version, read from the installed metadata."""

from importlib.metadata import version

__version__ = version("snne-guard")
