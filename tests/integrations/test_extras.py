from __future__ import annotations

from importlib.metadata import version

import pytest

from snne_guard import MissingExtraError
from snne_guard_integrations._extras import required


def test_what_is_there_is_imported() -> None:
    assert required("packaging.version", extra="otel", at_least="1").__name__ == (
        "packaging.version"
    )


def test_what_is_not_there_names_the_command_that_helps() -> None:
    with pytest.raises(MissingExtraError) as caught:
        required("no_such_package", extra="otel", at_least="2.1")
    assert str(caught.value) == (
        "no_such_package 2.1 or later is not installed. "
        'Install it with: pip install "snne-guard[otel]"'
    )
    assert caught.value.extra == "otel"


def test_what_is_too_old_names_both_versions() -> None:
    with pytest.raises(MissingExtraError) as caught:
        required("packaging", extra="mlflow", at_least="999")
    said = str(caught.value)
    assert said.startswith(f"packaging 999 or later (found {version('packaging')})")
    assert 'pip install "snne-guard[mlflow]"' in said


def test_a_package_without_the_part_that_is_needed_is_too_old_as_well() -> None:
    with pytest.raises(MissingExtraError, match=r"\(no packaging\.nothing\)"):
        required("packaging.nothing", extra="otel", at_least="1")
