"""The locked environment of `make`: complete, hashed, and as pyproject.toml declares."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parents[1]
LOCK = (ROOT / "requirements.lock").read_text(encoding="ascii")
PIN = r"^([\w.-]+)==(\S+?)(?: ; (.*?))? \\\n((?:    --hash=.*\n)+)"
PINS = re.findall(PIN, LOCK, re.MULTILINE)


def declared() -> list[Requirement]:
    """Requirements of the build, of the package, and of every extra."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    lists = [
        project["build-system"]["requires"],
        project["project"]["dependencies"],
        *project["project"]["optional-dependencies"].values(),
    ]
    return [Requirement(line) for lines in lists for line in lines]


@pytest.mark.parametrize("requirement", declared(), ids=str)
def test_lock_has_a_version_that_is_declared(requirement: Requirement) -> None:
    pinned = [Version(version) for name, version, *_ in PINS if name == requirement.name]
    assert pinned
    assert all(version in requirement.specifier for version in pinned)


def test_lock_of_the_site_is_a_part_of_the_lock() -> None:
    site = (ROOT / "docs" / "requirements.lock").read_text(encoding="ascii")
    found = re.findall(PIN, site, re.MULTILINE)
    pinned = {(name, version) for name, version, *_ in PINS}
    assert {(name, version) for name, version, *_ in found} <= pinned
    assert sum(hashes.count("\n") + 1 for *_, hashes in found) == site.count("\n")
    names = {name for name, *_ in found}
    assert {"sphinx", "furo", "numpydoc", "myst-parser"} <= names
    assert names.isdisjoint({"nvflare", "flwr", "z3-solver"})


def test_every_line_of_the_lock_is_a_pin_with_hashes_and_no_index() -> None:
    lines = sum(hashes.count("\n") + 1 for *_, hashes in PINS)
    assert lines == LOCK.count("\n")
    for name, _, _, hashes in PINS:
        for line in hashes.splitlines():
            assert re.fullmatch(r"    --hash=sha256:[0-9a-f]{64}(?: \\)?", line), name
    assert "://" not in LOCK
