"""The source archive: every source of the kernels is in it, and its folder need not exist."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
KINDS = {".c", ".h", ".pxd", ".pxi", ".pyi", ".pyx"}


@pytest.mark.large
def test_source_archive_has_all_sources_of_the_kernels(tmp_path: Path) -> None:
    """Run `setup.py sdist` on a copy, for a folder that does not exist."""
    copy = tmp_path / "copy"
    for package in ("secagg", "fedmf"):
        unwanted = shutil.ignore_patterns("__pycache__", "*.so", "_kernels.c")
        shutil.copytree(ROOT / package, copy / package, ignore=unwanted)
    for name in ("setup.py", "pyproject.toml", "MANIFEST.in", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    sources = {
        path.relative_to(copy).as_posix()
        for folder in copy.glob("*/_fast")
        for path in folder.rglob("*")
        if path.suffix in KINDS
    }
    command = [sys.executable, "setup.py", "-q", "sdist", "-d", str(tmp_path / "new" / "dist")]
    subprocess.run(command, cwd=copy, check=True, capture_output=True)  # noqa: S603
    (archive,) = (tmp_path / "new" / "dist").iterdir()
    with tarfile.open(archive) as opened:
        found = {name.partition("/")[2] for name in opened.getnames()}
    assert len(sources) > 20
    assert sources <= found
