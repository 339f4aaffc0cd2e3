"""Ledger of a site: the plans over a table, and the answered steps."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import msgspec

from secagg._files import replace_file
from secagg.errors import JournalError, ParameterError, RemoteProtocolError
from secagg.statistics.columns import Number
from secagg.statistics.plan import Plan
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
        self._content = _Content([], {}, {})
        if self._path is not None and self._path.exists():
            self._content = _read(self._path)
        self._plans = [Plan.from_bytes(plan.encode()) for plan in self._content.plans]

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

    def answer(self, study: Study, report: bytes = b"") -> None:
        """Note that a site answers the next step of a study; the same step again is no change.

        Parameters
        ----------
        study : Study
        report : bytes
            Digest of a one-shot sum's parameters. A site reports once in a step: two sums would
            differ by a site, and would have two noises.

        Raises
        ------
        RemoteProtocolError
            "step": the steps before are not those that this site answered. "repeated": the site
            reported to another one-shot sum of this step.
        JournalError
            The file cannot be written; nothing has changed.
        """
        key = study.plan.digest.hex()
        past = [hashlib.sha256(sums.tobytes()).hexdigest() for sums in study.past]
        steps, reports = self._content.steps, self._content.reports
        known, mark = steps.get(key), f"{key} {study.number}"
        again = known is not None and past == known[: len(past)]
        # another sum in place of a former sum would give the server a choice of coefficients
        if (not again and past[:-1] != (known or [])) or (past and known is None):
            raise RemoteProtocolError(
                "the sums of the steps before are not those that this site knows; begin the "
                "study again under a new plan, and keep a ledger over restarts",
                sender=None,
                phase="statistics",
                check="step",
            )
        if report and reports.get(mark, report.hex()) != report.hex():
            raise RemoteProtocolError(
                f"this site reported to another sum of step {study.number}; begin the study "
                "again under a new plan",
                sender=None,
                phase="statistics",
                check="repeated",
            )
        plan = study.plan.to_bytes().decode()
        new = _Content(
            list(dict.fromkeys((*self._content.plans, plan))),
            {**steps, key: known if again and known is not None else past},
            {**reports, mark: report.hex()} if report else reports,
        )
        if self._path is not None:
            try:
                replace_file(self._path, msgspec.json.encode(new), private=True)
            except OSError as error:
                raise JournalError(
                    f"the ledger {self._path} cannot be written: {error}"
                ) from error
        if plan not in self._content.plans:
            self._plans.append(study.plan)
        self._content = new


class _Content(msgspec.Struct, forbid_unknown_fields=True):
    """Content of the file: canonical plans, and digests by the plans' digests."""

    plans: list[str]
    steps: dict[str, list[str]]
    reports: dict[str, str]


def _read(path: Path) -> _Content:
    try:
        return msgspec.json.decode(path.read_bytes(), type=_Content)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise JournalError(
            f"{path} is no ledger of plans: {error}; restore the file, or begin another"
        ) from error


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
