"""An adapter without its package names the extra that brings it."""

from __future__ import annotations

import importlib
import sys

import pytest

from snne_guard import MissingExtraError


@pytest.mark.parametrize(
    ("package", "adapter", "extra"),
    [
        ("langchain.agents", "langchain_agent", "agents"),
        ("langfuse", "langfuse", "langfuse"),
        ("langsmith.run_helpers", "langsmith", "langsmith"),
        ("mlflow", "mlflow", "mlflow"),
        ("opentelemetry", "otel", "otel"),
        ("phoenix", "phoenix", "phoenix"),
        ("pydantic_ai", "pydantic_ai", "pydantic-ai"),
    ],
)
def test_a_missing_package_names_the_extra(
    package: str, adapter: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [*sys.modules]:
        if name.startswith(f"{package}."):
            monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, package, None)
    module = f"snne_guard_integrations.{adapter}"
    monkeypatch.delitem(sys.modules, module, raising=False)
    with pytest.raises(MissingExtraError, match=rf"snne-guard\[{extra}\]") as found:
        importlib.import_module(module)
    assert found.value.extra == extra
