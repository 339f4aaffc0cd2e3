"""The page of results: every file of docs/results is on it, and no table is ragged."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
FOLDER = DOCS / "results"
sys.path.append(str(DOCS / "_ext"))
results = pytest.importorskip("results", reason="the site's own environment has Sphinx")


@pytest.fixture(scope="module")
def keys() -> list[str]:
    page = (DOCS / "results.md").read_text(encoding="utf-8")
    (listed,) = re.findall(r"^```\{results\}\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    return listed.split()


def test_page_has_each_table_once(keys: list[str]) -> None:
    text = results.markdown(FOLDER, keys)
    assert text.startswith("## ")
    assert text.count("\n## ") == len(keys)
    for wrong in (keys[1:], [*keys, keys[0]], [*keys, "nothing"]):
        with pytest.raises(ValueError, match="name each table"):
            results.markdown(FOLDER, wrong)


def test_tables_and_their_pictures_are_whole(keys: list[str]) -> None:
    drawn = set[str]()
    for key in keys:
        table = json.loads((FOLDER / f"{key}.json").read_text(encoding="utf-8"))
        assert {len(row) for row in table["rows"]} == {len(table["columns"])}, key
        assert f"--table {key} " in table["command"]
        drawn |= {picture["file"] for picture in table["pictures"]}
    assert drawn == {path.name for path in FOLDER.glob("*.svg")}
