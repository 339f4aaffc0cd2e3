"""Pages of tables: each file of their folders is on them, and no table is ragged."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
SHOWN = re.compile(r"^```\{results\} (\S+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
sys.path.append(str(DOCS / "_ext"))
results = pytest.importorskip("results", reason="the site's own environment has Sphinx")

FOLDERS = {
    DOCS / folder: content.split()
    for page in DOCS.glob("*.md")
    for folder, content in SHOWN.findall(page.read_text(encoding="utf-8"))
}
COMMANDS = {"results": "benches.papers --table {} ", "speed": "benches.speed "}


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda one: one.name)
def test_page_has_each_table_once(folder: Path) -> None:
    keys = FOLDERS[folder]
    text = results.markdown(folder, keys)
    assert text.startswith("## ")
    assert text.count("\n## ") == len(keys)
    for wrong in (keys[1:], [*keys, keys[0]], [*keys, "nothing"]):
        with pytest.raises(ValueError, match="name each table"):
            results.markdown(folder, wrong)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda one: one.name)
def test_tables_and_their_pictures_are_whole(folder: Path) -> None:
    drawn = set[str]()
    for key in FOLDERS[folder]:
        table = json.loads((folder / f"{key}.json").read_text(encoding="utf-8"))
        assert {len(row) for row in table["rows"]} == {len(table["columns"])}, key
        assert COMMANDS[folder.name].format(key) in table["command"]
        drawn |= {picture["file"] for picture in table["pictures"]}
    assert drawn == {path.name for path in folder.glob("*.svg")}


def test_each_folder_of_tables_has_a_page() -> None:
    assert {path.name for path in FOLDERS} == {
        path.parent.name for path in DOCS.glob("*/*.json")
    }
