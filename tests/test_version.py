"""One version everywhere; it is a development version while changes are unreleased."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from packaging.version import Version

import fedmf
import secagg

ROOT = Path(__file__).parents[1]
HEAD = re.compile(r"^## (\S+)", re.MULTILINE)


def test_version_fits_the_changelog() -> None:
    newest, *released = HEAD.findall((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
    found = Version(secagg.__version__)
    developed = found.is_devrelease and found > Version(released[0])
    assert developed if newest == "Unreleased" else secagg.__version__ == newest


def test_version_is_the_same_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == secagg.__version__ == fedmf.__version__
