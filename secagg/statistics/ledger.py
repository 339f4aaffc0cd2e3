"""Ledger of a site: the plans over a table, and the answered steps."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import msgspec
from msgspec.structs import replace

from secagg._files import locked, replace_file
from secagg.errors import JournalError, ParameterError, RemoteProtocolError
from secagg.protocol import CohortLedger
from secagg.statistics.columns import Category, Number
from secagg.statistics.plan import Plan
from secagg.statistics.study import Study
from secagg.statistics.survival import Survival

_HIDING = 3
"""Least number of sites in which the cohorts of two sums of a plan differ."""


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
        self._content = self._read()

    def check(self, plan: Plan) -> None:
        """Raise `ParameterError` if a plan cuts columns otherwise than the ledger's plans."""
        for known in self._content.plans:
            other = Plan.from_bytes(known.encode())
            for name in sorted(plan.columns.keys() & other.columns.keys()):
                if why := _conflict(plan, other, name):
                    raise ParameterError(
                        f"column {name!r} {why} in the plan {other.name!r} of this ledger, and "
                        "the difference could show a few records; plan the column as before"
                    )

    def answer(self, study: Study, report: bytes = b"") -> None:
        """Note that a site answers the next step of a study; the same step again is no change.

        Parameters
        ----------
        study : Study
        report : bytes
            Name of the sum: digest of the parameters of a sum with helpers, the random bytes of
            a session, or random bytes of this answer alone. A site is in a single sum of each
            step: two sums would differ by the sites that are in one of them, and would have two
            noises.

        Raises
        ------
        RemoteProtocolError
            "plan": another process answered a plan that cuts columns otherwise. "step": the
            steps before are not those that this site answered. "repeated": the site answered to
            another sum of this step.
        JournalError
            The file cannot be written; nothing has changed.
        """
        self._change(lambda: self._after(study, report))

    def cohorts(self, plan: Plan) -> CohortLedger:
        """Return the cohorts of a plan's sums, for the `ledger` of `secagg.session.take_part`.

        A step again without a site would show the numbers of this site, so cohorts of two sums
        differ by three sites, or not at all. A cohort is in the file before the site's answer
        goes out, so a restarted site compares, too.
        """
        return _Cohorts(self, plan.digest.hex())

    def _change(self, after: Callable[[], _Content]) -> None:
        """Store the content that a function gives for the present content."""
        if self._path is None:
            self._content = after()
            return
        try:
            # another process may answer steps of this table, too
            with locked(self._path.parent) if hasattr(os, "O_DIRECTORY") else nullcontext():
                self._content = self._read()
                new = after()
                replace_file(self._path, msgspec.json.encode(new), private=True)
        except OSError as error:
            raise JournalError(f"the ledger {self._path} cannot be written: {error}") from error
        self._content = new

    def _read(self) -> _Content:
        """Return the content of the file; without a file, the content that is known."""
        if self._path is None or not self._path.exists():
            return self._content
        try:
            content = msgspec.json.decode(self._path.read_bytes(), type=_Content)
            for cohorts in content.cohorts.values():
                CohortLedger.from_bytes(cohorts)
            return content
        except (OSError, msgspec.MsgspecError, ParameterError, UnicodeDecodeError) as error:
            raise JournalError(
                f"{self._path} is no ledger of plans, or of a later release of secagg: "
                f"{error}; take that release, or begin another ledger"
            ) from error

    def _after(self, study: Study, report: bytes) -> _Content:
        """Return the content after the answer to a step; see `answer`."""
        try:
            self.check(study.plan)
        except ParameterError as error:
            raise refusal(str(error), "plan") from None
        steps, reports = self._content.steps, self._content.reports
        past = [hashlib.sha256(sums.tobytes()).hexdigest() for sums in study.past]
        key, mark = study.plan.digest.hex(), f"{study.plan.digest.hex()} {study.number}"
        known = steps.get(key, [])
        again = past == known[: len(past)]
        # another sum in place of a former sum would give the server a choice of coefficients
        if not again and (key not in steps or past[:-1] != known):
            raise refusal(
                "the sums of the steps before are not those that this site knows; begin the "
                "study again under a new plan, and keep a ledger over restarts",
                "step",
            )
        if reports.get(mark, report.hex()) != report.hex():
            raise refusal(
                f"this site was in another sum of step {study.number}, and two sums over "
                "different sites would show a site's numbers; begin a study with a new plan",
                "repeated",
            )
        plans = dict.fromkeys((*self._content.plans, study.plan.to_bytes().decode()))
        steps = steps | {key: known if again else past}
        reports = reports | {mark: report.hex()} if report else reports
        return replace(self._content, plans=list(plans), steps=steps, reports=reports)


def refusal(why: str, check: str) -> RemoteProtocolError:
    """Return the error of a site that takes no part."""
    return RemoteProtocolError(why, sender=None, phase="statistics", check=check)


class _Cohorts(CohortLedger):
    """Cohorts of a plan's sums, in the file of a site's ledger."""

    def __init__(self, ledger: Ledger, plan: str) -> None:
        super().__init__(min_difference=_HIDING)
        self._ledger, self._plan = ledger, plan

    def _record(self, kind: str, packed: bytes) -> int:
        """Compare packed ids with the cohorts of the file, and store them; see `record`."""
        difference = 0

        def recorded() -> _Content:
            nonlocal difference
            content = self._ledger._content
            if known := content.cohorts.get(self._plan):
                self.include(CohortLedger.from_bytes(known))
            difference = super(_Cohorts, self)._record(kind, packed)
            return replace(content, cohorts={**content.cohorts, self._plan: self.to_bytes()})

        self._ledger._change(recorded)
        return difference


class _Content(msgspec.Struct, forbid_unknown_fields=True):
    """Content of the file: canonical plans; digests and cohorts by the plans' digests."""

    plans: list[str]
    steps: dict[str, list[str]]
    reports: dict[str, str]
    cohorts: dict[str, bytes] = {}


def _conflict(plan: Plan, other: Plan, name: str) -> str:
    """Return how a column differs from the column of another plan; empty if the column fits."""
    mine, theirs = plan.columns[name], other.columns[name]
    if mine != theirs and Number in (type(mine), type(theirs)):
        return "has another range or resolution"
    some, others = _cuts(plan, name), _cuts(other, name)
    return "" if some <= others or others <= some else "has other values or edges"


def _cuts(plan: Plan, name: str) -> set[object]:
    """Return a category's values, or the points at which a plan's statistics divide numbers."""
    column, cuts = plan.columns[name], set[object]()
    if isinstance(column, Category):
        return set(column.values)
    for one in plan.statistics:
        for where in one.wheres(plan.frame):
            cuts.update(*(ends for known, *ends in where if known == name))
        if isinstance(one, Survival) and one.time == name:
            cuts.update(column.point("a time", time) for time in one.grid)
    return cuts - {-1, 0, column.units + 1}
