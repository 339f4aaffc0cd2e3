"""Fetching, from a real server on this machine: all of a data set, checked, or nothing."""

from __future__ import annotations

import hashlib
import os
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import fedmf.data.fetch.archive
import fedmf.data.fetch.download
from fedmf.data import load
from fedmf.data.fetch import fetch
from fedmf.data.sets.movielens import FORMATS
from fedmf.data.sets.sources import SOURCES, Source
from fedmf.errors import DataError, MissingExtra
from file_server import FILES, GOOD, NAME, FileServer, md5, serving, zipped


@pytest.fixture
def server():
    with serving() as running:
        running.content = GOOD
        yield running


@pytest.fixture
def cache(monkeypatch, tmp_path) -> Path:
    """Return an empty cache, and let `load` accept the tiny set."""
    monkeypatch.delenv("FEDMF_DATA", raising=False)
    monkeypatch.setenv("FEDMF_CACHE", str(tmp_path / "cache"))
    monkeypatch.setitem(FORMATS, NAME, replace(FORMATS[NAME], counts=(2, 2, 2)))
    return tmp_path / "cache"


def source(server: FileServer, path: str = "good", **changes: object) -> Source:
    """Return a source whose archive the server has."""
    held = {"md5": md5(server.content), "files": dict.fromkeys(FILES, "")}  # not the real ones
    return replace(SOURCES[NAME], **{"archive": server.url(path)} | held | changes)


def left_in(cache: Path) -> list[str]:
    return sorted(path.name for path in cache.iterdir()) if cache.exists() else []


def rejects(source: Source, cache: Path, message: str) -> None:
    """Check that a fetch fails with this message and leaves nothing behind."""
    with pytest.raises(DataError, match=message):
        fetch(source)
    assert left_in(cache) == []


@pytest.mark.parametrize("path", ["good", "unannounced"])
@pytest.mark.parametrize("folder", [f"{NAME}/", "", "deep/er/"])
def test_fetched_set_is_found_by_load(server, cache, path, folder):
    server.content = zipped(FILES | {"extra/x": b"y"}, folder)
    assert fetch(source(server, "missing"), address=server.url(path)) == cache / NAME
    assert left_in(cache) == [NAME]
    assert {path.name: path.read_bytes() for path in (cache / NAME).iterdir()} == FILES
    assert load(NAME).values.tolist() == [0.5, 5.0]


def test_fetch_of_a_cached_set_downloads_nothing(server, cache):
    first = fetch(source(server))
    assert fetch(source(server, "missing")) == first
    assert server.asked == 1


def test_progress_ends_at_the_total(server, cache):
    server.content = zipped({**FILES, "README.txt": bytes(200_000)})
    seen: list[tuple[int, int | None]] = []
    fetch(source(server), progress=lambda so_far, total: seen.append((so_far, total)))
    assert seen == sorted(seen)
    assert seen[-1] == (len(server.content), len(server.content))
    assert len(seen) > 3


@pytest.mark.parametrize(
    ("path", "fault"), [("missing", "404"), ("truncated", "IncompleteRead"), ("silent", "")]
)
def test_bad_answer_leaves_no_files(server, cache, path, fault):
    rejects(source(server, path), cache, f"/{path} .*{fault}" if path != "missing" else fault)


def test_wrong_checksum_leaves_no_files(server, cache):
    other = md5(b"other")
    rejects(source(server, md5=other), cache, f"md5:{other} .*{md5(GOOD)}")


@pytest.mark.parametrize("known", [{"md5": None}, {}])
def test_files_are_checked_with_and_without_an_md5(server, cache, known):
    files = {name: hashlib.sha256(content).hexdigest() for name, content in FILES.items()}
    wrong = files | {"tags.csv": hashlib.sha256(b"other").hexdigest()}
    rejects(source(server, files=wrong, **known), cache, f"tags.csv .*{NAME}")
    assert fetch(source(server, files=files, **known)).is_dir()


