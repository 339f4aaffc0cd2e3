"""tests/vectors/README.md describes every field of every file of vectors, and nothing else."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest

from vectors_reader import FOLDER

TEXT = (FOLDER / "README.md").read_text(encoding="utf-8")
FILES = sorted(path.name for path in FOLDER.glob("*.json"))
OPAQUE = re.compile(r"(?:parameters|encoding|provenance|fields|limits\[\]\.limits)$")
"""Objects whose fields the README describes once, or that are those of the document."""


def fields(value: object, at: str) -> Iterator[str]:
    """Yield the path of each value in a file; `[]` stands for the items of a list."""
    if isinstance(value, list):
        for item in value:
            yield from fields(item, f"{at}[]")
    elif isinstance(value, dict) and not OPAQUE.search(at):
        for name, inside in value.items():
            path = f"{at}.{name}" if at else name
            yield path
            yield from fields(inside, path)
            if name == "fields" and isinstance(inside.get("values"), dict):
                yield from fields(inside["values"], f"{path}.values")


def parents(path: str) -> set[str]:
    """The lists and objects on the way to a value, which need no row of their own."""
    parts = path.split(".")
    return {".".join(parts[:i]).removesuffix("[]") for i in range(1, len(parts))}


def documented(name: str) -> set[str]:
    section = TEXT.split(f"\n## `{name}`")[1].split("\n## ")[0]
    cells = [line.split(" | ")[0] for line in section.splitlines() if line.startswith("| `")]
    found = [path for cell in cells for path in re.findall(r"`([^`]+)`", cell)]
    assert len(set(found)) == len(found), "a field is described twice"
    return set(found)


@pytest.mark.parametrize("name", FILES)
def test_fields_of_a_file_are_described(name: str) -> None:
    there = set(fields(json.loads((FOLDER / name).read_text(encoding="ascii")), ""))
    there.discard("provenance")
    implied = set().union(*map(parents, there))
    assert there - implied <= documented(name) <= there


def test_every_file_is_described() -> None:
    assert sorted(re.findall(r"^## `(\w+\.json)`", TEXT, re.MULTILINE)) == FILES


def test_conformance_names_the_files_of_each_document() -> None:
    docs = FOLDER.parents[1] / "docs"
    rules = (docs / "protocol.md").read_text().split("## 11. Conformance")[1]
    rows = re.findall(r"^\| (?:both|client|server)[^|]*\| ([^|]+) \|", rules, re.MULTILINE)
    named = {
        f"{name}.json"
        for row in rows
        for name in re.findall(r"\w+", re.sub(r"\(.*?\)", "", row))
    }
    for page in ("oneshot", "paillier"):
        text = (docs / f"{page}.md").read_text()
        named |= {name for name in re.findall(r"\w+\.json", text) if name in FILES}
    assert named == {*FILES} - {"graph.json"}  # the order on a ring is the server's
