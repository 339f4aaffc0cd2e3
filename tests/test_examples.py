"""What the README and examples/ show is what runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def run(*arguments: str) -> str:
    done = subprocess.run(  # noqa: S603
        [sys.executable, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,  # only so that a deadlock fails instead of lasting
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_private_sum() -> None:
    assert run("examples/private_sum.py").startswith("9 survivors; sum [")


def test_over_sockets_with_a_client_killed_before_its_input() -> None:
    printed = run("examples/over_sockets.py").splitlines()[-1]
    survivors = (0, 1, 2, 4, 5, 6, 7)
    assert printed == f"survivors {survivors}, first element of their sum 25.000"


def test_a_lying_server_gets_no_share() -> None:
    printed = run("examples/lying_server.py").splitlines()
    assert len(printed) == 6
    assert all("did not sign these survivors" in line for line in printed)


@pytest.mark.parametrize(
    "block", re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
)
def test_the_readmes_python_runs_as_it_stands(block: str) -> None:
    assert len([line for line in block.splitlines() if line.strip()]) <= 12
    assert run("-c", block)
