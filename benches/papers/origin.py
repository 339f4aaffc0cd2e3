"""What a result comes from: the sources, the data, the machine."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import benches
import fedmf
import secagg
from fedmf.data import Ratings
from secagg.bench.timing import machine

__all__ = ["DISTRIBUTION", "here", "paths", "sources", "state"]

DISTRIBUTION = "secagg"  # that fedmf comes in

ROOTS = {one.__name__: Path(one.__path__[0]) for one in (benches, fedmf, secagg)}
SUFFIXES = (".py", ".pyx", ".pxd", ".pxi", ".c", ".h")
SHOWN = ("cells", "document", "live", "markdown", "picture", "pool", "write", "__main__")
APART = (  # of the sources: what only runs and shows, fetches, or measures other things
    *("fedmf/cli/", "fedmf/data/fetch/", "secagg/cli/", "secagg/bench/", "secagg/testing/"),
    *(f"benches/papers/{name}.py" for name in SHOWN),
)


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
    """Return twelve hexadecimal digits that change with the sources and with the data.

    Those are all sources of fedmf and secagg that compute, in Python, Cython and C, the
    ratings with their ids, and the items' genres and years; not profiles and tags.
    """
    seen = hashlib.sha256(_sources())
    known = ratings.catalogue
    seen.update(repr(known.genre_names).encode())
    for array in (
        *(ratings.indptr, ratings.items, ratings.values, ratings.times),
        *(ratings.user_ids, ratings.item_ids, known.years, known.genres),
    ):
        seen.update(array.tobytes())
    return seen.hexdigest()[:12]


@cache
def _sources() -> bytes:
    return sources()  # as they were when the process began to look


def sources() -> bytes:
    """Return a digest of what `paths` lists."""
    seen = hashlib.sha256()
    for path in paths():
        seen.update(path.as_posix().encode() + b"\0" + _content(path))
    return seen.digest()


def paths() -> tuple[Path, ...]:
    """Return the files that figures depend on, as "fedmf/errors.py"; not what Cython writes."""
    found = [
        path.relative_to(root.parent)
        for root in ROOTS.values()
        for path in root.rglob("*")
        if path.suffix in SUFFIXES
        and (root.name != "benches" or path.parent.name == "papers")
        and not (path.suffix == ".c" and path.with_suffix(".pyx").exists())
    ]
    return tuple(sorted(x for x in found if not x.as_posix().startswith(APART)))


def _content(path: Path) -> bytes:
    return (ROOTS[path.parts[0]].parent / path).read_bytes()
