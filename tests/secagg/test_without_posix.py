"""Rounds and files on Windows, as far as Linux can tell: what Windows lacks is taken away."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

WINDOWS = """
import os, sys
for module in ("fcntl", "grp", "pwd", "resource", "termios"):
    sys.modules[module] = None
for name in dir(os):
    if name in ("fork", "register_at_fork", "sched_getaffinity") or name in (
        "O_CLOEXEC", "O_DIRECTORY", "O_NOFOLLOW", "O_NONBLOCK"
    ):
        delattr(os, name)
import numpy as np
import secagg
"""
ROUND = """
vectors = {client: np.full(4, client + 0.5) for client in range(10)}
params = secagg.RoundParams(
    n_clients=10, threshold=7, length=4, encoding=secagg.FixedPoint(clip=16.0)
)
print(secagg.simulate_round(vectors, params, dropouts={3: "masked_input"}).sum)
"""
FILES = """
from secagg.errors import JournalError, VaultError
from secagg.oneshot import HelperJournal
from secagg.vault import Vault
for work in (lambda: HelperJournal.create("journal"), Vault("vault").renew):
    try:
        work()
    except (JournalError, VaultError) as error:
        print(type(error).__name__)
"""
COMMANDS = """
import fedmf, secagg.cli
for name in [*fedmf.__all__, *secagg.__all__]:
    getattr(fedmf if name in fedmf.__all__ else secagg, name)
"""


def run(code: str, folder: Path) -> str:
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(root)!r})\n" + code]
    done = subprocess.run(  # noqa: S603
        command, cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_round_needs_nothing_of_posix(tmp_path: Path) -> None:
    assert run(WINDOWS + ROUND, tmp_path) == "[46.5 46.5 46.5 46.5]\n"


def test_journals_and_vaults_raise_their_errors(tmp_path: Path) -> None:
    assert run(WINDOWS + FILES, tmp_path).split() == ["JournalError", "VaultError"]


def test_public_names_and_commands_are_there(tmp_path: Path) -> None:
    run(WINDOWS + COMMANDS, tmp_path)
