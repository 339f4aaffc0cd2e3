"""Programs of a user pass mypy --strict; pyright is run by hand on the same files."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from secagg import _fast

HERE = Path(__file__).parent


@pytest.mark.large
@pytest.mark.skipif(not _fast.COMPILED, reason="types are the same without kernels")
def test_users_programs_pass_mypy_strict() -> None:
    programs = sorted(set(HERE.glob("*.py")) - {Path(__file__)})
    assert programs
    # `make lint` has left the packages' types in mypy's cache
    ran = subprocess.run(  # noqa: S603
        [sys.executable, "-m", "mypy", "--strict", *programs],
        capture_output=True,
        text=True,
        cwd=HERE.parents[1],
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
