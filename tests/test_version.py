"""One version everywhere; it is a development version while changes are unreleased."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import version
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


def test_version_stands_in_one_place() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    whole = tomllib.loads(text)
    assert whole["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "secagg.__version__"}
    assert fedmf.__version__ == secagg.__version__ == version("secagg")
    assert secagg.__version__ not in text + (ROOT / "CITATION.cff").read_text(encoding="utf-8")
