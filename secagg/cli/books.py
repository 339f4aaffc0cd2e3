"""Book of ``secagg serve``: files and records of the sums, and the sum after a restart."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator
from datetime import datetime
from itertools import count
from pathlib import Path

from msgspec import to_builtins

from secagg import __version__
from secagg._files import replace_file
from secagg.cli import schedule
from secagg.cli.accounts import Account
from secagg.cli.console import Document, called
from secagg.cli.records import (
    FORMAT,
    Chain,
    Convicted,
    Outcome,
    Record,
    Spent,
    SumFile,
    name_of,
    remove_parts,
    verdict_name,
)
from secagg.cli.summands import content_of
from secagg.cli.sums import Aggregator, Sums
from secagg.errors import ParameterError, SecAggError, Verdict
from secagg.oneshot import OneShotParams
from secagg.privacy import against
from secagg.protocol import RoundParams
from secagg.protocol.params_bytes import VERSION
from secagg.server import RoundResult
from secagg.session.events import Event

PARTIAL, FAILED = 3, 2
"""Exit statuses: registered clients are missing in a sum, or a sum failed."""


class Book:
    """Folder with the sums of a session, and a record beside each sum.

    A record is written after the sum and before the next sum begins. If the process is killed
    between the two, the session's folder has the sum, and the next process writes the record.

    Parameters
    ----------
    out : Path
    sums : Sums
    aggregator : Aggregator or None

    Raises
    ------
    JournalError
        A record was altered or is missing.
    ParameterError
        The records are of another session, or of other periods.
    """

    def __init__(self, out: Path, sums: Sums, aggregator: Aggregator | None) -> None:
        self._out, self._sums, self._aggregator = out, sums, aggregator
        remove_parts(out)
        self._chain = Chain.read(out)
        self._chain.require_whole()
        self._account = Account(called)
        self._last: Record | None = None
        self._short: dict[int, Outcome] = {}
        for record in self._chain.records:
            if record.session != sums.name:
                raise ParameterError(
                    f"--out {out} has the sums of session {record.session!r}, not "
                    f"{sums.name!r}; take another --out, or that name"
                )
            if record.period != sums.period(record.number):
                raise ParameterError(
                    f"--out {out} has {record.called} as sum {record.number}, and --folder has "
                    f"{sums.period(record.number) or 'no periods'}; give the --folder and "
                    "--every of these sums, or another --out"
                )
            self._take(record)
        self._chain.records.clear()  # a server that runs for years needs the last hash only

    @property
    def is_new(self) -> bool:
        """True if there is no record yet."""
        return self._last is None

    @property
    def status(self) -> int:
        """Exit status: 2 if a sum failed, 3 if a client is missing in a sum, else 0."""
        if "failed" in self._short.values():
            return FAILED
        return PARTIAL if self._short else 0

    def numbers(self, rounds: int | None) -> Iterator[int]:
        """Return the numbers of the sums that are left, without end if `rounds` is None.

        A sum that failed is tried again, but not the sum of a period: the next is due.
        """
        first, last = 0, self._last
        if last is not None:
            failed = last.outcome == "failed" and self._sums.schedule is None
            first = last.number + (not failed)
        return iter(count(first) if rounds is None else range(first, rounds))

    def note(self, event: Event) -> None:
        """Note an event of the sum under way; a hook of the session."""
        self._account(event)

    def begin(self, convicted: Collection[int] = ()) -> datetime:
        """Begin the account of a next sum, which takes no convicted client; return the time."""
        self._account = Account(called, convicted)
        return schedule.now()

    def keep(self, number: int, begun: datetime, result: RoundResult) -> Path:
        """Write a sum and then the record; return the file of the sum."""
        self._chain.require_alone(self._place)
        path = self._out / self._sums.file(number)
        content = content_of(result.sum, self._sums.columns)
        replace_file(path, content)
        kept = SumFile(file=path.name, sha256=hashlib.sha256(content).hexdigest())
        # the sum of a killed process can have a client that the registry has no more
        whole = set(self._sums.registry) <= set(result.survivors)
        self._write(
            number,
            begun,
            outcome="full" if whole else "partial",
            survivors=result.survivors,
            clipped=result.clipped,
            kept=kept,
            verdicts=result.verdicts,
        )
        return path

    def keep_failure(self, number: int, begun: datetime, error: SecAggError) -> None:
        """Write the record of a sum that failed."""
        self._chain.require_alone(self._place)
        verdicts = getattr(error, "verdicts", ())  # of errors of a round
        self._write(number, begun, outcome="failed", why=str(error), verdicts=verdicts)

    def documents(self) -> list[Document]:
        """Return all records as the JSON output of the command shows them."""
        return [self._document(record) for record in Chain.read(self._out).records]

    @property
    def spent(self) -> Spent | None:
        """Privacy that the session has spent, as the last event of a sum states it."""
        plan, epsilon = self._sums.plan, self._account.epsilon
        if plan is None or epsilon is None:
            return None
        return Spent(epsilon=epsilon, delta=plan.budget.delta, budget=plan.budget.epsilon)

    @property
    def _place(self) -> int:
        """Number of the next record."""
        return 0 if self._last is None else self._last.record + 1

    def _write(
        self,
        number: int,
        begun: datetime,
        *,
        outcome: Outcome,
        why: str = "",
        survivors: tuple[int, ...] = (),
        clipped: int | None = None,
        kept: SumFile | None = None,
        verdicts: Iterable[Verdict] = (),
    ) -> None:
        sums, account, place = self._sums, self._account, self._place
        params = sums.params(number, self._aggregator)
        request = sums.request(number, self._aggregator)
        noise = params.noise
        ended = schedule.iso(schedule.now())
        record = Record(
            format=FORMAT,
            record=place,
            session=sums.name,
            number=number,
            period=request.period,
            kind="one-shot" if isinstance(params, OneShotParams) else "round",
            outcome=outcome,
            why=why,
            begun=None if account.resumed else schedule.iso(begun),
            ended=None if account.stored else ended,
            written=ended,
            resumed=account.resumed,
            attempts=tuple(account.attempts),
            registered=len(sums.registry),
            clients=tuple(sorted(map(called, survivors))),
            missing=account.missing(sums.registry, survivors),
            parameters=readable(params, sums.min_clients),
            digest=params.digest.hex(),
            columns=len(request.columns),
            clipped=clipped,
            noise=None if noise is None else float(noise.sigma),
            helpers_failed=tuple(account.helpers),
            sum=kept,
            versions={"secagg": __version__, "protocol": VERSION},
            before=self._chain.head.hex(),
            spent=self.spent,
            verdicts=tuple(self._convicted(place, one) for one in verdicts),
        )
        self._chain.append(record)
        self._take(record)

    def _convicted(self, place: int, verdict: Verdict) -> Convicted:
        """Write a verdict, and return the entry of the record."""
        client, kind = called(verdict.client), verdict.kind
        name = verdict_name(place, verdict.client, kind)
        replace_file(self._out / name, verdict.data)
        digest = hashlib.sha256(verdict.data).hexdigest()
        return Convicted(client=client, kind=kind, file=name, sha256=digest)

    def _take(self, record: Record) -> None:
        """Take note of a record that is on the disk."""
        self._last = record
        # a later record of the same number is of another try
        self._short.pop(record.number, None)
        if record.outcome != "full":
            self._short[record.number] = record.outcome

    def _document(self, record: Record) -> Document:
        """Return a record as the JSON output of the command shows it."""
        found: Document = {"out": None, "record": str(self._out / name_of(record.record))}
        if record.sum is not None:
            found["out"] = str(self._out / record.sum.file)
        found |= {"number": record.number, "period": record.period, "outcome": record.outcome}
        found |= {"survivors": len(record.clients), "clients": list(record.clients)}
        found |= {"missing": to_builtins(record.missing)}
        if record.verdicts:
            found["verdicts"] = [
                {"client": one.client, "kind": one.kind, "file": str(self._out / one.file)}
                for one in record.verdicts
            ]
        return found if record.spent is None else found | {"spent": to_builtins(record.spent)}


def readable(
    params: RoundParams | OneShotParams, min_clients: int | None
) -> dict[str, str | int | list[str] | None]:
    """Return the parameters of a record, in words and numbers."""
    found: dict[str, str | int | list[str] | None] = {
        "n_clients": params.n_clients,
        "length": params.length,
        "encoding": str(params.encoding),
        "modulus": str(params.ring),
        "threshold": params.threshold,
        "security": params.security,
        "suite": params.suite,
    }
    if params.noise is not None:
        found["against"] = against(params)
    if isinstance(params, RoundParams):
        found |= {"neighbours": params.neighbours, "min_clients": min_clients}
        found |= {"min_survivors": int(params.min_survivors)}
        noise = params.noise
        return found if noise is None else found | {"colluders": noise.colluders}
    helpers = [key.hex() for _, key in params.helpers]
    return found | {"min_clients": params.min_clients, "helpers": helpers}
