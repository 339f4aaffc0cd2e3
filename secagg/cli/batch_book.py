"""Book of ``secagg collect close``: the files of the batches' sums, and their records."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import to_builtins

from secagg import __version__
from secagg._files import replace_file
from secagg.cli.books import FAILED, PARTIAL, readable
from secagg.cli.console import Document, called
from secagg.cli.records import (
    FORMAT,
    Chain,
    HelperFault,
    Missing,
    Outcome,
    Record,
    SumFile,
    digest_of,
    remove_parts,
)
from secagg.cli.requests import Request
from secagg.cli.schedule import iso, now
from secagg.cli.summands import content_of, suffix
from secagg.errors import ParameterError, SecAggError
from secagg.oneshot import OneShotResult
from secagg.protocol.params_bytes import VERSION
from secagg.session.events import Event, HelperFailed

if TYPE_CHECKING:
    from secagg.collect.batches import Batch
    from secagg.collect.sessions import StoredSession


class BatchBook:
    """Folder with the sums of a collection's batches, and a record beside each sum.

    A record is written after the sum, and before the reports are dropped. So a process that is
    killed leaves reports, and the same command writes what is missing.

    Parameters
    ----------
    out : Path

    Raises
    ------
    JournalError
        A record was altered or is missing.
    ParameterError
        The records are not of a collection.
    """

    def __init__(self, out: Path) -> None:
        self._out = out
        remove_parts(out)
        self._chain = Chain.read(out)
        self._chain.require_whole()
        self._place, self._known = 0, dict[int, SumFile]()
        for record in self._chain.records:
            if record.kind != "batch":
                raise ParameterError(
                    f"--out {out} has the sums of secagg serve; take another --out"
                )
            self._place = record.record + 1
            if record.sum is not None:
                self._known[record.number] = record.sum
        self._chain.records.clear()  # a process that runs for years needs the last hash only
        self._outcomes: dict[int, Outcome] = {}
        self._faults = defaultdict[tuple[str, int], dict[HelperFault, None]](dict)

    @property
    def status(self) -> int:
        """Exit status: 2 if a batch failed, 3 if a sum lacks acknowledged reports, else 0."""
        outcomes = self._outcomes.values()
        if "failed" in outcomes:
            return FAILED
        return PARTIAL if "partial" in outcomes else 0

    def note(self, event: Event) -> None:
        """Note a helper that failed; a hook of the helpers' calls."""
        if isinstance(event, HelperFailed):
            fault = HelperFault(helper=event.helper, phase=event.phase, check=event.check)
            self._faults[event.place.session, event.place.number][fault] = None

    def keep(
        self,
        batch: Batch,
        session: StoredSession,
        result: OneShotResult,
        absent: Iterable[Missing],
    ) -> Document:
        """Write the sum of a batch and then the record, unless both are there.

        Parameters
        ----------
        batch : Batch
        session : StoredSession
        result : OneShotResult
        absent : iterable of Missing
            Clients with acknowledged reports that are not in the sum.

        Raises
        ------
        ParameterError
            The folder has another sum with this number.
        JournalError
            Another process has written the next record.
        RemoteProtocolError
            "request": the message of the session is no valid request.
        """
        columns = Request.from_bytes(session.message).columns
        path = self._out / f"sum-{batch.number}{suffix(columns)}"
        content = content_of(result.sum, columns)
        kept = SumFile(file=path.name, sha256=hashlib.sha256(content).hexdigest())
        known = self._known.get(batch.number)
        there = digest_of(path) if path.exists() else kept.sha256
        if (known or kept) != kept or (known is None and there != kept.sha256):
            raise ParameterError(
                f"{path} is of another collection, and this command would overwrite it; take "
                "another --out"
            )
        missing = tuple(absent)
        outcome: Outcome = "partial" if missing else "full"
        if known is None:
            self._chain.require_alone(self._place)
        replace_file(path, content)
        if known is None:
            self._write(batch, session, outcome, missing=missing, kept=kept, result=result)
            self._known[batch.number] = kept
        self._outcomes[batch.number] = outcome
        found: Document = {"out": str(path), "batch": batch.number, "outcome": outcome}
        found |= {"reports": batch.reports, "survivors": len(result.survivors)}
        return found | {"missing": [to_builtins(one) for one in missing]}

    def keep_failure(self, batch: Batch, session: StoredSession, error: SecAggError) -> None:
        """Write the record of a batch without a sum, once in this process."""
        if self._outcomes.get(batch.number) != "failed":
            self._chain.require_alone(self._place)
            self._write(batch, session, "failed", why=str(error))
        self._outcomes[batch.number] = "failed"

    def _write(
        self,
        batch: Batch,
        session: StoredSession,
        outcome: Outcome,
        *,
        why: str = "",
        missing: tuple[Missing, ...] = (),
        kept: SumFile | None = None,
        result: OneShotResult | None = None,
    ) -> None:
        params, faults = session.params, (session.name, batch.place)
        self._chain.append(
            Record(
                format=FORMAT,
                record=self._place,
                session=session.title,
                number=batch.number,
                period="",
                kind="batch",
                outcome=outcome,
                why=why,
                begun=_iso(batch.begun),
                ended=_iso(batch.changed),
                written=iso(now()),
                resumed=False,
                attempts=(),
                registered=batch.reports,
                clients=() if result is None else tuple(sorted(map(called, result.survivors))),
                missing=missing,
                parameters=readable(params, params.min_clients),
                digest=params.digest.hex(),
                columns=len(Request.from_bytes(session.message).columns),
                clipped=None if result is None else result.clipped,
                noise=None if params.noise is None else float(params.noise.sigma),
                helpers_failed=tuple(self._faults.get(faults, ())),
                sum=kept,
                versions={"secagg": __version__, "protocol": VERSION},
                before=self._chain.head.hex(),
            )
        )
        self._place += 1
        self._faults.pop(faults, None)  # only now: a full disk must not lose the faults


def _iso(seconds: float) -> str:
    return iso(datetime.fromtimestamp(seconds, UTC))
