"""A source distribution is enough to run the tests: it has what they read."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from secagg import _fast

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(not _fast.COMPILED, reason="nothing of the package runs")
def test_the_list_of_files_has_all_that_the_tests_and_examples_read(tmp_path: Path) -> None:
    """The list by which setuptools packs a source distribution, without packing one."""
    command = [sys.executable, "setup.py", "-q", "egg_info", "--egg-base", tmp_path]
    subprocess.run(command, cwd=ROOT, capture_output=True, check=True)  # noqa: S603
    listed = (tmp_path / "secagg.egg-info" / "SOURCES.txt").read_text().splitlines()
    wanted = {"CONTRIBUTING.md", "LICENSE", "Makefile", "README.md", "SECURITY.md"}
    for folder in ("benches", "docs", "examples", "tests"):
        for path in (ROOT / folder).rglob("*"):
            name = path.relative_to(ROOT).as_posix()
            if path.is_file() and "__pycache__" not in name and "/." not in name:
                wanted.add(name)
    assert wanted <= set(listed), sorted(wanted - set(listed))[:5]
