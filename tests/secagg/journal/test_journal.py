"""The journal's file: complete or rejected, locked, and without secrets."""

from __future__ import annotations

import os
import random
import resource
import shutil
import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from unittest import mock

import pytest

from harness import Cohort, make_params
from secagg import Integers, Journal, JournalError, Phase, RoundParams, Server
from secagg.journal import database
from secagg.server import Entry

PARAMS = make_params(5, 4)
ENTRIES: list[Entry] = [
    (None, bytes(32)),
    (3, b"first"),
    (0, b"second"),
    ((1 << 64) - 1, b"third" * 900),
    (None, b""),
    (0, b"fourth"),
]


@pytest.fixture
def path(ram_path: Path) -> Path:
    """A closed journal with ENTRIES."""
    path = ram_path / "round"
    with Journal.create(path, PARAMS) as made:
        write(made, ENTRIES)
    return path


def write(to: Journal, entries: list[Entry], first: int = 0) -> None:
    for number, entry in enumerate(entries, start=first):
        to.append(number, entry)


def read(path: Path, params: RoundParams = PARAMS) -> list[Entry]:
    with Journal.open(path, params) as opened:
        return list(opened.entries())


def crashed(path: Path) -> Path:
    """Copy the files as a kill −9 leaves them after another entry is committed, not moved."""
    image = path.with_name("crashed")

    def copy(_: object) -> None:
        for suffix in ("", "-wal"):
            shutil.copyfile(f"{path}{suffix}", f"{image}{suffix}")

    with Journal.open(path, PARAMS) as opened, mock.patch.object(database, "checkpoint", copy):
        opened.append(6, (1, b"fifth"))
    return image


# ---- making and opening


def test_check28_entries_written_together_are_all_there_or_none(path: Path) -> None:
    with Journal.open(path, PARAMS) as opened:
        opened.extend(len(ENTRIES), ENTRIES)
        assert list(opened.entries()) == ENTRIES * 2
        with pytest.raises(JournalError):
            opened.extend(len(ENTRIES), ENTRIES)
        wrong = [*ENTRIES[:2], (1, bytes(1 << 20))]
        with pytest.raises(JournalError):
            opened.extend(2 * len(ENTRIES), wrong)  # the last one is too long for a row
    assert read(path) == ENTRIES * 2


def test_check28_entry_is_in_the_file_when_append_returns(ram_path: Path) -> None:
    """Without its write-ahead log, on which no acknowledged entry depends."""
    with Journal.create(ram_path / "round", PARAMS) as made:
        for number, entry in enumerate(ENTRIES):
            made.append(number, entry)
            shutil.copyfile(made.path, ram_path / "alone")
            assert read(ram_path / "alone") == ENTRIES[: number + 1]


def test_check28_commit_is_synced(path: Path) -> None:
    """A test cannot cut the power, but it can read the settings."""
    with Journal.open(path, PARAMS) as opened, opened._lock.use() as connection:
        settings = [
            connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("journal_mode", "synchronous", "locking_mode")
        ]
    assert settings == ["wal", 2, "exclusive"]


def test_create_makes_a_private_file_and_open_reads_it(path: Path, ram_path: Path) -> None:
    for call, where in (
        (Journal.create, path),
        (Journal.open, ram_path / "other"),
        (Journal.open, ram_path),
        (Journal.open, Path("/proc/self/status")),
        (Journal.create, ram_path / "missing" / "round"),
        (Journal.create, path / "round"),
    ):
        with pytest.raises(JournalError):
            call(where, PARAMS)
    with pytest.raises(JournalError) as caught:
        Journal.create("/proc/round", PARAMS)
    assert str(caught.value).count("/proc") == 1, "it names a temporary file"
    assert list(ram_path.iterdir()) == [path]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    Path(f"{path}-wal").mkdir()
    with pytest.raises(JournalError):
        Journal.open(path, PARAMS)


def test_wal_of_a_deleted_file_is_not_the_new_files(path: Path) -> None:
    """The log of a deleted file is not used for a new file."""
    image = crashed(path)
    assert Path(f"{image}-wal").stat().st_size > 0
    image.unlink()
    with pytest.raises(JournalError):
        Journal.create(image, PARAMS)
    assert not image.exists()


def test_file_name_can_have_any_characters(ram_path: Path) -> None:
    for name in ("a b?mode=ro#%41", "ü"):
        with Journal.create(str(ram_path / name), PARAMS) as made:
            write(made, ENTRIES)
        assert read(ram_path / name) == ENTRIES
    assert sorted(file.name for file in ram_path.iterdir()) == ["a b?mode=ro#%41", "ü"]


def test_closed_journal_raises(path: Path) -> None:
    opened = Journal.open(path, PARAMS)
    opened.close()
    opened.close()
    for call in (lambda: opened.append(6, ENTRIES[0]), lambda: list(opened.entries())):
        with pytest.raises(JournalError):
            call()


