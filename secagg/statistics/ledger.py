"""Ledger of a site: the plans over a table, and the answered steps."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import msgspec

from secagg._files import replace_file
from secagg.errors import JournalError, ParameterError, RemoteProtocolError
from secagg.statistics.columns import Number
from secagg.statistics.plan import Plan
from secagg.statistics.records import Records
from secagg.statistics.study import Study
from secagg.statistics.survival import Survival


class Ledger:
    """Plans over a table and the answered steps, in a file.

    A second plan may neither cut a column at other places nor have another range: the
    difference of the two sums would be the sum of the few records between. All plans of a
    ledger count, also those over an earlier state of the table. Keep a ledger for each table.

    Parameters
    ----------
    path : str or path, optional
        File of the ledger; a new file is made. None: in memory.

    Raises
    ------
    JournalError
        The file cannot be read, or is no ledger.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self._path = None if path is None else Path(path)
        self._plans = list[Plan]()
        self._steps = dict[str, list[str]]()
        if self._path is not None and self._path.exists():
            self._read(self._path)

    def check(self, plan: Plan) -> None:
        """Raise `ParameterError` if a plan cuts columns otherwise than the ledger's plans."""
        for other in self._plans:
            for name in sorted(plan.columns.keys() & other.columns.keys()):
                why = _conflict(plan, other, name)
                if why:
                    raise ParameterError(
                        f"column {name!r} {why} in the plan {other.name!r} of this ledger, "
                        "and the difference of the two could show a few records; plan the "
                        "column as before"
                    )

    def answer(self, study: Study, records: Records) -> None:
        """Note that a site answers the next step of a study; the same step again is no change.

        Raises
        ------
        RemoteProtocolError
            "step": the steps before are not those that this site answered.
        JournalError
            The file cannot be written; nothing has changed.
        """
        key = f"{study.plan.digest.hex()} {records.digest.hex()}"
        past = [hashlib.sha256(sums.tobytes()).hexdigest() for sums in study.past]
        known = self._steps.get(key, [])
        if past == known[: len(past)] and key in self._steps:
            return  # a step of before has the same vector again
        # another sum in place of a former sum would give the server a choice of coefficients
        if past[:-1] != known or (past and key not in self._steps):
            raise RemoteProtocolError(
                "the sums of the steps before are not those that this site knows; begin the "
                "study again under a new plan, and keep a ledger over restarts",
                sender=None,
                phase="statistics",
                check="step",
            )
        plans = self._plans if study.plan in self._plans else [*self._plans, study.plan]
        steps = {**self._steps, key: past}
        if self._path is not None:
            self._write(self._path, plans, steps)
        self._plans, self._steps = plans, steps

    def _write(self, path: Path, plans: list[Plan], steps: dict[str, list[str]]) -> None:
        content = {"plans": [plan.to_bytes().decode() for plan in plans], "steps": steps}
        try:
            replace_file(path, json.dumps(content, indent=1), private=True)
        except OSError as error:
            raise JournalError(f"the ledger {path} cannot be written: {error}") from error

    def _read(self, path: Path) -> None:
        try:
            content = msgspec.json.decode(path.read_bytes(), type=_Content)
            self._plans = [Plan.from_bytes(plan.encode()) for plan in content.plans]
        except (OSError, msgspec.MsgspecError, ParameterError, UnicodeDecodeError) as error:
            raise JournalError(
                f"{path} is no ledger of plans: {error}; restore the file, or begin another"
            ) from error
        self._steps = content.steps


class _Content(msgspec.Struct, forbid_unknown_fields=True):
    plans: list[str]
    steps: dict[str, list[str]]


def _conflict(plan: Plan, other: Plan, name: str) -> str:
    """Return how a column differs from the column of another plan; empty if the column fits."""
    mine, theirs = plan.columns[name], other.columns[name]
    if isinstance(mine, Number) or isinstance(theirs, Number):
        if mine != theirs:
            return "has another range or resolution"
        cuts, others = _cuts(plan, name), _cuts(other, name)
        if not (cuts <= others or others <= cuts):
            return "has other edges"
        return ""
    if not (set(mine.values) <= set(theirs.values) or set(theirs.values) <= set(mine.values)):
        return "has other values"
    return ""


def _cuts(plan: Plan, name: str) -> set[int]:
    """Return the points at which the statistics of a plan divide a column of numbers."""
    cuts, column = set[int](), plan.columns[name]
    for one in plan.statistics:
        for where in one.wheres(plan.frame):
            cuts.update(*((start, stop) for column_, start, stop in where if column_ == name))
        if isinstance(one, Survival) and one.time == name and isinstance(column, Number):
            cuts.update(column.point("a time", time) for time in one.grid)
    return cuts - {-1, 0, column.units + 1 if isinstance(column, Number) else 0}
