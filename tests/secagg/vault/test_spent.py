"""A client is in each sum once: numbers that are spent outlive the process."""

from __future__ import annotations

import fcntl
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from secagg import VaultError
from secagg.vault import files

OWNERS = ["1", "1-1", "site-1", "a" * 64, "a" * 65, "../job", "", "é", "a/b", "x\0", "."]


def test_number_is_spent_once_also_after_a_restart(tmp_path: Path) -> None:
    """Each owner has numbers of its own, in one folder."""
    folder = tmp_path / "state"
    for owner in OWNERS:
        assert files.spend(folder, owner, 3) is None
        for number in (0, 2, 3):
            assert files.spend(folder, owner, number) == 3
        assert files.spend(folder, owner, 4) is None
    assert {path.parent for path in tmp_path.rglob("*.last")} == {folder}


def test_file_is_private_and_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    monkeypatch.setattr(
        "os.fsync", lambda descriptor: synced.append(os.fstat(descriptor).st_ino)
    )
    files.spend(tmp_path / "state", "site", 3)
    (path,) = (tmp_path / "state").iterdir()
    assert path.stat().st_mode & 0o777 == 0o600
    assert synced == [path.stat().st_ino, path.parent.stat().st_ino]


def test_one_of_many_threads_spends(tmp_path: Path) -> None:
    barrier = threading.Barrier(8)

    def spend(number: int) -> int | None:
        barrier.wait()
        return files.spend(tmp_path, "site", number)

    with ThreadPoolExecutor(8) as threads:
        assert sorted(threads.map(spend, [3] * 8), key=str) == [3] * 7 + [None]


def test_check49_of_two_processes_one_spends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second begins while the first has read the number and not yet written its own."""
    found: list[int | None] = []
    replace_file, lock = files.replace_file, fcntl.flock
    waits = threading.Event()

    def begin() -> None:
        found.append(files.spend(tmp_path, "site", 1))

    second = threading.Thread(target=lambda: (begin(), waits.set()))

    def late(path: Path, content: bytes, *, private: bool) -> None:
        monkeypatch.setattr(files, "replace_file", replace_file)
        monkeypatch.setattr(fcntl, "flock", lambda *given: (waits.set(), lock(*given)))
        second.start()
        waits.wait()
        replace_file(path, content, private=private)

    monkeypatch.setattr(files, "replace_file", late)
    begin()
    second.join()
    assert sorted(found, key=str) == [1, None]


def test_unusable_folder_and_damaged_number_are_errors(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "1.last").write_bytes(b"abc")
    (tmp_path / "2.last").mkdir()
    for folder, owner in ((tmp_path / "file", "1"), (tmp_path, "1"), (tmp_path, "2")):
        with pytest.raises(VaultError) as caught:
            files.spend(folder, owner, 0)
        assert caught.value.check == "file"
