"""Ledger of a client: the privacy that all of the client's sums have spent, in a file."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, TypeAlias, get_args

import msgspec
from msgspec.structs import asdict, replace

from secagg._check import check_kind
from secagg._files import locked, replace_file
from secagg._secrets import process
from secagg.errors import JournalError, LocalProtocolError, ParameterError
from secagg.oneshot import OneShotParams
from secagg.privacy.budget import Budget
from secagg.privacy.loss import Loss
from secagg.privacy.record import Record
from secagg.protocol import RoundParams

Unit: TypeAlias = Literal["client", "record"]
_KIND = "secagg privacy ledger 1"


class PrivacyLedger:
    """Privacy that the sums of a client's data have spent, within a budget.

    Give the same ledger to all clients that work with the same data, whatever the session and
    the server. A loss is on the disk before `spend` returns, so spend before a message leaves;
    a message that is never sent stays spent. Several processes may use the file at a time. The
    budget holds against the parties of every sum, which `against` names.

    Keep the file on a local disk of Linux or macOS. Never copy, restore or delete the file: a
    copy would spend the budget again. A copy under another name or in another folder is
    rejected, but not an older state under the same name.

    Parameters
    ----------
    path : str or path, or None
        File in an existing folder; a new file is made. None: in the memory of this process. A
        fork of the process cannot use this ledger.
    budget : Budget
        Budget of the client. A file keeps the budget of the first call.
    unit : "client" or "record"
        Whose loss is added up: of all data of the client, replaced by zeros, or of a single
        record, added or removed. `Loss.of` gives losses of a client; a study of
        `secagg.statistics` has either unit. A file keeps the unit of the first call.

    Raises
    ------
    ParameterError
        An argument is invalid, or the file has another budget or unit.
    JournalError
        The file cannot be read or written, was altered, cut short or copied, or is no ledger.
    MissingExtra
        dp-accounting is not installed: ``pip install "secagg[privacy]"``.
    """

    def __init__(
        self, path: str | os.PathLike[str] | None, budget: Budget, *, unit: Unit = "client"
    ) -> None:
        if path is not None:
            check_kind("the ledger's path", path, (str, os.PathLike), "a str, a path or None")
        check_kind("budget", budget, Budget, "a secagg.privacy.Budget")
        if unit not in get_args(Unit):
            raise ParameterError(f"unit is {unit!r}; take one of {get_args(Unit)}")
        _ = budget.squares  # without dp-accounting now, and not in a round
        self.budget, self.unit = budget, unit
        self._path = None if path is None else Path(path).absolute()
        self._busy, self._process = threading.Lock(), process()
        self._known = _Content(epsilon=budget.epsilon, delta=budget.delta, unit=unit)
        with self._whole():
            if self._path is not None and not self._path.exists():
                replace_file(self._path, _bytes(self._path, self._known), private=True)
            self._known = self._read()

    def __repr__(self) -> str:
        return f"<PrivacyLedger: {self._known.sums:,} sums, {self.budget}, each {self.unit}>"

    @property
    def spent(self) -> Loss:
        """Loss of all sums of all processes."""
        with self._whole():
            return self._read().loss

    @property
    def sums(self) -> int:
        """Number of all sums of all processes."""
        with self._whole():
            return self._read().sums

    def allows(self, cost: RoundParams | OneShotParams | Loss) -> bool:
        """Return whether the budget has room for another sum; nothing is spent.

        The answer follows from public parameters alone, so a client may decline in the open.
        """
        return self.budget.allows(self.spent + self._loss(cost))

    def check(self, cost: RoundParams | OneShotParams | Loss) -> None:
        """Raise `BudgetSpent` unless the budget has room for another sum; nothing is spent."""
        loss = self._loss(cost)
        with self._whole():
            known = self._read()
        self.budget.check(known.loss, known.sums, loss)

    def spend(self, cost: RoundParams | OneShotParams | Loss) -> None:
        """Spend the loss of a sum; the loss is on the disk at the return.

        Every call spends, also for the same parameters: another masked input has fresh noise.
        The same bytes may be sent again without a call.

        Parameters
        ----------
        cost : RoundParams, OneShotParams or Loss
            Parameters of the sum, with the loss ``Loss.of(cost)``, or a loss of the caller's,
            of this ledger's unit.

        Raises
        ------
        BudgetSpent
            The budget has no room for this sum. Nothing was spent, so send nothing.
        ParameterError
            `cost` are parameters, whose loss is of a client, and the unit is "record".
        LocalProtocolError
            The ledger is in memory, and this process is a fork.
        JournalError
            The file cannot be read or written. Send nothing: the loss may be spent or not.
        """
        loss = self._loss(cost)
        with self._whole():
            known = self._read()
            self.budget.check(known.loss, known.sums, loss)
            total = Record.of(known.loss + loss)
            after = replace(known, **asdict(total), sums=known.sums + 1)
            if self._path is not None:
                replace_file(self._path, _bytes(self._path, after), private=True)
            self._known = after

    @contextmanager
    def _whole(self) -> Iterator[None]:
        """Keep threads and processes out, and turn errors of the file into `JournalError`."""
        if self._path is None and self._process != process():  # before a lock of the parent
            raise LocalProtocolError(
                "this ledger was copied into another process by a fork, and both would spend "
                "its budget; give PrivacyLedger a path, or make it in the process that uses it"
            )
        with self._busy:
            if self._path is None:
                yield
                return
            if not hasattr(os, "O_DIRECTORY"):
                raise JournalError(
                    f"the ledger {self._path}: this system cannot lock and sync a folder; keep "
                    "the ledger on Linux or macOS"
                )
            try:
                with locked(self._path.parent):
                    yield
            except OSError as error:
                why = error.strerror or str(error)
                remedy = "" if self._path.parent.is_dir() else "; make the folder first"
                raise JournalError(f"the ledger {self._path}: {why}{remedy}") from error

    def _read(self) -> _Content:
        """Return the content of the file; without a file, the content that is known."""
        if self._path is None:
            return self._known
        found = _content(self._path)
        if (found.epsilon, found.delta) != (self.budget.epsilon, self.budget.delta):
            raise ParameterError(
                f"the ledger {self._path} has a budget of epsilon {found.epsilon:g} and delta "
                f"{found.delta:g}; pass this budget"
            )
        if found.unit != self.unit:
            raise ParameterError(
                f"the ledger {self._path} adds up the losses of each {found.unit}, not of each "
                f"{self.unit}; take another file, one for each unit"
            )
        return found

    def _loss(self, cost: RoundParams | OneShotParams | Loss) -> Loss:
        """Return the loss of a sum for this ledger's unit."""
        if isinstance(cost, Loss):
            return cost
        loss = Loss.of(cost)
        if self.unit != "client":
            raise ParameterError(
                "the parameters of a sum give the loss of a client, and this ledger adds up "
                f"the losses of each {self.unit}; take another ledger, with unit='client'"
            )
        return loss


