"""A client is in each sum once: numbers that are spent outlive the process."""

from __future__ import annotations

import fcntl
import os
import threading
from pathlib import Path

import pytest

from secagg import VaultError
from secagg.vault import spent
from secagg.vault.spent import Spent

OWNERS = [
    "1",
    "1-1",
    "site-1",
    "a" * 64,
    "a" * 65,
    "../job",
    "job 1",
    "",
    "é",
    "a/b",
    "x\0",
    ".",
]


@pytest.mark.parametrize("owner", OWNERS)
def test_number_is_spent_once_also_after_a_restart(tmp_path: Path, owner: str) -> None:
    folder = tmp_path / "state"
    assert Spent(folder).spend(owner, 3) is None
    for number in (0, 2, 3):
        assert Spent(folder).spend(owner, number) == 3
    assert Spent(folder).spend(owner, 4) is None
    assert [path.parent for path in tmp_path.rglob("*.last")] == [folder]


def test_owners_have_numbers_of_their_own(tmp_path: Path) -> None:
    assert [Spent(tmp_path).spend(owner, 0) for owner in OWNERS] == [None] * len(OWNERS)
    assert [Spent(tmp_path).spend(owner, 0) for owner in OWNERS] == [0] * len(OWNERS)


def test_file_is_private_and_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    monkeypatch.setattr(
        "os.fsync", lambda descriptor: synced.append(os.fstat(descriptor).st_ino)
    )
    Spent(tmp_path / "state").spend("site", 3)
    (path,) = (tmp_path / "state").iterdir()
    assert path.stat().st_mode & 0o777 == 0o600
    assert synced == [path.stat().st_ino, path.parent.stat().st_ino]


def test_one_of_many_threads_spends(tmp_path: Path) -> None:
    barrier, found = threading.Barrier(8), list[int | None]()

    def spend() -> None:
        barrier.wait()
        found.append(Spent(tmp_path).spend("site", 3))

    threads = [threading.Thread(target=spend) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found, key=str) == [3] * 7 + [None]


def test_check49_of_two_processes_one_spends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second begins while the first has read the number and not yet written its own."""
    found: list[int | None] = []
    replace_file, lock = spent.replace_file, fcntl.flock
    waits = threading.Event()

    def begin() -> None:
        found.append(Spent(tmp_path).spend("site", 1))

    second = threading.Thread(target=lambda: (begin(), waits.set()))

    def late(path: Path, content: bytes, *, private: bool) -> None:
        monkeypatch.setattr(spent, "replace_file", replace_file)
        monkeypatch.setattr(fcntl, "flock", lambda *given: (waits.set(), lock(*given)))
        second.start()
        waits.wait()
        replace_file(path, content, private=private)

    monkeypatch.setattr(spent, "replace_file", late)
    begin()
    second.join()
    assert sorted(found, key=str) == [1, None]


def test_unusable_folder_and_damaged_number_are_errors(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "1.last").write_bytes(b"abc")
    (tmp_path / "2.last").mkdir()
    for folder, owner in ((tmp_path / "file", "1"), (tmp_path, "1"), (tmp_path, "2")):
        with pytest.raises(VaultError) as caught:
            Spent(folder).spend(owner, 0)
        assert caught.value.check == "file"
