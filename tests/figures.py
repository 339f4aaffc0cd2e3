"""Find figures that were not measured with the version of the sources; print each place.

A section with measured figures, or a command that measures, has a comment in a line of its
own. It is `<!-- measured VERSION: COMMAND -->`, with major and minor version, or `<!--
measured: FILES -->`, with files of docs separated by commas, which have each of its figures
with a unit of time or with three decimals. A section with limits, sizes by a formula or
figures of others has `<!-- not measured -->`. The mark of a page's head is that of its
sections without marks. Data files name the version that was measured.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = ("README.md", "SECURITY.md", "CONTRIBUTING.md", "docs/*.md", "docs/*/*.md")
DATA = ("docs/results/*.json", "docs/speed/*.json", "docs/ss-or-he.json")
SPECIFICATIONS = {
    *("protocol", "oneshot", "paillier", "http-binding", "sessions", "studies"),
    *("noise", "graphs", "flower-messages", "flare-messages"),
}
"""Pages whose sizes follow from formulas."""

MARK = re.compile(r"<!-- (?:not measured|measured ([\d.]+): [^>]+|measured: ([^>]+)) -->")
CODE = re.compile(r"(?ms)^ *```.*?^ *```|^    .*?$|`[^`\n]*`|\$[^$]*\$|\]\([^)]*\)")
TIME = re.compile(r"(?<![\w.,])[\d.,]*\d (?:µs|ms)\b|(?<![\w.,])[\d.,]*\d×(?! \d)")
DECIMALS = re.compile(r"(?<![\w.,])0?\.\d{3,}\b")
BENCH = re.compile(r"(?m)^ *(?:\.venv/bin/)?python -m benches\.\w+")
VERSION = re.compile(r'secagg"?:? "?(\d+\.\d+)')


def sections(text: str) -> Iterator[tuple[int, int]]:
    """Yield begin and end of each section of a page, the head of the page first."""
    starts = [0, *(found.start() for found in re.finditer(r"(?m)^#+ ", text))]
    yield from zip(starts, [*starts[1:], len(text)], strict=True)


def page(text: str, version: str, docs: Path) -> Iterator[tuple[int, str]]:
    """Yield line and fault of each section of a page with stale or unmarked figures."""
    blank = re.compile(r"[^\n]")
    bare = CODE.sub(lambda found: blank.sub(" ", found[0]), text)
    whole: list[re.Match[str]] | None = None
    for begin, end in sections(bare):
        section, line = bare[begin:end], text.count("\n", 0, begin) + 1
        marks = list(MARK.finditer(section))
        if section.strip() and whole is None:
            whole = marks
        marks = marks or whole or []
        figures = [*TIME.findall(section), *DECIMALS.findall(section)]
        causes = [*figures, *BENCH.findall(text[begin:end])]
        if causes and not marks:
            yield line, f"{causes[0].strip()} has no mark in its section"
        for mark in marks:
            if mark[1] and mark[1] != version:
                yield line, f"measured with {mark[1]}"
        files = [one.strip() for mark in marks if mark[2] for one in mark[2].split(",")]
        if files:
            known = "\n".join((docs / name).read_text(encoding="utf-8") for name in files)
            for figure in dict.fromkeys(figures):
                if not has(known, figure):
                    yield line, f"{figure} is not in {', '.join(files)}"


def has(known: str, figure: str) -> bool:
    """Return True if a text has a figure, or a number with more decimals that rounds to it."""
    if re.search(rf"(?<![\w.,]){re.escape(figure)}(?!\d)", known):
        return True
    if not DECIMALS.fullmatch(figure):
        return False
    half = 0.500001 * 10.0 ** -len(figure.partition(".")[2])
    numbers = map(float, re.findall(r"(?<![\w.,])\d*\.\d{3,}", known))
    return any(abs(number - float(figure)) <= half for number in numbers)


def data(path: Path, version: str) -> Iterator[str]:
    """Yield the fault of a data file that was measured with another version."""
    text = path.read_text(encoding="utf-8")
    found = set(VERSION.findall(text))
    if found - {version}:
        yield f"measured with {', '.join(sorted(found))}"
    elif not found and json.loads(text).get("origin") != "":  # a table without runs
        yield "does not say with which version it was measured"


def main() -> int:
    """Print each stale or unmarked figure; return 1 if there are any."""
    (version,) = re.findall(
        r'(?m)^__version__ = "(\d+\.\d+)', (ROOT / "secagg" / "__init__.py").read_text("utf-8")
    )
    count = 0
    for path in sorted(one for pattern in PAGES for one in ROOT.glob(pattern)):
        if path.stem not in SPECIFICATIONS:
            for line, fault in page(path.read_text(encoding="utf-8"), version, DOCS):
                print(f"{path.relative_to(ROOT)}:{line}: {fault}")
                count += 1
    for path in sorted(one for pattern in DATA for one in ROOT.glob(pattern)):
        for fault in data(path, version):
            print(f"{path.relative_to(ROOT)}: {fault}")
            count += 1
    print(f"figures: {count} places" if count else f"figures: all are of version {version}")
    return bool(count)


if __name__ == "__main__":
    sys.exit(main())
