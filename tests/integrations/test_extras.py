from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec, module_from_spec

import pytest

from snne_guard import MissingExtraError
from snne_guard_integrations import _extras
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


@pytest.mark.parametrize(
    ("adapter", "said"),
    [
        ("langfuse", r"langfuse 5\.0 or later .*snne-guard\[langfuse\]"),
        ("langsmith", r"langsmith 0\.14\.9 or later .*snne-guard\[langsmith\]"),
        ("otel", r"opentelemetry-api 1\.45 or later .*snne-guard\[otel\]"),
    ],
)
def test_an_adapter_without_its_package_names_the_extra(
    adapter: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(_extras, "version", missing)
    found = find_spec(f"snne_guard_integrations.{adapter}")
    assert found is not None
    assert found.loader is not None
    with pytest.raises(MissingExtraError, match=said):
        found.loader.exec_module(module_from_spec(found))