@pytest.mark.parametrize(
    ("file", "more", "place"),
    [
        ("ratings.csv", b"7,2,1.0,9\r\n", r"ratings\.csv, line 4:"),
        ("tags.csv", b"9,2,odd,5\r\n", r"tags\.csv, line 3:"),
    ],
)
def test_unreadable_set_is_not_kept(server, cache, file, more, place):
    server.content = zipped(FILES | {file: FILES[file] + more})
    rejects(source(server), cache, place)


def test_fetch_without_a_server_raises(server, cache):
    address = source(server)
    server.server_close()
    server.shutdown()
    rejects(address, cache, "/good .*--url.*FEDMF_DATA")


@pytest.mark.parametrize(
    "address",
    ["http://example.org/a.zip", "file:///etc/passwd", "a.zip", "https://",
     "http://127.0.0.1.example.org/", "http://example.org\\@127.0.0.1/", "http://[::1/"],
)  # fmt: skip
def test_unsafe_address_raises_before_the_request(cache, address):
    rejects(replace(SOURCES[NAME], archive=address), cache, re.escape(repr(address)))


@pytest.mark.parametrize("there", ["http://example.org/a.zip", "https://[::1/x"])
def test_redirection_to_an_unsafe_address_raises(server, cache, there):
    server.elsewhere = there
    rejects(source(server, "moved"), cache, re.escape(repr(there)) + "|IPv6")


def test_fetch_without_a_download_raises(cache):
    rejects(SOURCES["douban"], cache, "https:")


@pytest.mark.parametrize("digits", [11, 5000])
def test_absurd_length_raises(server, cache, digits):
    server.announced = "9" * digits
    rejects(source(server, "boasting"), cache, f"/boasting .* {1 << 30} ")


def test_length_that_is_no_number_is_ignored(server, cache):
    server.announced = "-5, many"
    server.content = b""
    rejects(source(server, "boasting"), cache, "zip")


def test_bytes_compressed_in_transit_are_rejected(server, cache):
    """They would pass the limit of a download before they are counted."""
    rejects(source(server, "gzipped"), cache, "/gzipped .*compress")


def test_http_to_this_machine_takes_no_proxy(server, cache, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    server.elsewhere = server.url("good")
    assert fetch(source(server, "moved")).is_dir()


def test_pooch_missing_raises_with_the_extra(cache, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(MissingExtra, match="pip install pooch"):
        fetch(SOURCES[NAME])
    assert left_in(cache) == []


@pytest.mark.parametrize(("path", "how"), [("good", "announces"), ("unannounced", "sends")])
def test_download_beyond_the_limit_raises(server, cache, monkeypatch, path, how):
    monkeypatch.setattr(fedmf.data.fetch.download, "LARGEST", len(GOOD) - 1)
    rejects(source(server, path), cache, f"{how} .* {len(GOOD) - 1} bytes")
    monkeypatch.undo()


def test_unwritable_cache_raises_with_its_path(server, cache):
    cache.write_text("a file, where a folder should be")
    with pytest.raises(DataError, match=f"{NAME} .*{cache}: .*FEDMF_CACHE"):
        fetch(source(server))
    assert server.asked == 0


def test_interrupted_fetch_leaves_no_files(server, cache):
    def stop(so_far: int, total: int | None) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(source(server), progress=stop)
    assert left_in(cache) == []


@pytest.mark.large
def test_ctrl_c_during_the_command_leaves_no_files(server, cache):
    server.content = bytes(400_000)
    code = "from fedmf.cli import main; main()"
    command = [sys.executable, "-c", code, "data", "fetch", "ml-1m"]
    with subprocess.Popen(  # noqa: S603
        [*command, "--url", server.url("stalled")],
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"FEDMF_CACHE": str(cache)},
    ) as running:
        assert server.half_sent.wait(60)
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=60)
    assert running.returncode == 130
    assert "nothing is kept" in said
    assert left_in(cache) == []


def test_concurrent_fetch_returns_the_first_folder(server, cache):
    def meanwhile(so_far: int, total: int | None) -> None:
        (cache / NAME).mkdir(exist_ok=True)
        (cache / NAME / "complete").touch()

    assert fetch(source(server), progress=meanwhile) == cache / NAME
    assert left_in(cache) == [NAME]
    assert (cache / NAME / "complete").exists()
