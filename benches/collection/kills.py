"""Kills of a run, most of them inside a transaction, a lease or a request to a helper.

A process is stopped for a moment and killed if it is inside: PostgreSQL shows an open
transaction of a stopped process, and a worker has connections to helpers from the lease of a
slice to its result. A helper whose threads compute has a request.
"""

from __future__ import annotations

import signal
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, suppress
from random import Random
from threading import Event, Thread

import psycopg

from benches.collection.parties import Parties
from benches.collection.programs import Program, is_computing, is_connected

_TRIES = 45.0
"""Seconds to find a process inside."""
_LOOK = 0.005
_REPORTS = "SELECT sum(reports)::bigint FROM secagg_batches"
_ORDER = "", "open", "closing", "merging", "fixed", "reserved", "opened", "done"


class Killer(AbstractContextManager[None]):
    """Thread that kills while the block runs, and has ended its kills when the block ends."""

    def __init__(self, work: Callable[[Event], None] | None) -> None:
        self._over = Event()
        self._error: BaseException | None = None
        self._thread = Thread(target=self._run, args=(work,))

    def _run(self, work: Callable[[Event], None] | None) -> None:
        try:
            if work is not None:
                work(self._over)
        except BaseException as error:
            self._error = error

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        if self._error is not None:
            raise self._error


