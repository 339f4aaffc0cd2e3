"""One version everywhere; it is a development version while changes are unreleased."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.version import Version

import fedmf
import secagg

ROOT = Path(__file__).parents[1]
HEAD = re.compile(r"^## (\S+)", re.MULTILINE)


def fits(version: str, changelog: str) -> bool:
    """Return True if a version is that of the first section, or under development."""
    newest, *released = HEAD.findall(changelog)
    if newest != "Unreleased":
        return version == newest
    found = Version(version)
    return found.is_devrelease and found > Version(released[0])


def test_version_fits_the_changelog() -> None:
    assert fits(secagg.__version__, (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))


def test_unreleased_part_is_short() -> None:
    """The rest stands in docs/changes.md."""
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    unreleased = re.search(r"^## Unreleased\n(.*?)^## ", changelog, re.MULTILINE | re.DOTALL)
    assert unreleased is None or len(unreleased[1].split()) <= 900


def test_version_is_the_same_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == secagg.__version__ == fedmf.__version__


@pytest.mark.parametrize(
    ("version", "sections", "right"),
    [
        ("0.5.0.dev0", ["Unreleased", "0.4.0"], True),
        ("0.5.0.dev3", ["Unreleased", "0.4.0"], True),
        ("0.4.1.dev0", ["Unreleased", "0.4.0"], True),
        ("0.4.0", ["Unreleased", "0.4.0"], False),
        ("0.5.0", ["Unreleased", "0.4.0"], False),
        ("0.4.0.dev0", ["Unreleased", "0.4.0"], False),
        ("0.3.0.dev0", ["Unreleased", "0.4.0"], False),
        ("0.5.0rc1", ["Unreleased", "0.4.0"], False),
        ("0.5.0", ["0.5.0", "0.4.0"], True),
        ("0.5.0.dev0", ["0.5.0", "0.4.0"], False),
        ("0.4.0", ["0.5.0", "0.4.0"], False),
    ],
)
def test_rule_of_versions(version: str, sections: list[str], right: bool) -> None:
    changelog = "# Changelog\n" + "".join(f"\n## {one}\n\ntext\n" for one in sections)
    assert fits(version, changelog) is right
