"""Records and warnings of a session, as lines on the terminal or in the log of a command.

Without ``--log``, faults and waits are printed. With ``--log``, all records of a level are, or
of a higher level.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from secagg._printable import at_least
from secagg.cli.console import called, counted, first_of, with_options
from secagg.cli.judge import FAULTS
from secagg.cli.lines import form, say, time_of, write
from secagg.cli.records import OTHER_KEY
from secagg.cli.waiting import LATE, SOON, Wait, Waiting
from secagg.errors import ClippingWarning, PrecisionWarning
from secagg.kit.table import duration
from secagg.session.events import HELPER_PHASES

_LOGS = ("secagg.session", "secagg.http", "secagg.collect", "psycopg.pool")
_QUIET = {"psycopg.pool": logging.WARNING}
NO_VECTOR = "vector"
"""Phase of an error of this command's own file."""
_FEW = 20
"""Missing clients below which each arrival has a line."""
_USUAL = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "names"}
_CLIENTS = frozenset({"client", "missing", "left_out", "clients", "convicted"})
"""Fields with the ids of clients."""


@contextmanager
def notices(*, study: bool = False) -> Iterator[Notices]:
    """Print the records of the block, and its warnings; see `Notices`."""
    handler = Notices(study=study)
    logs = [(log := logging.getLogger(name), log.level) for name in _LOGS]
    for log, _ in logs:
        log.addHandler(handler)
        # the pool tells each connection that it lends
        log.setLevel(max(handler.level, _QUIET.get(log.name, 0)))
    with warnings.catch_warnings():
        # by default Python shows the same warning of two sums only once
        warnings.simplefilter("always", ClippingWarning)
        warnings.simplefilter("always", PrecisionWarning)
        warnings.showwarning = _warned
        try:
            yield handler
        finally:
            handler.waiting.end()
            for log, level in logs:
                log.removeHandler(handler)
                log.setLevel(level)


def tell(text: str) -> None:
    """Print a line of this command on standard error."""
    say(with_options(text))


def _warned(message: Warning | str, *_: object, **__: object) -> None:
    tell(" ".join(str(message).split()))


