"""Real processes that are killed between any two system calls of the vault."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from effort import pure_repeats
from harness import make_params
from vault_crashes import Violation, every_call, trials
from vault_mutants import MUTANTS
from vault_node import start_nursery

pytestmark = pure_repeats

KINDS = {
    "semi-honest": make_params(3, session=b"a"),
    "active": make_params(3, security="active"),
}
FOUND = {
    "NoRename": "once",
    "NoComparison": "once",
    "NoUnlink": "gone",
    "NoSyncOfTheDeletion": "gone",
    "NoSyncOfTheFile": "whole",
    "NoSyncOfTheName": "kept",
    "InPlace": "whole",
    "StoredLate": "kept",
    "SameKey": "gone",
    "NoDeletion": "gone",
    "DeletedLate": "gone",
}


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    where = str(tmp_path_factory.mktemp("nursery") / "socket")
    nursery = start_nursery(where)
    yield where
    os.killpg(nursery.pid, signal.SIGKILL)  # with a process that a failed test left
    nursery.communicate()


@pytest.mark.parametrize(
    "kind", ["semi-honest", pytest.param("active", marks=pytest.mark.large)]
)
def test_check48_killed_anywhere_no_state_is_restored_twice(
    address: str, ram_path: Path, kind: str
) -> None:
    trials(address, ram_path, KINDS[kind], 30)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_check48_killed_a_thousand_times(address: str, ram_path: Path, kind: str) -> None:
    print(trials(address, ram_path, KINDS[kind], 1000))


@pytest.mark.large
def test_check48_interrupted_at_each_call(address: str, ram_path: Path) -> None:
    """Killed, without power, or overtaken by another process with the same state."""
    assert every_call(address, ram_path, KINDS["semi-honest"]) > 100


@pytest.mark.slow
@pytest.mark.parametrize("mutant", MUTANTS)
def test_check48_without_a_step_an_interruption_breaks_the_vault(
    address: str, ram_path: Path, mutant: str
) -> None:
    with pytest.raises(Violation) as caught:
        every_call(address, ram_path, KINDS["semi-honest"], mutant)
    assert str(caught.value) == FOUND[mutant]
