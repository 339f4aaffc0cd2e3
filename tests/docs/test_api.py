"""Public names of the last release take the same arguments, but for the documented breaks.

Breaks are found by griffe: a name or member that is gone, a parameter that is gone, renamed,
moved or newly required, a changed default. docs/from-0.4.md names each in its table.
"""

from __future__ import annotations

import importlib
import inspect
import io
import logging
import re
import subprocess
import tarfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import griffe
import pytest

from benches.speed.releases import RELEASE_04

ROOT = Path(__file__).parents[2]
MODULES = {
    "secagg": ("graph", "paillier", "shamir", "threshold", "testing"),
    "fedmf": ("attacks", "context", "dp", "fcf", "masks"),
}
"""Packages, with the modules that the documents of 0.4 name as public."""
MADE = {"Journal", "Ranking"}
"""Classes whose objects users get from a function."""
ROW = re.compile(r"^\| `((?:secagg|fedmf)[\w.]*)` \|", re.MULTILINE)


def packages(folder: Path) -> dict[str, griffe.Module]:
    """The packages of a folder, read and not imported."""
    loader = griffe.GriffeLoader(search_paths=[folder])
    found = {name: loader.load(name, try_relative_path=False) for name in MODULES}
    loader.resolve_aliases(implicit=True)
    return found


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> dict[str, griffe.Module]:
    command = ["git", "archive", RELEASE_04, *MODULES]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)  # noqa: S603
    if done.returncode:
        pytest.skip("a copy without the history of the last release")
    folder = tmp_path_factory.mktemp("release")
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as files:
        files.extractall(folder, filter="data")
    return packages(folder)


def public(release: dict[str, griffe.Module]) -> Iterator[tuple[str, griffe.Object]]:
    """Paths and definitions of the release's public names."""
    for package, modules in MODULES.items():
        for module in ("", *modules):
            path = f"{package}.{module}".rstrip(".")
            for name in (
                release[package][module].exports if module else release[package].exports
            ):
                found = release[package][f"{module}.{name}".lstrip(".")]
                found = found.final_target if found.is_alias else found
                if not (found.is_module or str(name).startswith("__")):
                    yield f"{path}.{name}", found


def breaks(path: str, old: griffe.Object, now: dict[str, griffe.Module]) -> Iterator[str]:
    """Paths of the name, or of its members, that break code written for the release."""
    module, _, name = path.rpartition(".")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError):
        yield path
        return
    if not callable(found):
        return  # a constant
    for one in griffe.find_breaking_changes(old, definition(path, found, now)):
        _, _, member = one.obj.path.removeprefix(one.obj.module.path).partition(old.name)
        member = member.removeprefix(".")
        changed = one.old_value or one.new_value
        if isinstance(changed, griffe.Parameter):
            former = changed.name in getattr(found, "_former", ())  # warns, and still works
            parts = () if former else (member.removeprefix("__init__"), changed.name)
            kept = former or (member == "__init__" and old.name in MADE)
            member = ".".join(filter(None, parts))
        else:
            kept = _kept(found, member)
        if not kept and not member.startswith("_"):
            yield f"{path}.{member}".rstrip(".")


def definition(path: str, found: object, now: dict[str, griffe.Module]) -> griffe.Object:
    """The definition of a name: where a package imports it, or where a lazy name comes from."""
    package, _, place = path.partition(".")
    try:
        stated = now[package][place]
    except KeyError:
        package, _, place = f"{found.__module__}.{found.__qualname__}".partition(".")
        stated = now[package][place]
    return stated.final_target if stated.is_alias else stated


def _kept(kind: object, member: str) -> bool:
    """Return True for an attribute that is set elsewhere today, or a former name that warns."""
    if not inspect.isclass(kind):
        return False
    annotated = any(member in inspect.get_annotations(base) for base in kind.__mro__)
    given = member in inspect.signature(kind).parameters
    return annotated or given or hasattr(kind, member) or member in getattr(kind, "_former", ())


def test_breaks_since_the_last_release_are_those_of_the_page(
    before: dict[str, griffe.Module],
) -> None:
    logging.getLogger("griffe").setLevel(logging.CRITICAL)
    page = (ROOT / "docs" / "from-0.4.md").read_text(encoding="utf-8")
    now = packages(ROOT)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # former names warn
        found = {one for path, old in public(before) for one in breaks(path, old, now)}
    listed = ROW.findall(page)
    assert [
        path for path in sorted(found) if not any(_within(path, row) for row in listed)
    ] == []
    assert [row for row in listed if not any(_within(path, row) for path in found)] == []


def _within(path: str, row: str) -> bool:
    """Return True for the name of a row and for its members."""
    return path == row or path.startswith(f"{row}.")
