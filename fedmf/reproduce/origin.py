"""What a result comes from: the sources, the data, the machine."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import fedmf
from fedmf.data import Ratings
from secagg.compare.machine import machine

__all__ = ["DISTRIBUTION", "here", "state"]

DISTRIBUTION = "secagg"  # that fedmf comes in

APART = ("commands", "reproduce/live.py", "cli.py")  # of the sources: what only shows


def here() -> dict[str, str]:
    """Name the machine, and the versions of all that computes."""
    versions = {DISTRIBUTION: version(DISTRIBUTION)}
    for name in ("scikit-learn", "scipy", "dp-accounting"):
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return machine() | versions


def state(ratings: Ratings) -> str:
    """Return twelve hexadecimal digits that change with fedmf's sources and with the data."""
    seen = hashlib.sha256(_sources())
    for array in (ratings.indptr, ratings.items, ratings.values, ratings.times):
        seen.update(array.tobytes())
    return seen.hexdigest()[:12]


@cache
def _sources() -> bytes:
    root = Path(fedmf.__file__).parent
    seen = hashlib.sha256()
    for path in sorted(root.rglob("*.py*")):  # .py and .pyx
        name = path.relative_to(root).as_posix()
        if path.suffix in (".py", ".pyx") and not name.startswith(APART):
            seen.update(name.encode() + b"\0" + path.read_bytes())
    return seen.digest()
