"""The pages hold: their Python runs and their outputs come; the build checks links.

The Python blocks of a page run in order in one namespace, in an empty folder with the
project's ``examples``; bash blocks only where they are marked ``<!-- run -->``, or
``<!-- run in the background -->`` for a server that the rest of the page calls. A
scripted server stands in for OpenAI, and ``model`` is a ``ChatOpenAI`` that asks it.
Where a block is followed by a ``text`` block, that is what it prints, unless the
``text`` block is marked ``<!-- output varies -->``.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import os
import re
import signal
import subprocess
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, redirect_stdout, suppress
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from langchain_openai import ChatOpenAI

from snne_guard.types import REASONS
from tests.docs.provider import knowledgeable
from tests.support.asgi import free_port
from tests.support.batch_server import BatchServer
from tests.support.openai_server import Server

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
NAVIGATION = re.findall(
    r": ([\w-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE
)
PAGES = [ROOT / "README.md", *(DOCS / name for name in NAVIGATION)]
EMBEDDED = {"README.md", "index.md", "tutorial.md"}
"""Pages whose blocks ask the embedded model."""
SLOW = {"tutorial.md", "evaluation.md"}

NOT_RUN = {
    ("models.md", "needs the weights of a model"),
    ("tracing.md", "needs an account or a server"),
}
"""Blocks that are not run: page and reason."""


BLOCK = re.compile(
    r"^(?:<!-- (?P<mark>[^>]*?) -->\n\n?)?```(?P<language>\w*)\n(?P<text>.*?)^```$"
    r"(?:\s*^```text\n(?P<output>.*?)^```$)?",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True, kw_only=True)
class Block:
    """A fenced block, the comment above it, and what stands below as its output."""

    language: str
    text: str
    line: int
    mark: str
    output: str | None


PORTS = ("8484", "8485", "8486")
"""Ports on which the servers of a page listen; theirs may be taken."""


def blocks(page: Path, *, ports: Mapping[str, str] | None = None) -> list[Block]:
    """Return the blocks of a page, with other ports for its servers to listen on."""
    text = page.read_text(encoding="utf-8")
    for port, other in (ports or {}).items():
        text = re.sub(rf"\b{port}\b", other, text)
    return [
        Block(
            language=found["language"],
            text=found["text"],
            line=text.count("\n", 0, found.start("text")),
            mark=found["mark"] or "",
            output=found["output"],
        )
        for found in BLOCK.finditer(text)
    ]


def cases() -> list[Any]:
    slow = pytest.mark.slow
    return [
        pytest.param(page, id=page.name, marks=slow if page.name in SLOW else ())
        for page in PAGES
    ]


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with BatchServer(knowledgeable()) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "test")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        yield server


@pytest.mark.usefixtures("provider")
@pytest.mark.parametrize("page", cases())
def test_blocks_run_and_print_what_stands_below_them(
    page: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    ports = {port: str(free_port()) for port in PORTS}
    monkeypatch.setenv("SNNE_GUARD_PORT", ports["8484"])
    if page.name in EMBEDDED:
        request.getfixturevalue("embedded")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    namespace: dict[str, Any] = {"model": ChatOpenAI(model="gpt-4.1-mini")}
    with asyncio.Runner() as runner, ExitStack() as background:
        background.callback(end_left_over, tmp_path)
        for block in blocks(page, ports=ports):
            if block.mark.startswith("not run"):
                continue
            if block.language == "python":
                printed = run(block, page, namespace, runner)
            elif block.mark == "run in the background":
                background.enter_context(running(block))
                continue
            elif block.language == "bash" and block.mark == "run":
                printed = run_in_shell(block)
            else:
                continue
            if block.output is not None:
                assert printed.strip() == block.output.strip(), f"line {block.line}"


def run(
    block: Block, page: Path, namespace: dict[str, Any], runner: asyncio.Runner
) -> str:
    source = "\n" * block.line + block.text  # so that a traceback has the page's lines
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    code = compile(source, str(page), "exec", flags=flags)
    with redirect_stdout(StringIO()) as printed, warnings.catch_warnings():
        if code.co_flags & inspect.CO_COROUTINE:
            runner.run(eval(code, namespace))  # noqa: S307 - the project's own pages
        else:
            exec(code, namespace)  # noqa: S102 - likewise
    return printed.getvalue()


def run_in_shell(block: Block) -> str:
    command = ["bash", "-euc", block.text]
    done = subprocess.run(  # noqa: S603 - likewise
        command,
        stdin=subprocess.DEVNULL,  # nobody is there to answer
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, f"line {block.line}: {done.stderr}"
    return done.stdout


def end_left_over(folder: Path) -> None:
    """End a server that a block has started where a later one did not come to it."""
    for file in folder.glob("*.pid"):
        with suppress(ProcessLookupError):
            os.kill(int(file.read_text()), signal.SIGKILL)


@contextmanager
def running(block: Block) -> Iterator[None]:
    """Run one command until the page is through, from where it listens on."""
    command = ["bash", "-euc", f"exec {block.text}"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:  # noqa: S603 - likewise
        assert process.stderr is not None
        assert any("running on" in line for line in process.stderr), block.line
        try:
            yield
        finally:
            process.terminate()


def test_blocks_that_are_not_run_are_listed() -> None:
    found = {
        (page.name, block.mark.partition(": ")[2])
        for page in PAGES
        for block in blocks(page)
        if block.mark.startswith("not run")
    }
    assert found == NOT_RUN


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files_and_headings(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    links = re.findall(r"(?:\]\(|(?:src|srcset|href)=\")([^)\s\"]+)", text)
    for link in links:
        path, _, anchor = link.partition("#")
        # The site makes the anchors of the reference from docstrings.
        if "://" in link or anchor.startswith("snne_guard."):
            continue
        target = page.parent / path if path else page
        assert target.exists(), f"{link} leads nowhere"
        if anchor:
            headings = re.findall(r"^#+ (.+)$", target.read_text("utf-8"), re.MULTILINE)
            assert anchor in map(_anchor, headings), link


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_page_loads_a_picture_or_font_from_the_web(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert not re.search(r"!\[[^\]]*\]\(https?:|src(?:set)?=\"https?:", text)
    assert "font: false" in (ROOT / "mkdocs.yml").read_text(encoding="utf-8")


def test_llms_txt_names_every_page_as_the_site_serves_it() -> None:
    text = (DOCS / "llms.txt").read_text(encoding="utf-8")
    named = re.findall(r"^- \[[^\]]+\]\(([^)]+)\): \S", text, re.MULTILINE)
    served = [f"{name.removesuffix('.md')}/" for name in NAVIGATION]
    assert sorted(named) == sorted("./" if at == "index/" else at for at in served)


def test_every_reason_is_explained() -> None:
    page = (DOCS / "options.md").read_text(encoding="utf-8")
    section = page.partition("\n## Reasons\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)
    assert sorted(rows) == sorted(REASONS)