class _Content(Record, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Content of the file.

    `folder` is the number of the folder in the file system, and `check` the SHA-256 of the file
    with an empty `check`.
    """

    epsilon: float
    delta: float
    unit: Unit
    sums: int = 0
    kind: str = _KIND
    folder: int = 0
    name: str = ""
    check: str = ""


def _content(path: Path) -> _Content:
    """Return the content of a file, or raise `JournalError`."""
    data = path.read_bytes()
    why = "is no privacy ledger, or was cut short or altered"
    try:
        found = msgspec.json.decode(data, type=_Content)
        # the same bytes again: a right checksum, and no other spaces, digits or order
        if data == _bytes(path, found):
            return found
        why = "was altered"
        if (found.folder, found.name) != _place(path):
            why = "was copied or restored, and sums may be missing"
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass
    raise JournalError(
        f"the ledger {path} {why}; take no further part with these data, or begin another "
        "ledger if the earlier sums shall not count"
    )


def _bytes(path: Path, content: _Content) -> bytes:
    """Return the bytes of a file, with the file's place and a checksum."""
    folder, name = _place(path)
    placed = replace(content, folder=folder, name=name, kind=_KIND, check="")
    check = hashlib.sha256(msgspec.json.encode(placed)).hexdigest()
    return msgspec.json.encode(replace(placed, check=check)) + b"\n"


def _place(path: Path) -> tuple[int, str]:
    """Return the number of the folder in the file system, and the name of the file."""
    return path.parent.stat().st_ino, path.name