def test_check28_two_servers_cannot_write_to_one_journal(path: Path) -> None:
    with Journal.open(path, PARAMS) as opened:
        for number in (0, 5, 7):
            with pytest.raises(JournalError):
                opened.append(number, ENTRIES[1])
        assert list(opened.entries()) == ENTRIES
        opened.append(6, ENTRIES[1])


# ---- truncated, altered, hostile


def test_check28_truncated_file_is_rejected_at_any_length(path: Path) -> None:
    whole = path.read_bytes()
    rng = random.Random(28)
    lengths = {0, 1, 15, 16, 99, 100, len(whole) - 1, *rng.sample(range(len(whole)), 30)}
    lengths |= {at + by for at in range(4096, len(whole), 4096) for by in (-1, 0, 1)}
    no_journal = bytes(8192), rng.randbytes(20_000)
    for content in (*no_journal, *(whole[:length] for length in lengths)):
        path.write_bytes(content)
        with pytest.raises(JournalError):
            Journal.open(path, PARAMS)
    path.write_bytes(whole)
    assert read(path) == ENTRIES


def test_check28_altered_byte_is_rejected_or_without_effect(path: Path) -> None:
    """Some bytes of a file are unused; if one is altered, the journal works as before."""
    whole = path.read_bytes()
    rng = random.Random(28)
    places = [*range(100), *rng.sample(range(100, len(whole)), 200)]
    used = [at for at in range(100, len(whole)) if whole[at]]
    rejected = 0
    for at in (*places, *rng.sample(used, 300)):
        path.write_bytes(
            whole[:at] + bytes([whole[at] ^ 1 << rng.randrange(8)]) + whole[at + 1 :]
        )
        try:
            with Journal.open(path, PARAMS) as opened:
                assert list(opened.entries()) == ENTRIES
                write(opened, ENTRIES[1:4], first=6)
        except JournalError:
            rejected += 1
        else:
            assert read(path) == ENTRIES + ENTRIES[1:4]
    assert rejected > 300


ALTERATIONS = {
    # rows
    "last rows deleted": "DELETE FROM entries WHERE number > 3",
    "one deleted, the rest moved up": (
        "DELETE FROM entries WHERE number = 2; "
        "UPDATE entries SET number = number - 1 WHERE number > 2; UPDATE head SET entries = 5"
    ),
    "two swapped": (
        "UPDATE entries SET number = -1 WHERE number = 1; "
        "UPDATE entries SET number = 1 WHERE number = 2; "
        "UPDATE entries SET number = 2 WHERE number = -1"
    ),
    "a row too many, counted": "INSERT INTO entries SELECT 6, client, data, chain FROM entries "
    "WHERE number = 5; UPDATE head SET entries = 7",
    # content
    "another client": "UPDATE entries SET client = x'0100000000000000' WHERE number = 1",
    "no client": "UPDATE entries SET client = NULL WHERE number = 1",
    "a short client": "UPDATE entries SET client = zeroblob(7) WHERE number = 2",
    "bytes moved from client to data": (
        "UPDATE entries SET client = x'', data = CAST(client || data AS BLOB) WHERE number = 1"
    ),
    "data in text": "UPDATE entries SET data = CAST(data AS TEXT) WHERE number = 1",
    # head
    "another head": "UPDATE head SET chain = zeroblob(32)",
    "an older head": "UPDATE head SET entries = 5, chain = (SELECT chain FROM entries "
    "WHERE number = 4)",
    "a digest of version 1": "UPDATE head SET params = zeroblob(32)",
    "other parameters": "UPDATE head SET params = CAST('no parameters at all' AS BLOB)",
    "text that is none": "UPDATE head SET params = CAST(x'ff' AS TEXT)",
    "two heads": "INSERT INTO head SELECT * FROM head",
    # schema
    "another table": "CREATE TABLE other (x)",
    "a trigger": "CREATE TRIGGER t AFTER INSERT ON entries BEGIN DELETE FROM entries; END",
    "an endless view": (
        "DROP TABLE entries; CREATE VIEW entries AS WITH RECURSIVE r(number, client, data, "
        "chain) AS (SELECT 0, NULL, x'', x'' UNION ALL SELECT number + 1, NULL, x'', x'' "
        "FROM r) SELECT * FROM r"
    ),
    "a schema that is none": (
        "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = 'CREATE TABLE'"
    ),
    # longer than any message
    "a long row": "UPDATE entries SET data = zeroblob(9000000) WHERE number = 1",
}


