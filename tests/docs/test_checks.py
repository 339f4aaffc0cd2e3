"""The check list of SECURITY.md and the tests named after its lines are the same list."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]
REQUIRED = set(range(1, 61))


def test_security_checks_have_tests_in_the_named_files() -> None:
    table = {
        int(line): set(re.findall(r"`(test_\w+)`", files))
        for line, files in re.findall(
            r"^\| (\d+) \|.*\|([^|]*)\|$", (ROOT / "SECURITY.md").read_text(), re.MULTILINE
        )
    }
    found = defaultdict(set)
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for number in re.findall(r"^(?:async )?def test_check(\d\d)_", path.read_text(), re.M):
            found[int(number)].add(path.stem)
    assert table == dict(found)
    assert set(table) == REQUIRED
