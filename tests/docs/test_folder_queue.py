"""The example of a transport through a folder adds up vectors of processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from effort import pure_repeats

ROOT = Path(__file__).parents[2]


@pytest.mark.large
@pure_repeats
def test_folder_queue_adds_the_vectors_of_its_members(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error", "examples/folder_queue.py", str(tmp_path)]
    parties = [
        subprocess.Popen(  # noqa: S603
            [*command, *words.split()], cwd=ROOT, stdout=subprocess.PIPE, text=True
        )
        for words in ("server 4", *(f"member {u}" for u in range(4)))
    ]
    # the timeout only so that a deadlock fails instead of lasting
    server, *_ = [party.communicate(timeout=120)[0] for party in parties]
    assert [party.returncode for party in parties] == [0] * 5
    assert server.splitlines() == [
        "survivors 0 1 2 3 sum 4.5 5.5 6.5",  # a quarter of 3u, 3u + 1 and 3u + 2
        "numpy 4.5 5.5 6.5",
    ]