@pytest.mark.parametrize("statements", ALTERATIONS.values(), ids=ALTERATIONS)
def test_check28_altered_journal_is_rejected(path: Path, statements: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(statements)
        connection.commit()
    with pytest.raises(JournalError) as caught:
        Journal.open(path, PARAMS)
    assert str(path) in str(caught.value)


def test_journal_of_other_parameters_is_rejected(path: Path) -> None:
    """Also if the file names these parameters."""
    other = make_params(5, 4, session=b"another")
    with pytest.raises(JournalError):
        Journal.open(path, other)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE head SET params = ?", (other.to_bytes(),))
        connection.commit()
    with pytest.raises(JournalError):
        Journal.open(path, other)


def test_check28_damaged_wal_loses_no_acknowledged_entry(path: Path) -> None:
    """Killed between the commit and the move into the file: the entry is there or not."""
    image = crashed(path)
    main, log = image.read_bytes(), Path(f"{image}-wal").read_bytes()
    rng = random.Random(28)
    seen = set()
    spoilt = [log[:length] for length in rng.sample(range(len(log)), 25)]
    spoilt += [log[:at] + b"\xa5" + log[at + 1 :] for at in rng.sample(range(len(log)), 25)]
    for content in (log, b"", random.Random(1).randbytes(5000), *spoilt):
        image.write_bytes(main)
        Path(f"{image}-wal").write_bytes(content)
        entries = read(image)
        assert entries in (ENTRIES, [*ENTRIES, (1, b"fifth")])
        seen.add(len(entries))
    assert seen == {6, 7}


# ---- when it cannot be written


def resumable(params: RoundParams, path: Path) -> Cohort:
    cohort = Cohort(params)
    cohort.server = Server(params, journal=Journal.create(path, params))
    return cohort


@pytest.fixture
def full_disk() -> Iterator[Callable[[int], None]]:
    """No file of this process may grow beyond a size."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda size: resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("room", [0, 5000])
def test_check28_full_disk_acknowledges_nothing_then_resumes(
    ram_path: Path, full_disk: Callable[[int], None], room: int
) -> None:
    """On a full disk nothing is acknowledged, and the round continues later."""
    params = make_params(5, length=1500)
    cohort = resumable(params, ram_path / "round")
    cohort.advance(2)
    sent = cohort.step()
    full_disk((ram_path / "round").stat().st_size + room)
    accepted = []
    for u, data in sent.items():
        try:
            cohort.server.receive(u, data)
        except JournalError:
            break
        accepted.append(u)
    assert len(accepted) < 5
    assert cohort.server.phase is Phase.FAILED
    full_disk(resource.RLIM_INFINITY)
    with Journal.open(ram_path / "round", params) as opened:
        cohort.server = Server.resume(opened)
        assert cohort.server.waiting.isdisjoint(accepted)
        cohort.deliver(sent)
        cohort.advance(1)
        assert cohort.server.result().integers.tolist() == cohort.expected(range(5))


def test_messages_too_long_for_sqlite_are_rejected_early(ram_path: Path) -> None:
    """Messages that SQLite cannot store are rejected before the round."""
    params = make_params(5, length=1 << 28, encoding=Integers(max=9), modulus_bits=64)
    with pytest.raises(JournalError):
        Journal.create(ram_path / "round", params)
    assert list(ram_path.iterdir()) == []


def test_largest_message_of_a_round_fits(ram_path: Path) -> None:
    params = make_params(3, length=1_000_000)
    with Journal.create(ram_path / "round", params) as made:
        made.append(0, (1, bytes(4_000_256)))
        assert sum(len(data) for _, data in made.entries()) == 4_000_256


# ---- content


@pytest.mark.parametrize("neighbours", [None, 6])
def test_check28_nothing_stored_shows_an_input(ram_path: Path, neighbours: int | None) -> None:
    """No vector, encoded or not, no sum, and no secret of a client."""
    params = make_params(10, length=50, neighbours=neighbours)
    cohort = resumable(params, ram_path / "round")
    kept = b""
    cohort.advance(1)
    pairs = [client._state for client in cohort.clients.values()]
    late = cohort.step()
    cohort.deliver({u: data for u, data in late.items() if u != 1})
    seeds = [pair.seed for state in pairs for pair in (state.sealing.pair, state.mask_pair)]
    seeds += [client._state.seed for client in cohort.clients.values()]
    for gone in ([6], []):
        cohort.deliver(cohort.step(without=gone))
        for file in ram_path.iterdir():
            kept += file.read_bytes()
    result = cohort.server.result()
    for file in ram_path.iterdir():
        kept += file.read_bytes()

    ring = params.ring
    assert late[2] in kept
    assert late[1] not in kept
    assert late[1][-200:] not in kept
    secrets = [drawn for entropy in cohort.entropy.values() for drawn in entropy.drawn] + seeds
    vectors = [cohort.vectors[u] for u in cohort.ids]
    encoded = [params.encoding.encode(v, ring, 1, os.urandom)[0] for v in vectors]
    integers = [params.encoding.encode_integers(v)[0] for v in vectors]
    for array in (*vectors, *encoded, *integers, result.sum, result.integers, result.mean):
        for kind in ("<u4", "<u8", "<f8") if array.dtype.kind in "iu" else ("<f8",):
            plain = array.astype(kind).tobytes()
            secrets += [plain[:24], plain[-24:]]
    secrets = [secret for secret in secrets if len(secret) >= 16]
    assert len(secrets) > 100
    assert not any(secret in kept for secret in secrets)
