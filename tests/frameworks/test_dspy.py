"""DSPy asks a guarded client by an engine; it is the example's."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import openai
import pytest

from snne_guard import UncertainAnswerError
from snne_guard.openai import guard_client
from tests.frameworks.support import QUESTION, framework
from tests.support.openai_server import Scripted, Server, always, split

dspy: Any = framework("dspy")

KNOWN = '{"answer": "Paris"}'
APART = [f'{{"answer": "{name}"}}' for name in ("Rome", "Lyon", "Bonn", "Oslo")]
