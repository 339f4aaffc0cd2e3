"""The documentation site: its code runs, commands parse, it builds, and its links resolve."""

from __future__ import annotations

import argparse
import inspect
import re
import shlex
import subprocess
import sys
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag

import pytest

from secagg import _fast

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
ELSEWHERE = {
    "flare.md",
    "how-to/own-ratings.md",
    "paillier.md",
    "testing.md",
    "tutorials/statistics.md",
}  # other tests run their blocks
TEXT = r"```text\n(.*?)^```"
CELL = re.compile(rf"^```python\n(.*?)^```\n(?:\n^{TEXT})?", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^(?: {4})?((?:secagg|fedmf|python -m benches\.\w+) .+)", re.MULTILINE)
SECAGG = (
    "blame encoding graph http oneshot paillier privacy session shamir statistics testing "
    "threshold"
)
FEDMF = "aggregate attacks bayes context data fcf masks models search training"
PACKAGES = ["secagg", *(f"secagg.{name}" for name in SECAGG.split())]
PACKAGES += ["fedmf", *(f"fedmf.{name}" for name in FEDMF.split())]
FEWER_EXAMPLES = """
few = settings(deadline=None, max_examples=10)
few(given(testing.rounds())(test_my_aggregator.hypothesis.inner_test))()
"""

pytestmark = [
    pytest.mark.large,
    pytest.mark.skipif(not _fast.COMPILED, reason="the site is the same without kernels"),
]


def pages_with(pattern: re.Pattern[str]) -> list[str]:
    """Return the pages, relative to docs/, in whose text the pattern is."""
    pages = {str(path.relative_to(DOCS)): path.read_text() for path in DOCS.rglob("*.md")}
    return sorted(page for page, text in pages.items() if pattern.search(text))


def run(*arguments: str) -> str:
    done = subprocess.run(  # noqa: S603
        [sys.executable, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,  # only so that a deadlock fails instead of lasting
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("page", sorted(set(pages_with(CELL)) - ELSEWHERE))
def test_page_python_prints_its_text(page: str) -> None:
    cells = CELL.findall((DOCS / page).read_text())
    program = "\nprint(end='\\0')\n".join(code for code, _ in cells)
    if "def test_my_aggregator" in program:
        program += "\nprint(end='\\0')\n" + FEWER_EXAMPLES
    printed = run("-c", program).split("\0")
    for (code, expected), got in zip(cells, printed[: len(cells)], strict=True):
        assert not expected or got == expected, code


class Parsed(Exception):
    """Raised once a command has parsed its arguments, so that nothing runs."""


def parse(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parse a command by its own parser; fail unless it has such options and arguments."""
    program, *words = shlex.split(command, comments=True)
    if program == "python":
        program, words = words[1], words[2:]
    else:
        program += ".cli"
    packages = (
        "benches.collection",
        "benches.flower_rounds",
        "benches.http_load",
        "benches.papers",
    )
    module = import_module(f"{program}.__main__" if program in packages else program)
    if hasattr(module, "app"):
        found: Any = import_module("typer.main").get_command(module.app)
        while hasattr(found, "commands"):
            found, words = found.commands[words[0]], words[1:]
        found.make_context(command, words)
        return
    parse_args = argparse.ArgumentParser.parse_args

    def only_parse(parser: argparse.ArgumentParser, *arguments: Any) -> None:
        parse_args(parser, *arguments)
        raise Parsed

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", only_parse)
    with pytest.raises(Parsed):
        module.main(words)


@pytest.mark.parametrize("page", pages_with(COMMAND))
def test_page_commands_parse(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for command in COMMAND.findall((DOCS / page).read_text()):
        parse(command, monkeypatch)


class Page(HTMLParser):
    """The ids of a page, its links, and what a browser loads with it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: set[str] = set()
        self.loads: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.ids.add(values.get("id", ""))
        if tag == "a" and "href" in values:
            self.links.add(values["href"])
        elif tag in ("link", "script", "img"):
            self.loads.add(values.get("src") or values.get("href") or "")


def test_site_builds_without_warnings_and_complete(tmp_path: Path) -> None:
    """One test, for the site takes half a minute and each worker would build its own."""
    pytest.importorskip("sphinx")
    options = ["-q", "-j", "auto", "-E", "-n", "-W", "--keep-going"]
    run("-m", "sphinx", *options, "-d", str(tmp_path / "trees"), "docs", str(tmp_path / "site"))
    tmp_path /= "site"
    assert sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()) < 8e6
    pages = {path: Page(path.read_text()) for path in tmp_path.rglob("*.html")}
    assert len(pages) > 40
    assert not [(path.name, link) for path in pages for link in broken_links(path, pages)]
    assert not [url for page in pages.values() for url in page.loads if "//" in url]
    terms = (tmp_path / "searchindex.js").read_text().partition('"terms":')[2]
    for word in ("dropout", "threshold", "clip", "journal"):
        assert re.search(rf'[{{,]"?{word}"?:', terms), word
    reference = [page for path, page in pages.items() if path.parent.name == "reference"]
    assert not undescribed(set().union(*(page.ids for page in reference)))


def broken_links(path: Path, pages: dict[Path, Page]) -> list[str]:
    """Return a page's links to no file, to no anchor, or over anything but https."""

    def leads_somewhere(link: str) -> bool:
        if ":" in link.partition("/")[0]:
            return link.startswith("https://")
        name, anchor = urldefrag(unquote(link))
        target = (path.parent / name).resolve() if name else path
        if not target.is_file():
            return False
        return not anchor or target not in pages or anchor in pages[target].ids

    return [link for link in pages[path].links - {"#"} if not leads_somewhere(link)]


def undescribed(ids: set[str]) -> list[str]:
    """Return the public names without a description, be it under another name."""
    known = {id(find(name)) for name in ids if name.startswith(("secagg.", "fedmf."))}
    names = [f"{package}.{name}" for package in PACKAGES for name in public(package)]
    return [name for name in names if name not in ids and id(find(name)) not in known]


def public(package: str) -> list[str]:
    """Return a package's public names, without modules and the version."""
    module = import_module(package)
    names = [name for name in module.__all__ if not inspect.ismodule(getattr(module, name))]
    return [name for name in names if name != "__version__"]


def find(path: str) -> object:
    module, _, name = path.rpartition(".")
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError):
        return None