class Kills:
    """Kills of the processes of a run, which are started again at once.

    Attributes
    ----------
    counted : dict of (int, int)
        Kills of each kind, and kills inside.
    """

    def __init__(self, parties: Parties, count: int) -> None:
        self.counted: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
        self._parties, self._count = parties, count
        self._over = Event()
        self._random = Random(parties.load.seed)  # noqa: S311 - of moments, not of keys

    def take(self, over: Event) -> None:
        """Kill ``serve`` and PostgreSQL while reports come."""
        self._over = over
        early = self._count - self._count // 2
        kinds = _mixed({"serve": self._count, "postgres": early})
        for at, kind in enumerate(kinds, 1):
            goal = 0.95 * self._parties.load.clients * at / (len(kinds) + 1)
            while not over.is_set() and int(self._text(_REPORTS) or 0) < goal:
                over.wait(0.1)
            if over.is_set():
                return
            if kind == "serve":
                self._kill_inside(self._pick(self._parties.serves), self._is_in_transaction)
            else:
                self._kill_database(self._parties.serves)

    def close(self, over: Event) -> None:
        """Kill everybody while the batch closes."""
        self._over, count, parties = over, self._count, self._parties
        later = dict.fromkeys(("work", "helper", "close"), count)
        kinds = _mixed(later | {"postgres": count // 2})
        for kind in kinds:
            if over.is_set():
                return
            if kind == "work":
                self._kill_inside(self._pick(parties.works), self._is_asking)
            elif kind == "close":
                before = self.counted["close"]
                # it can end by itself first, and is started again
                while self.counted["close"] == before and not over.is_set():
                    self._kill_close(over, self._is_asking)
            elif kind == "helper":
                self._kill_inside(self._pick(parties.helpers), _is_busy)
            else:
                self._kill_database([*parties.works, parties.closer])
        for state in ("merging", "fixed", "reserved"):

            def is_there(program: Program, state: str = state) -> bool:
                inside = self._is_asking(program) or self._is_in_transaction(program)
                return inside and self._state() == state

            while not over.is_set() and _ORDER.index(self._state()) <= _ORDER.index(state):
                if self._kill_close(over, is_there, 1.0):
                    break

    def _state(self) -> str:
        """Return the state of the batch; "merging" is closing without slices left."""
        state = self._text("SELECT min(state) FROM secagg_batches")
        left = "SELECT count(*) FROM secagg_slices WHERE part IS NULL"
        return "merging" if state == "closing" and self._text(left) == "0" else state

    def _kill_inside(self, program: Program, is_inside: Callable[[Program], bool]) -> None:
        """Kill a process, inside if that can be seen, and start it again."""
        program.await_ready()
        inside = self._stop_inside(program, is_inside)
        program.kill()
        self._note(program.name.partition("-")[0], inside=inside)
        program.start()

    def _kill_close(
        self, over: Event, is_inside: Callable[[Program], bool], seconds: float = _TRIES
    ) -> bool:
        """Kill ``close``, which the driver starts again; return whether it was inside."""
        program = self._parties.closer
        inside = self._stop_inside(program, is_inside, seconds)
        if inside or (seconds == _TRIES and program.is_running and not over.is_set()):
            life = program.lives
            program.signal(signal.SIGKILL)
            self._note("close", inside=inside)
            while program.lives == life and not over.is_set():
                time.sleep(_LOOK)
        return inside

    def _kill_database(self, clients: Iterable[Program]) -> None:
        """Kill PostgreSQL, inside a transaction of one of the clients, and start it again."""
        clients = list(clients)
        for one in clients:
            # a command that starts without its database ends; the driver starts `close` again
            if one is not self._parties.closer:
                one.await_ready()
        end, held = time.monotonic() + _TRIES, None
        while held is None and time.monotonic() < end and not self._over.is_set():
            one = self._random.choice(clients)
            if self._stop_inside(one, self._is_in_transaction, 1.0):
                held = one
        self._parties.database.kill()
        if held is not None:
            held.signal(signal.SIGCONT)
        self._note("postgres", inside=held is not None)
        self._parties.database.start()

    def _stop_inside(
        self,
        program: Program,
        is_inside: Callable[[Program], bool],
        seconds: float = _TRIES,
    ) -> bool:
        """Stop a process inside; return False, without a stop, if no moment was found."""
        end = time.monotonic() + seconds
        time.sleep(self._random.random() * 0.1)
        while time.monotonic() < end and program.is_running and not self._over.is_set():
            with suppress(psycopg.Error, FileNotFoundError):
                if is_inside(program):
                    program.signal(signal.SIGSTOP)
                    time.sleep(_LOOK)
                    # a helper that is stopped does not compute
                    if is_inside is _is_busy or is_inside(program):
                        return True
                    program.signal(signal.SIGCONT)
            time.sleep(self._random.random() * _LOOK)
        program.signal(signal.SIGCONT)
        return False

    def _is_in_transaction(self, program: Program) -> bool:
        with self._parties.database.connect() as connection:
            rows = connection.execute(
                "SELECT 1 FROM pg_stat_activity "
                "WHERE application_name = %s AND xact_start IS NOT NULL",
                (program.name,),
            ).fetchall()
        return bool(rows)

    def _is_asking(self, program: Program) -> bool:
        return is_connected(program.pid, self._parties.helper_ports)

    def _pick(self, programs: list[Program]) -> Program:
        return self._random.choice(programs)

    def _note(self, kind: str, *, inside: bool) -> None:
        kills, within = self.counted[kind]
        self.counted[kind] = kills + 1, within + inside
        where = "inside" if inside else "outside"
        print(time.strftime("%H:%M:%S"), f"killed {kind} {where}", file=sys.stderr, flush=True)

    def _text(self, statement: str) -> str:
        """Return the only value of a statement, or an empty text while the database is away."""
        with suppress(psycopg.Error), self._parties.database.connect() as connection:
            (found,) = connection.execute(statement.encode()).fetchone() or ("",)
            return str(found)
        return ""


def _is_busy(program: Program) -> bool:
    """Return whether a program computes at three looks."""
    for _ in range(3):
        if not is_computing(program.pid):
            return False
        time.sleep(0.002)
    return True


def _mixed(counts: dict[str, int]) -> list[str]:
    """Return each name as often as stated, evenly mixed."""
    places = [
        ((at + 0.5) / count, kind) for kind, count in counts.items() for at in range(count)
    ]
    return [kind for _, kind in sorted(places)]
