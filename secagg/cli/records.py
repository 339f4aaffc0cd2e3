"""Records beside the sums of ``secagg serve``: one file in JSON for each sum, chained.

The last line of a record is a hash of all bytes before it and of the record before, so an
altered, swapped or missing record is detected. There is no key: a consistent rewrite of all
records from some place on is not detected, nor are last records that were deleted with their
sums. Keep the last hash elsewhere to detect both; see docs/how-to/records.md.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from secagg._files import replace_file
from secagg._printable import at_least
from secagg.cli.files import read
from secagg.errors import JournalError
from secagg.journal.chain import link

FORMAT = 1
FIRST = bytes(32)
"""Hash before the first record."""
_NAME = re.compile(r"record-(\d{4,9})\.json")
_PART = re.compile(r"(record|sum|verdict)-.*\.[0-9a-f]{16}\.part")
_TAIL = re.compile(rb',\n  "hash": "([0-9a-f]{64})"\n}\n')
_TAIL_BYTES = len(b',\n  "hash": ""\n}\n') + 64

Outcome = Literal["full", "partial", "failed"]


class SumFile(Struct, frozen=True, kw_only=True):
    """File of a sum, in the folder of the record."""

    file: str
    sha256: str


class Attempted(Struct, frozen=True, kw_only=True):
    """Attempt at a sum. `outcome` is "finished" or the class of the error."""

    attempt: int
    begun: str
    cohort: int
    outcome: str = ""
    phase: str = ""
    check: str = ""
    survivors: int = 0
    needed: int = 0
    left_out: tuple[str, ...] = ()


OTHER_KEY = "compare its key in the registry of the server and of each helper"
"""Remedy for a client whose report the helpers reject."""


class Missing(Struct, frozen=True, kw_only=True):
    """Registered client that is not in a sum, and why."""

    client: str
    why: Literal[
        "never came", "declined", "dropped out", "rejected", "convicted", "lost", "not known"
    ]
    phase: str = ""
    check: str = ""

    def __str__(self) -> str:
        at = f" in {self.phase}" if self.phase else ""
        why = f", check {self.check}" if self.check else ""
        if (self.phase, self.check) == ("check", "helpers"):
            at, why = " by the helpers", f"; {OTHER_KEY}"
        if self.why == "lost":
            why = "; its report in the database was altered or deleted"
        return f"{self.client}: {self.why}{at}{why}"


class Convicted(Struct, frozen=True, kw_only=True):
    """Client that a verdict names, and the file of the verdict, in the folder of the record.

    ``secagg judge`` checks the file by the registry.
    """

    client: str
    kind: str
    file: str
    sha256: str


class HelperFault(Struct, frozen=True, kw_only=True):
    """Helper that did not answer, or answered wrong."""

    helper: int
    phase: str
    check: str


class Spent(Struct, frozen=True, kw_only=True):
    """Privacy that a session has spent with all attempts so far.

    Attributes
    ----------
    epsilon, delta : float
        ε of all attempts for this δ, for a client's vectors or zeros in their place: a meter,
        for noise fixed in advance, against the parties in the parameters of the record.
    budget : float
        ε that the session may spend, which is the promise.
    """

    epsilon: float
    delta: float
    budget: float

    def __str__(self) -> str:
        spent = f"ε = {at_least(self.epsilon)} of {self.budget:g} spent against the server"
        return f"{spent}, δ = {self.delta:g}"


class Record(Struct, frozen=True, kw_only=True):
    """Record of a sum.

    Attributes
    ----------
    format : int
        Version of this format.
    record : int
        Number of the record in the folder, from 0.
    session, number, period
        Name of the session, number of the sum in the session, and label of the period or "". A
        sum that failed and was tried again by a next process has two records.
    kind : str
        "round", of four exchanges; "one-shot"; or "batch", a one-shot sum of a collection.
    outcome : str
        "full": all registered clients are in the sum; of a batch, all acknowledged reports.
    why : str
        Error of a failed sum, or "".
    begun, ended : str or None
        UTC, in ISO 8601. None: an earlier process began or ended the sum, and was killed before
        the record was written.
    written : str
        Time of the record.
    resumed : bool
        True if an earlier process began the sum. The times and attempts of that process are not
        known.
    attempts : tuple of Attempted
    registered : int
        Number of the registered clients.
    clients : tuple of str
        Clients in the sum, by name, or by id if there is no name.
    missing : tuple of Missing
    parameters : dict
        Parameters in words and numbers.
    digest : str
        SHA-256 of the parameters' bytes, with a label; see `RoundParams.digest`.
    columns : int
        Number of named columns, 0 without names.
    clipped : int or None
        Number of clipped elements, if clients report the number.
    noise : float or None
        σ, in steps of the encoding, of the noise in a sum that nobody knows: of an honest
        client's seed, or of the fewest honest clients' shares.
    helpers_failed : tuple of HelperFault
    sum : SumFile or None
    versions : dict
        Version of the package, and of the protocol.
    before : str
        Hash of the record before.
    spent : Spent or None
        Privacy that the session has spent. None: the session has no budget, or an earlier
        release wrote the record.
    verdicts : tuple of Convicted
        Proofs against clients, of all attempts.
    """

    format: int
    record: int
    session: str
    number: int
    period: str
    kind: str
    outcome: Outcome
    why: str
    begun: str | None
    ended: str | None
    written: str
    resumed: bool
    attempts: tuple[Attempted, ...]
    registered: int
    clients: tuple[str, ...]
    missing: tuple[Missing, ...]
    parameters: dict[str, str | int | list[str] | None]
    digest: str
    columns: int
    clipped: int | None
    noise: float | None
    helpers_failed: tuple[HelperFault, ...]
    sum: SumFile | None
    versions: dict[str, str | int]
    before: str
    spent: Spent | None = None
    verdicts: tuple[Convicted, ...] = ()

    @property
    def called(self) -> str:
        """Period or number of the sum: the name that ``--period`` takes."""
        return self.period or str(self.number)


class _Version(Struct):
    """Version of a record's format, for records with fields that this release does not know."""

    format: int


