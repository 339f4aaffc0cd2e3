"""Earlier commits of this repository, each in a folder of its own with its own kernels."""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
from pathlib import Path

from secagg.errors import SecAggError

ROOT = Path(__file__).parents[2]
BUILDS = ROOT / "build" / "speed"

PRESENT = "this"
RELEASE_04 = "eecb429"
"""The last commit before the layout of today, with the protocol of 0.4 on one thread."""
BEFORE = "0b66c1b"
"""The last commit before kernels were tuned again; the first commit with one-shot sums is later
than `RELEASE_04`."""

PACKAGES = ("secagg", "fedmf")
PARTS = (*PACKAGES, "setup.py", "pyproject.toml", "README.md", "LICENSE")


def folder(code: str) -> Path:
    """Return the folder of a commit with its kernels, built unless it was; or the repository's.

    SecAggError is raised if git does not have the commit or its kernels cannot be built.
    """
    if code == PRESENT:
        return ROOT
    place = BUILDS / code
    if not all(any(place.glob(f"{one}/_fast/*.so")) for one in PACKAGES):
        place.mkdir(parents=True, exist_ok=True)
        archive = _run(["git", "archive", code, *PARTS], ROOT)
        with tarfile.open(fileobj=io.BytesIO(archive)) as files:
            files.extractall(place, filter="data")
        _run([sys.executable, "setup.py", "-q", "build_ext", "--inplace"], place)
    link = place / "benches"
    if not link.exists():
        link.symlink_to(ROOT / "benches")  # the cases of today
    return place


def _run(command: list[str], place: Path) -> bytes:
    try:
        done = subprocess.run(command, cwd=place, capture_output=True, check=True)  # noqa: S603
    except (OSError, subprocess.CalledProcessError) as error:
        said = getattr(error, "stderr", b"").decode(errors="replace").strip().splitlines()
        why = said[-1] if said else str(error)
        raise SecAggError(
            f"{' '.join(command[:3])} failed in {place.name}: {why}; run it in a clone "
            "with the whole history, with a C compiler and in the environment of `make demo`"
        ) from None
    return done.stdout
