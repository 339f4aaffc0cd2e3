"""The check list of SECURITY.md and the tests named after its lines are the same list."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]
REQUIRED = set(range(1, 39))


def test_every_line_has_its_tests_where_the_table_says() -> None:
    table = {
        int(line): set(re.findall(r"`(test_\w+)`", files))
        for line, files in re.findall(
            r"^\| (\d+) \|.*\|([^|]*)\|$", (ROOT / "SECURITY.md").read_text(), re.MULTILINE
        )
    }
    found = defaultdict(set)
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for number in re.findall(r"^def test_check(\d\d)_", path.read_text(), re.MULTILINE):
            found[int(number)].add(path.stem)
    assert table == dict(found)
    assert set(table) == REQUIRED
