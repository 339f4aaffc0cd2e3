"""A vault's file: one key, of mode 600, taken once, and errors of the file system."""

from __future__ import annotations

import fcntl
import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from frames import leaks
from secagg import ParameterError, Vault, VaultError
from secagg.vault import files


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    return Vault(tmp_path / "key")


def rejects(call: Callable[[], object], check: str) -> VaultError:
    with pytest.raises(VaultError) as caught:
        call()
    assert caught.value.check == check
    return caught.value


def test_check48_key_is_taken_once(vault: Vault) -> None:
    key = vault.renew()
    assert vault.read() == vault.read() == key
    vault.take(key)
    assert os.listdir(vault.path.parent) == []
    for call in (vault.read, lambda: vault.take(key)):
        rejects(call, "used")


def test_check48_new_key_replaces_the_old_one(vault: Vault) -> None:
    old, new = vault.renew(), vault.renew()
    assert old != new
    assert os.listdir(vault.path.parent) == ["key"]
    assert vault.read() == Vault(str(vault.path)).read() == new
    rejects(lambda: vault.take(old), "latest")


def test_check29_file_is_for_its_owner_only(vault: Vault) -> None:
    before = os.umask(0)
    try:
        vault.renew()
    finally:
        os.umask(before)
    assert stat.S_IMODE(vault.path.stat().st_mode) == 0o600
    assert vault.path.stat().st_size == 32


def test_key_is_of_the_given_entropy(tmp_path: Path) -> None:
    vault = Vault(tmp_path / "key", entropy=lambda size: bytes(range(size)))
    assert vault.renew() == bytes(range(32))
    vault = Vault(tmp_path / "key", entropy=lambda _: b"short")
    with pytest.raises(ParameterError):
        vault.renew()


@pytest.mark.parametrize("content", [bytes(31), bytes(33), None])
def test_file_that_is_no_key_is_rejected(vault: Vault, content: bytes | None) -> None:
    """Another size, or a pipe, for whose writer nobody waits."""
    os.mkfifo(vault.path) if content is None else vault.path.write_bytes(content)
    rejects(vault.read, "file")


@pytest.mark.parametrize("link", [os.link, os.symlink])
def test_check48_key_with_two_names_is_taken_under_neither(link: Any, vault: Vault) -> None:
    key = vault.renew()
    other = Vault(vault.path.with_name("other"))
    link(vault.path, other.path)
    rejects(other.read, "file")
    rejects(lambda: other.take(key), "file")
    if link is os.symlink:  # the file itself has one name
        vault.take(key)
    else:
        link(vault.path, other.path)
        rejects(lambda: vault.take(key), "file")
        rejects(vault.read, "used")


def test_errors_name_the_file_and_have_no_key(vault: Vault) -> None:
    key = vault.renew()
    nowhere = Vault(vault.path.parent / "no" / "folder")
    for call in (nowhere.renew, nowhere.read, lambda: nowhere.take(key)):
        error = rejects(call, "file")
        assert str(nowhere.path) in str(error)
        assert leaks(error, [key], __name__) == []
    folder = Vault(vault.path.parent)
    rejects(folder.renew, "file")
    assert os.listdir(vault.path.parent) == ["key"]


def test_failed_write_leaves_the_old_key(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    key = vault.renew()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    for call in ("write", "fsync", "replace"):
        with monkeypatch.context() as broken:
            broken.setattr(os, call, full)
            rejects(vault.renew, "file")
        assert os.listdir(vault.path.parent) == ["key"]
        assert vault.read() == key


@pytest.mark.parametrize("most", [0, 5])
def test_short_writes_store_the_whole_key_or_raise(
    vault: Vault, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    old, real = vault.renew(), os.write
    with monkeypatch.context() as short:
        short.setattr(os, "write", lambda descriptor, data: real(descriptor, data[:most]))
        if most:
            assert vault.renew() == vault.read() != old
        else:
            rejects(vault.renew, "file")
            assert vault.read() == old


@pytest.mark.parametrize("call", ["unlink", "fsync"])
def test_check48_key_that_cannot_be_deleted_for_good_is_not_taken(
    vault: Vault, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    key = vault.renew()

    def broken(*_: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, call, broken)
    rejects(lambda: vault.take(key), "file")
    rejects(vault.read, "used")


@pytest.mark.parametrize("wrong", [None, 5, b"key"])
def test_path_of_another_type_raises(wrong: object) -> None:
    with pytest.raises(ParameterError):
        Vault(wrong)  # type: ignore[arg-type]


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


def test_file_is_private_and_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr(
        "os.fsync", lambda descriptor: synced.append(os.fstat(descriptor).st_ino)
    )
    files.spend(tmp_path / "state", "site", 3)
    (path,) = (tmp_path / "state").iterdir()
    assert path.stat().st_mode & 0o777 == 0o600
    assert synced == [one.stat().st_ino for one in (tmp_path, path, path.parent)]


def test_check49_one_process_spends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