class Notices(logging.Handler):
    """Handler of the records that the server and the members of a session log.

    Parameters
    ----------
    study : bool
        True: the clients are sites, and their sums are the steps of a study.

    Attributes
    ----------
    hint : str
        Likely reason why this command's client was last left out of a sum, or "".
    waiting : Waiting
        Lines about the wait of the command.
    """

    hint = ""

    def __init__(self, *, study: bool) -> None:
        least = form.get().level
        # waits are of the level info
        super().__init__(min(logging.INFO if least is None else least, logging.INFO))
        # a thread, such as the connection pool's, has no form of its own
        self._form = form.get()
        self._logs, self._least = least is not None, least or logging.WARNING
        self._waits = least is None or least <= logging.INFO
        self._study, self._what = study, "step" if study else "sum"
        self.waiting = Waiting(self._write)

    def emit(self, record: logging.LogRecord) -> None:
        """Print a record as one line."""
        before = form.set(self._form)
        try:
            self._print(record)
        finally:
            form.reset(before)

    def _print(self, record: logging.LogRecord) -> None:
        known = vars(record)
        self.hint = self._hint(known) or self.hint
        wait = self._wait(record) if self._waits else None
        # the command prints the error of the last attempt, and why a file is no vector
        told = wait is not None or known.get("final") or known.get("phase") == NO_VECTOR
        if record.levelno >= self._least and (self._logs or not told):
            self._write(record, self._words(record) if wait is None else wait.line(0.0))

    def _write(self, record: logging.LogRecord, text: str) -> None:
        write(record, with_options(text), _fields(record))

    def _hint(self, known: Mapping[str, Any]) -> str:
        hint = str(known.get("hint", ""))
        return hint.replace("client", "site") if self._study else hint

    def _party(self, client: int) -> str:
        return f"site {called(client)}" if self._study else f"client {client}"

    def _sum(self, number: int) -> str:
        return f"step {number + 1}" if self._study else f"sum {number}"

    def _wait(self, record: logging.LogRecord) -> Wait | None:
        """Begin, change or end the wait; return the wait that a record is of, or None."""
        known = vars(record)
        first = LATE if self._logs or known.get("event") == "PhaseOpened" else SOON
        match known.get("event"):
            case "Gathering" if known["present"] < known["wanted"]:
                missing, present = known["missing"], known["present"]
                names = first_of(sorted(_name(u, record) for u in missing))
                what = f"waiting for {names}: {present} of {present + len(missing)} here"
                since = self.waiting.since("Gathering")
                if since is not None:
                    wait = Wait(what, since, record, known["deadline"])
                    # of many clients the first line, and then a line at times
                    self.waiting.change(wait, quiet=self._logs or len(missing) > _FEW)
                    return wait
            case "PhaseOpened":
                answers = counted(known["awaited"], "answer")
                what = f"{self._sum(known['number'])}, {known['phase']}: waiting for {answers}"
            case "MemberWaits" if known["number"] is None:
                what = f"waiting for a {self._what} to begin"
                if done := known["sums"]:
                    what += f", after {counted(done, self._what)}"
            case "MemberWaits":
                what = f"in {self._sum(known['number'])}, waiting for the server"
            case "Gathering" | "RoundBegun" | "RoundFinished" | "RoundFailed" | "PhaseClosed":
                self.waiting.end()
                return None
            case _:
                return None
        wait = Wait(what, time_of(record), record, known.get("deadline"))
        self.waiting.begin(wait, first)
        return wait

    def _words(self, record: logging.LogRecord) -> str:
        known = vars(record)
        phase, check = known.get("phase"), known.get("check")
        parties = "sites" if self._study else "clients"
        why = f"{phase}, {check or f'too few {parties}'}"
        match known.get("event"):
            case "Gathering":
                return f"{self._sum(known['number'])}: {counted(known['present'])} here"
            case "RoundBegun":
                # vectors of a study differ in length, and so may the suites of its steps
                suite = f", suite {known['suite']}" if self._study else ""
                cohort = f"{known['cohort']:,} {parties}{suite}"
                return f"{self._sum(known['number'])} begins with {cohort}"
            case "RoundFinished":
                took = f"{known['survivors']:,} {parties}, {duration(known['seconds'])}"
                spent = known.get("epsilon")
                took += (
                    "" if spent is None else f", ε = {at_least(spent)} spent against the server"
                )
                return f"{self._sum(known['number'])} is done: {took}"
            case "PhaseClosed":
                came = f"{counted(known['answered'], 'answer')}, {duration(known['seconds'])}"
                missing = first_of([_name(u, record) for u in known["missing"]])
                without = f", missing {missing}" if missing else ""
                return f"{self._sum(known['number'])}, {phase}: {came}{without}"
            case "MemberDeclined":
                party = self._party(known["client"])
                return f"{party} takes no part in {self._sum(known['number'])} ({phase})"
            case "RoundFailed":
                if not check and known["needed"]:
                    why += f": {known['survivors']}, and {known['needed']} are needed"
                text = f"{self._sum(known['number'])} failed ({why})"
                if not check and phase == "advertise_keys":
                    text += f"; {parties} that declined it say why at their end"
                if not known["final"]:
                    text += "; trying again"
                if known["left_out"]:
                    text += f" without {', '.join(map(self._party, known['left_out']))}"
                return text
            case "MessageRejected":
                text = f"a message of {self._party(known['client'])} was rejected ({why})"
                if check == "repeated":
                    text += "; likely its identity is joined by another process"
                elif (phase, check) == ("check", "helpers"):
                    text += f"; {OTHER_KEY}"
                return text
            case "ClientConvicted":
                return f"{self._party(known['client'])} {FAULTS[known['kind']]} (a verdict)"
            case "HelperFailed":
                return f"going on without helper {known['helper']} ({why})"
            # a member logs without an event
            case None if "check" in known:
                left = self._sum(known["number"]) if self._study else "this sum"
                party = self._party(known["client"])
                return f"{party} left {left} ({why}){self._hint(known)}"
            case _:
                return " ".join(record.getMessage().split())


def _name(party: int, record: logging.LogRecord) -> str:
    """Return the name of a client, or the number of a helper, in a record."""
    known = vars(record)
    helper = known.get("event") == "PhaseClosed" and known["phase"] in HELPER_PHASES
    return str(party) if helper else called(party)


def _fields(record: logging.LogRecord) -> dict[str, object]:
    """Return the fields of a record for JSON, with the names of clients."""
    found = {name: value for name, value in vars(record).items() if name not in _USUAL}
    for name in found.keys() & _CLIENTS:
        ids = found[name]
        several = isinstance(ids, tuple)
        found[name] = [_name(u, record) for u in ids] if several else _name(ids, record)
    return found