@dataclass
class Chain:
    """Records of a folder that were read, with all faults.

    Attributes
    ----------
    records : list of Record
        Records with a valid hash, in order.
    faults : dict of str to str
        Fault of each file, by the file's name.
    head : bytes
        Hash of the last record.
    """

    folder: Path
    records: list[Record] = field(default_factory=list)
    faults: dict[str, str] = field(default_factory=dict)
    head: bytes = FIRST

    @classmethod
    def read(cls, folder: Path) -> Chain:
        """Return the records of a folder, each validated against the record before."""
        chain, expected = cls(folder), 0
        for place in sorted(map(_place, records_in(os.listdir(folder)))):
            if place > expected:
                # a single name of nine digits must not become a billion faults
                others = f", and all from {name_of(expected)} on" * (place - 1 > expected)
                chain.faults[name_of(place - 1)] = f"it is missing{others}"
            chain._take(place)
            expected = place + 1
        return chain

    def _take(self, place: int) -> None:
        """Add the record of a file, or the file's fault."""
        name = name_of(place)
        data = read(self.folder / name)
        body, tail = data[:-_TAIL_BYTES], _TAIL.fullmatch(data[-_TAIL_BYTES:])
        record, fault = None, "it was altered"
        with suppress(ValueError, RecursionError):  # bytes of no UTF-8, brackets in brackets
            if tail is not None:
                version = msgspec.json.decode(body + b"}", type=_Version).format
                if version != FORMAT:
                    fault = f"it has format {version}, and this release reads format {FORMAT}"
                else:
                    record = msgspec.json.decode(body + b"}", type=Record)
        before = self.head
        if record is None or tail is None:
            self.faults[name] = fault
            return
        # after a fault, the next record is judged by the hash that it states itself
        if name_of(place - 1) in self.faults:
            with suppress(ValueError):
                before = bytes.fromhex(record.before)
        self.head = bytes.fromhex(tail[1].decode())
        if self.head != link(before, [body]):
            self.faults[name] = "it was altered"
        elif record.record != place:
            self.faults[name] = "it is of another place in the chain"
        else:
            self.records.append(record)

    def check_files(self) -> None:
        """Compare sums and verdicts with the records' digests; find files without a record."""
        there = {path.name for path in self.folder.iterdir() if path.is_file()}
        known = set[str]()
        for record in self.records:
            files: list[SumFile | Convicted] = [*record.verdicts]
            files += [] if record.sum is None else [record.sum]
            for one in files:
                known.add(one.file)
                if one.file not in there:
                    self.faults[one.file] = f"it is missing; {name_of(record.record)} has it"
                elif digest_of(self.folder / one.file) != one.sha256:
                    self.faults[one.file] = f"it was altered after {name_of(record.record)}"
        for name in sorted(there - known - set(records_in(there))):
            if not _PART.fullmatch(name):
                self.faults.setdefault(name, "no record has it")

    def require_alone(self, place: int) -> None:
        """Raise JournalError if another process has written the next record."""
        path = self.folder / name_of(place)
        if path.exists():
            raise JournalError(
                f"{path} is of another server, which runs with the same --out; give each "
                "server an --out and a --folder of its own"
            )

    def append(self, record: Record) -> Path:
        """Write the next record, whole or not at all; return the file.

        The record is on the disk then, and not in `records`: a server runs for years.
        """
        # by msgspec: the names of a million clients would take the garbage of Python's encoder
        encoded, path = msgspec.json.encode(record), self.folder / name_of(record.record)
        del record  # the caller's last, too, whose million names have 90 MB
        body = msgspec.json.format(encoded, indent=2).removesuffix(b"\n}")
        head = link(self.head, [body])
        replace_file(path, body + b',\n  "hash": "%s"\n}\n' % head.hex().encode())
        self.head = head
        return path

    def require_whole(self) -> None:
        """Raise JournalError if a record was altered or is missing."""
        for name, fault in self.faults.items():
            raise JournalError(
                f"{self.folder / name}: {fault}; restore the file, or begin a new session with "
                "another --out and another --folder"
            )

    def of(self, called: str) -> Iterator[Record]:
        """Yield the records of a period or of a number."""
        return (record for record in self.records if record.called == called)


def name_of(place: int) -> str:
    """Return the name of a record's file."""
    return f"record-{place:04d}.json"


def verdict_name(place: int, client: int, kind: str) -> str:
    """Return the name of a verdict's file, beside the record of a place."""
    return f"verdict-{place:04d}-{client}-{kind}.bin"


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def records_in(names: Iterable[str]) -> list[str]:
    """Return the names of records among the names of files."""
    return [name for name in names if _NAME.fullmatch(name) and name_of(_place(name)) == name]


def _place(name: str) -> int:
    return int(name.removeprefix("record-").removesuffix(".json"))


def remove_parts(folder: Path) -> None:
    """Delete the unfinished files of sums and records that a killed process left."""
    for path in folder.iterdir():
        if _PART.fullmatch(path.name):
            path.unlink(missing_ok=True)
