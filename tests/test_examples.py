"""What the README, the docs and examples/ show is what runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def blocks(path: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / path).read_text(), re.DOTALL)


def run(*arguments: str, cwd: Path = ROOT) -> str:
    done = subprocess.run(  # noqa: S603
        [sys.executable, *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,  # only so that a deadlock fails instead of lasting
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_private_sum() -> None:
    assert run("examples/private_sum.py").startswith("9 survivors; sum [")


def test_over_sockets_with_a_client_killed_before_its_input() -> None:
    printed = run("examples/over_sockets.py").splitlines()[-1]
    survivors = (0, 1, 2, 4, 5, 6, 7)
    assert printed == f"survivors {survivors}, first element of their sum 25.000"


def test_a_server_that_is_killed_and_resumed() -> None:
    assert run("examples/resumable_server.py").splitlines() == [
        "the server died; client 1 was not told and sends again",
        "survivors (0, 1, 2, 3, 4), first element of their sum 10.000",
    ]


def test_a_lying_server_gets_no_share() -> None:
    printed = run("examples/lying_server.py").splitlines()
    assert len(printed) == 6
    assert all("did not sign these survivors" in line for line in printed)


def test_find_a_bug_finds_the_smallest_case_of_one_and_passes_the_mended_version() -> None:
    printed = run("examples/find_a_bug.py")
    found, mended = printed.split("MendedChunks: ")
    assert "bytes were delivered that were not sent" in found
    assert "schedule=Schedule(faults={0: 'twice'})" in found
    assert mended == "no bug found\n"


@pytest.mark.parametrize("block", blocks("docs/testing.md"))
def test_the_tests_in_the_docs_run_as_they_stand(block: str, tmp_path: Path) -> None:
    (tmp_path / "test_block.py").write_text(block)
    out = run("-m", "pytest", "-q", "--rootdir=.", "test_block.py", cwd=tmp_path)
    assert "1 passed" in out


@pytest.mark.parametrize("block", blocks("README.md"))
def test_the_readmes_python_runs_as_it_stands(block: str) -> None:
    assert len([line for line in block.splitlines() if line.strip()]) <= 12
    assert run("-c", block)
