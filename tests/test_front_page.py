"""The README on a package index: no link is dead there, and no address is invented."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
import tomllib
from email import message_from_string
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
ADDRESS = "https://example.org/owner/secagg"
LINK = re.compile(r"\]\(([^)]+)\)")
SETUP = runpy.run_path(str(ROOT / "setup.py"))


@pytest.mark.parametrize(
    ("text", "alone", "linked"),
    [
        ("[a](docs/a.md)", "a", f"[a]({ADDRESS}/blob/HEAD/docs/a.md)"),
        ("**[a](docs/a.md)**: b", "**a**: b", f"**[a]({ADDRESS}/blob/HEAD/docs/a.md)**: b"),
        ("[a\nb](x.md)", "a\nb", f"[a\nb]({ADDRESS}/blob/HEAD/x.md)"),
        ("![a](docs/a.svg)", "", f"![a]({ADDRESS}/raw/HEAD/docs/a.svg)"),
        ("[`a`](x.md), [b](y.md)", "`a`, b", None),
        ("[a](https://example.org/x)", None, None),
        ("[a](#below)", None, None),
        ("`ClientApp(mods=[SecAggMod()])`", None, None),
    ],
)
def test_links_are_plain_text_or_absolute(
    text: str, alone: str | None, linked: str | None
) -> None:
    front_page = SETUP["front_page"]
    assert front_page(text, "") == (text if alone is None else alone)
    if linked is not None or alone is None:
        assert front_page(text, ADDRESS) == (linked or text)


@pytest.mark.parametrize("address", ["", ADDRESS])
def test_readme_has_no_dead_link_on_an_index(address: str) -> None:
    targets = LINK.findall(SETUP["front_page"](README, address))
    assert all(re.match("https:|#", target) for target in targets)
    assert bool(targets) is bool(address)


def test_metadata_has_the_address_of_the_setting_or_none(tmp_path: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    address = project["tool"]["secagg"]["address"]
    subprocess.run(  # noqa: S603
        [sys.executable, "setup.py", "-q", "egg_info", "--egg-base", str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "SECAGG_NO_EXTENSION": "1", "SECAGG_REQUIRE_EXTENSION": ""},
        capture_output=True,
        check=True,
    )
    (path,) = tmp_path.glob("*.egg-info/PKG-INFO")
    found = message_from_string(path.read_text(encoding="utf-8"))
    assert SETUP["front_page"](README, address).strip() == str(found.get_payload()).strip()
    assert found["Description-Content-Type"] == "text/markdown"
    assert found.get_all("Project-URL", []) == [
        f"{name}, {url}" for name, url in SETUP["urls"](address).items()
    ]
    assert len(SETUP["urls"](ADDRESS)) == 3
