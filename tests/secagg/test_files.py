"""Files are replaced as a whole, and are on the disk when the call returns."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from secagg._files import private_folder, replace_file


@pytest.mark.parametrize(("private", "mode"), [(False, 0o640), (True, 0o600)])
def test_new_file_has_its_mode_and_content(tmp_path: Path, private: bool, mode: int) -> None:
    path = tmp_path / "file"
    before = os.umask(0o027)
    try:
        replace_file(path, "é", private=private)
    finally:
        os.umask(before)
    assert path.read_bytes() == "é".encode()
    assert path.stat().st_mode & 0o777 == mode


@pytest.mark.parametrize("call", ["write", "fsync", "replace"])
def test_write_that_fails_leaves_the_old_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, call: str
) -> None:
    path = tmp_path / "file"
    replace_file(path, b"old")

    def fails(*_: object) -> None:
        raise OSError("no room")

    with monkeypatch.context() as broken:
        broken.setattr(os, call, fails)
        with pytest.raises(OSError, match="no room"):
            replace_file(path, b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_content_and_name_are_on_the_disk_in_this_order(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path, steps = tmp_path / "file", []
    fsync, replace = os.fsync, os.replace

    def synced(descriptor: int) -> None:
        steps.append("folder" if os.path.isdir(f"/proc/self/fd/{descriptor}") else "file")
        fsync(descriptor)

    def replaced(*names: os.PathLike[str]) -> None:
        steps.append("name")
        replace(*names)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", replaced)
    replace_file(path, b"content")
    assert steps == ["file", "name", "folder"]


@pytest.mark.parametrize("link", [False, True], ids=["file", "link"])
def test_a_link_is_replaced_and_its_target_stays(tmp_path: Path, link: bool) -> None:
    other, path = tmp_path / "other", tmp_path / "file"
    other.write_bytes(b"content")
    if link:
        path.symlink_to(other)
    replace_file(path, b"new")
    assert (path.read_bytes(), other.read_bytes()) == (b"new", b"content")


def test_longest_name_is_written(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 255)
    replace_file(path, b"new")
    assert path.read_bytes() == b"new"


def test_names_of_new_folders_are_on_the_disk(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    synced, fsync = [], os.fsync

    def note(descriptor: int) -> None:
        synced.append(Path(f"/proc/self/fd/{descriptor}").resolve())
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", note)
    folder = tmp_path / "new" / "folder"
    private_folder(folder)
    assert set(synced) == {tmp_path, folder.parent}
    assert folder.stat().st_mode & 0o777 == 0o700
    private_folder(folder)
    assert synced[2:] == [folder.parent]
