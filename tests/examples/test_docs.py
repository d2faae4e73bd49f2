"""The README and ``docs/``: blocks run, links lead somewhere, tables hold."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import importlib
import inspect
import io
import itertools
import json
import re
import runpy
import shlex
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args
from xml.etree import ElementTree as ET

import pytest
from langchain_openai import ChatOpenAI
from typer.testing import CliRunner

from benchmarks import cost_model, latency
from snne_guard import SNNEGuard
from snne_guard.cli import COMMANDS, build_app
from snne_guard.types import Assessment, Decision, OnError, OnUncertain, ToolCalls
from tests.examples.doc_pages import (
    DOCS,
    PAGES,
    ROOT,
    Block,
    anchors,
    blocks,
    links,
    prose,
    table,
)
from tests.examples.doc_server import knowledgeable
from tests.examples.reason_codes import reason_codes
from tests.support.chat_server import ChatServer, chat_openai, ignoring_n
from tests.support.guarding import record, split

README = ROOT / "README.md"
DECISIONS = DOCS / "decisions-and-errors.md"
API = DOCS / "api.md"
PUBLIC = (
    "snne_guard",
    "snne_guard.langchain",
    "snne_guard.langchain.embedded",
    "snne_guard.scorers",
    "snne_guard.similarity",
    "snne_guard.decision",
    "snne_guard.evaluation",
)


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[ChatServer]:
    """Let ``ChatOpenAI(model=...)`` as it stands on a page talk to a local server."""
    for name in ("SNNE_GUARD_DISABLED", "LANGSMITH_TRACING", "LANGCHAIN_TRACING_V2"):
        monkeypatch.delenv(name, raising=False)
    with ChatServer(knowledgeable()) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "test")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_BASE", server.url)
        yield server


def execute(block: Block, page: Path, namespace: dict[str, Any]) -> str:
    """Run a block, its lines numbered as on the page; return what it printed."""
    source = "\n" * (block.line - 1) + block.text
    code = compile(
        source,
        page.name,
        "exec",
        flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT,
        dont_inherit=True,
    )
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        result = types.FunctionType(code, namespace)()
        if inspect.iscoroutine(result):
            asyncio.run(result)
    return printed.getvalue()


def compare(block: Block, page: Path, printed: str) -> None:
    if block.text != printed:
        where = f"{page.name}, line {block.line}"
        pytest.fail(f"{where}: the page says\n{block.text}\nand it is\n{printed}")


def command_of(block: Block) -> list[str] | None:
    """Return the words of a command that needs nothing but what a clone holds."""
    if block.language != "bash" or "snne-guard calibrate examples/" not in block.text:
        return None
    return shlex.split(block.text.replace("\\\n", " "))[1:]


def run(command: list[str]) -> str:
    """Return what a command says, without the spaces at the ends of lines."""
    done = CliRunner(env={"COLUMNS": "100"}).invoke(build_app(), command)
    assert done.exit_code == 0, done.output
    return "\n".join(map(str.rstrip, done.stdout.split("\n")))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
@pytest.mark.usefixtures("provider")
def test_every_block_runs_and_prints_what_the_page_says(
    page: Path,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)  # where pages leave their files
    Path("examples").symlink_to(ROOT / "examples")
    namespace: dict[str, Any] = {"model": ChatOpenAI(model="gpt-4.1-mini")}
    printed: str | None = None
    found = [*blocks(page), None]
    for block, behind in itertools.pairwise(found):
        assert block is not None
        if block.language == "python":
            assert not printed, f"{page.name}: {printed!r} is printed but not shown"
            if "embedded_model" in block.text:
                request.getfixturevalue("embedded")  # skips where there is none
            if "meta-llama" in block.text:
                request.getfixturevalue("hub")
            printed = execute(block, page, namespace)
        elif (command := command_of(block)) is not None:
            if behind is not None and behind.language == "text" and behind.follows:
                printed = run(command)
            else:  # much is said that a page may leave out
                run(command)
        elif block.language == "text" and block.follows and printed is not None:
            compare(block, page, printed)
            printed = None
    assert not printed, f"{page.name}: {printed!r} is printed but not shown"


def test_pages_have_blocks_that_show_what_they_print() -> None:
    for name in ("tutorial", "motivation", "streaming-and-privacy", "testing"):
        found = blocks(DOCS / f"{name}.md")
        shown = [block for block in found if block.language == "text" and block.follows]
        assert len(shown) >= 3, name


def test_blocks_say_what_language_they_are_in() -> None:
    found = {block.language for page in PAGES for block in blocks(page)}
    assert found == {"python", "text", "bash", "json"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_to_a_file_and_a_heading(page: Path) -> None:
    for link in links(page):
        target, _, anchor = link.partition("#")
        assert "://" not in target, f"{link}: name a paper by its number"
        path = (page.parent / target).resolve() if target else page
        assert path.exists(), link
        assert not anchor or anchor in anchors(path), link


def test_every_page_is_in_the_menu_and_on_the_overview() -> None:
    menu = re.findall(r": (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    pages = {path.name for path in DOCS.glob("*.md")}
    assert sorted(menu) == sorted(pages)
    assert pages - {"index.md"} <= set(links(DOCS / "index.md"))
    assert {f"docs/{name}" for name in {*pages, "demo.svg"}} <= set(links(README))


def test_every_reason_code_is_in_the_table_and_none_that_is_not() -> None:
    listed = [code(row[0]) for row in table(DECISIONS, first="reason")]
    assert len(listed) == len(set(listed))
    found = reason_codes(ROOT / "snne_guard")
    assert {"no_threshold", "samples_failed", "side_effects", "cancelled"} <= found
    assert set(listed) == found


def test_reason_codes_are_found_wherever_they_are_written(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text(
        "reasons = []\n"
        "reasons.append('appended')\n"
        "reasons += ('added',) if x == 'not_this' else ()\n"
        "a, reasons = METHODS['not_that'], ('unpacked',)\n"
        "a, reasons = both()\n"
        "_X_REASONS = {'not_a_key': 'mapped'}\n"
        "f(reasons=(*others, 'passed', *called('not_this')))\n"
        "def _skip(self):\n    return 'returned'\n"
        "def called(text):\n    return ('told',) if text == 'not_that' else ()\n"
        "def both():\n    return None, ('paired',)\n"
        "def taken(self, answer, reason):\n    return 'not_this'\n"
        "self.taken('not_that', 'positional')\n"
    )
    expected = {
        "added",
        "appended",
        "mapped",
        "paired",
        "passed",
        "positional",
        "returned",
        "told",
        "unpacked",
    }
    assert reason_codes(tmp_path) == expected


@pytest.mark.parametrize(
    ("first", "choices", "pages"),
    [
        ("decision", {*get_args(Decision), "None"}, [DECISIONS]),
        ("`on_uncertain`", {*get_args(OnUncertain), "a function"}, [DECISIONS, README]),
        ("`on_error`", {*get_args(OnError)}, [DECISIONS, README]),
        ("`tool_calls`", {*get_args(ToolCalls), "a Policy", "a function"}, [DECISIONS]),
    ],
)
def test_tables_of_choices_are_complete(
    first: str, choices: set[str], pages: list[Path]
) -> None:
    for page in pages:
        listed = [
            code(row[0].removesuffix(" (default)")) for row in table(page, first=first)
        ]
        assert sorted(listed) == sorted(choices)


def test_the_table_of_options_is_the_signature() -> None:
    parameters = inspect.signature(SNNEGuard.__init__).parameters.values()
    expected = [
        [name, "" if default is inspect.Parameter.empty else repr(default)]
        for name, default in ((p.name, p.default) for p in parameters)
        if name not in {"self", "internal"}
    ]
    rows = table(API, first="option")
    assert [[code(row[0]), row[1].strip("`")] for row in rows] == expected


@pytest.mark.parametrize("module", PUBLIC)
def test_every_public_name_is_on_the_page_about_the_api(module: str) -> None:
    names = set(importlib.import_module(module).__all__) - {"__version__"}
    page = prose(API)
    assert {name for name in names if f"`{name}`" not in page} == set()
    assert f"`{module}`" in page


def test_the_metadata_in_the_readme_are_of_the_kind_that_a_message_carries() -> None:
    (shown,) = (block for block in blocks(README) if block.language == "json")
    said: dict[str, Any] = json.loads(shown.text)
    with ChatServer(split("Paris", ["Paris"])) as server:
        guard = SNNEGuard(chat_openai(server), threshold=0.4)
        real = record(guard.invoke("What is the capital of France?"))
    assert kinds(said) == kinds(real)
    fixed = [key for key in real if key not in {"id", "score", "cost"}]
    assert {key: said[key] for key in fixed} == {key: real[key] for key in fixed}
    assert said["score"] == pytest.approx(real["score"], abs=1e-12)
    assert [code(row[0]) for row in table(API, first="key")] == list(real)
    cost = table(API, first="key")[list(real).index("cost")][1]
    assert [key for key in real["cost"] if f"`{key}`" not in cost] == []
    empty = Assessment(id="", answer=None).to_metadata()
    assert list(empty) == list(real)


def kinds(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: kinds(inner) for key, inner in value.items()}
    return type(value).__name__


def test_the_cost_table_in_the_readme_is_what_the_program_prints(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["cost_model.py"])
    runpy.run_path(str(ROOT / "benchmarks" / "cost_model.py"), run_name="__main__")
    assert capsys.readouterr().out in README.read_text(encoding="utf-8")


def test_the_cost_model_has_known_values() -> None:
    nine = cost_model.CostModel(samples=9)
    assert nine.multiple(1500, 50) == 10.0
    assert nine.multiple(100, 20, cached=0.5) == 7.5
    assert nine.multiple(100, 20, cached=0.1) == 5.5
    assert nine.multiple(100, 20, one_request=True) == pytest.approx(1000 / 180)
    dear = cost_model.CostModel(samples=4, output_price=5)
    assert dear.multiple(100, 20, one_request=True) == pytest.approx(700 / 200)


@pytest.mark.parametrize("one_request", [True, False])
def test_the_cost_model_agrees_with_what_a_server_bills(one_request: bool) -> None:
    question = " ".join(["word"] * 40)
    texts = ["ten words " * 5]
    script = split(texts[0], texts if one_request else ignoring_n(texts))
    with ChatServer(script) as server:
        chat_openai(server).invoke(question)
        bare = server.billed
        SNNEGuard(chat_openai(server)).invoke(question)
        whole = server.billed
    billed = [
        after - before + 4 * (written_after - written)
        for before, after, written, written_after in (
            (0, bare.prompt_tokens, 0, bare.completion_tokens),
            (
                bare.prompt_tokens,
                whole.prompt_tokens,
                bare.completion_tokens,
                whole.completion_tokens,
            ),
        )
    ]
    model = cost_model.CostModel(samples=4)
    expected = model.multiple(40, 10, one_request=one_request)
    assert billed[1] / billed[0] == pytest.approx(expected)


def test_the_table_of_latencies_is_of_the_cases_that_the_program_runs() -> None:
    rows = table(DOCS / "latency-and-cost.md", first="schedule")
    assert [row[0] for row in rows] == [case.name for case in latency.CASES]
    drawn = [latency.delays(number) for number in range(latency.CALLS)]
    answers = [delays[0] for delays in drawn]
    for row, case in zip(rows, latency.CASES, strict=True):
        waiting = latency.added([case.waiting(delays) for delays in drawn], answers)
        assert [re.findall(r"\((.*)\)", cell) for cell in row[1:3]] == [
            [f"{added:.1f}"] for added in waiting
        ]


def test_commands_on_the_pages_exist() -> None:
    targets = set(re.findall(r"^([\w-]+):", makefile(), re.MULTILINE))
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert set(re.findall(r"\bmake (demo|test|bench)\b", text)) <= targets
    for path in re.findall(r"\bpython (\S+\.py)", text):
        assert (ROOT / path).exists(), path
    named = set(re.findall(r"(?:^|`)snne-guard (\w+)", text, re.MULTILINE))
    assert {"ask", "demo", "doctor", "score"} <= named <= set(COMMANDS)


def test_the_picture_shows_an_answer_that_passed_and_one_that_was_held_back() -> None:
    root = ET.parse(DOCS / "demo.svg").getroot()  # noqa: S314 - our own file
    text = "".join(root.itertext())
    assert "ACCEPTED" in text
    assert "HELD" in text
    assert "uncalibrated" in text


def makefile() -> str:
    return (ROOT / "Makefile").read_text(encoding="utf-8")


def code(cell: str) -> str:
    """Return what a cell of a table names, without backquotes and quotes."""
    return cell.strip("`").strip('"')
