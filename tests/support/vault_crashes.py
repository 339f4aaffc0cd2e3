"""Rounds of a client that lives for one message, with crashes, power cuts, clones, old states.

A trial lets processes of `vault_node` do one round of a client, one system call at a time, and
checks after each turn:

- **once**: no state is restored twice;
- **whole**: the vault's file is missing or has a key;
- **gone**: no file opens a state that was restored;
- **kept**: the latest state is restored if no call has removed its key.
"""

from __future__ import annotations

import random
import shutil
from collections import Counter
from pathlib import Path

from harness import Cohort
from secagg import Phase, RoundParams, VaultError
from secagg.client import stored
from vault_node import PLAIN, Job, Visit

ME = 1


class Violation(AssertionError):
    """A property of the vault does not hold; the name of the property."""


class Disk:
    """A folder of which a power cut loses all that was not synced.

    Names and contents that were not synced survive or not: the changes of names up to a random
    one, and all, a part or nothing of each content.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._names: dict[str, list[bytes]] = {}  # as the processes see them
        self._synced: dict[str, list[bytes]] = {}
        self._pending: list[tuple[str, ...]] = []
        self._loose: list[list[bytes]] = []  # contents not synced

    def change(self, kind: str, name: str, *more: object) -> None:
        if kind == "write":
            self._names[name].extend(more)
        elif kind == "sync" and name == str(self.folder):
            self._synced, self._pending = dict(self._names), []
        elif kind == "sync":
            self._loose = [file for file in self._loose if file is not self._names[name]]
        else:
            file: list[bytes] = []
            if kind == "create":
                self._loose.append(file)
            change = (kind, name, *more, file)
            _rename(self._names, change)
            self._pending.append(change)
        assert {str(path) for path in self.folder.iterdir()} == set(self._names)

    def cut_power(self, rng: random.Random) -> None:
        for change in self._pending[: rng.randint(0, len(self._pending))]:
            _rename(self._synced, change)
        for file in self._loose:
            content = b"".join(file)
            file[:] = [content[: rng.choice([0, len(content) // 2, len(content)])]]
        for path in self.folder.iterdir():
            path.unlink()
        for name, file in self._synced.items():
            Path(name).write_bytes(b"".join(file))
        self._names, self._pending, self._loose = dict(self._synced), [], []


def _rename(names: dict[str, list[bytes]], change: tuple[object, ...]) -> None:
    kind, name, *more, file = change
    if kind == "create":
        names[name] = file
    elif kind == "unlink":
        names.pop(name, None)
    elif name in names:
        names[more[0]] = names.pop(name)


class Trial:
    """One round of client 1; everything follows from the seed.

    Attributes
    ----------
    crashes : int
        Processes killed so far.
    """

    def __init__(
        self, address: str, folder: Path, params: RoundParams, seed: int, mutant: str = PLAIN
    ) -> None:
        folder.mkdir()
        self.rng = random.Random(seed)
        self.crashes = self.cuts = 0
        self._address, self._mutant, self._params = address, mutant, params
        self._disk, self._path = Disk(folder), str(folder / "key")
        self._cohort = Cohort(params, seed=seed)
        self._states: list[bytes] = []
        self._latest: bytes | None = None
        self._intact = False  # the key of the latest state is in its place
        self._writer: Visit | None = None  # the one whose key is in its place
        self._restored: Counter[bytes] = Counter()
        self._answers: dict[Visit, bytes] = {}
        self._answer: bytes | None = None

    def run(self) -> None:
        """Run the round until it is finished or the client is lost; raise Violation."""
        while self._cohort.server.phase is not Phase.FINISHED:
            if not self._phase(attempts=4):
                break
        else:
            result = self._cohort.server.result()
            assert result.integers.tolist() == self._cohort.expected(result.survivors)
        for _ in range(3):
            self._turn(self._any_state(), calm=False)

    def interrupt(self, phases: int, calls: int, kind: str) -> bool:
        """Interrupt the client after some phases and some calls; return whether it had more.

        It is killed, the power is cut, or another process with the same state runs meanwhile.
        """
        for _ in range(phases):
            self._phase(attempts=1)
        state = self._latest
        visits = [self._visit(state)]
        for _ in range(calls):
            if visits[0].alive:
                self._follow(visits[0])
        more = visits[0].alive
        if kind == "kill":
            self._kill(visits)
        elif kind == "cut":
            self._cut_power(visits)
        else:
            visits.insert(0, self._visit(state))
        for visit in visits:
            while visit.alive:
                self._follow(visit)
        self._check()
        self._turn(self._latest if self._intact else self._any_state(), calm=True)
        self._turn(state, calm=True)
        return more

    def _phase(self, attempts: int) -> bool:
        """Do a phase, the last attempt undisturbed; return False if the client is lost."""
        self._answer, before = None, self._latest
        for attempt in range(attempts):
            self._turn(before, calm=attempt == attempts - 1)
            if self._answer is not None or not (self._intact or before is None):
                break
        if self._answer is None:
            return False
        inbox = self._cohort.inbox
        sent = {u: self._cohort.answer(u, data) for u, data in inbox.items() if u != ME}
        self._cohort.deliver(sent | {ME: self._answer})
        return self._intact or self._cohort.server.phase is Phase.FINISHED

    def _any_state(self) -> bytes | None:
        return self.rng.choice(self._states) if self._states else None

    def _visit(self, state: bytes | None) -> Visit:
        data = self._cohort.inbox.get(ME, b"")
        vector = self._cohort.vectors[ME]
        job = Job(self._path, self._params, ME, state, data, vector, self._mutant)
        return Visit(self._address, job)

    def _turn(self, state: bytes | None, *, calm: bool) -> None:
        """One process with this state, and perhaps another with the same or an older one."""
        visits = [self._visit(state)]
        if not calm and self.rng.random() < 0.7:
            visits.append(self._visit(self.rng.choice([state, self._any_state()])))
        must = calm and self._intact
        try:
            while alive := [visit for visit in visits if visit.alive]:
                visit = self.rng.choice(alive)
                for _ in range(self.rng.choice([1, 1, 3, 10, 40])):
                    if visit.alive:
                        self._follow(visit)
                if not calm:
                    self._disturb(visits)
        finally:
            for visit in visits:
                if visit.alive:
                    visit.kill()
        if must and state is not None and not self._restored[state]:
            raise Violation("kept")
        self._check()

    def _disturb(self, visits: list[Visit]) -> None:
        """Kill one process, or cut the power, which kills all."""
        kind = self.rng.choice(["none", "none", "none", "kill", "cut"])
        alive = [visit for visit in visits if visit.alive]
        if kind == "kill" and alive:
            self._kill([self.rng.choice(alive)])
        elif kind == "cut":
            self._cut_power(visits)

    def _kill(self, visits: list[Visit]) -> None:
        for visit in visits:
            if visit.alive:
                visit.kill()
                self.crashes += 1

    def _cut_power(self, visits: list[Visit]) -> None:
        self._kill(visits)
        self._disk.cut_power(self.rng)
        self.cuts += 1

    def _follow(self, visit: Visit) -> None:
        """Let a process make one call, and keep account of it."""
        for kind, event in visit.step():
            match kind, event:
                case "changed", (*change,):
                    self._disk.change(*change)
                    if change[0] in ("rename", "create", "unlink") and self._path in change:
                        self._intact = False
                        self._writer = visit if change[-1] == self._path else None
                        if change[0] == "unlink":
                            self._writer = None
                case "restored", _:
                    state = visit.job.state or b""
                    self._restored[state] += 1
                    if self._restored[state] > 1:
                        raise Violation("once")
                case "answered", bytes(answer):
                    self._answers[visit] = answer
                    if self._cohort.server.phase is Phase.UNMASKING:
                        self._answer = answer
                case "suspended", bytes(state):
                    self._states.append(state)
                    if self._writer is visit or self._mutant == "StoredLate":
                        self._latest, self._intact = state, True
                        self._answer = self._answers[visit]

    def _check(self) -> None:
        files = {str(path): path.read_bytes() for path in self._disk.folder.iterdir()}
        if len(files.get(self._path, bytes(32))) != 32:
            raise Violation("whole")
        keys = [key for key in files.values() if len(key) == 32]
        for state in self._restored:
            parts = stored.split(state, ME, self._params)
            for key in keys:
                try:
                    stored.unseal(key, *parts)
                except VaultError:
                    continue
                raise Violation("gone")


def every_call(address: str, folder: Path, params: RoundParams, mutant: str = PLAIN) -> int:
    """Interrupt a client at each call of its first two phases; return the number of times."""
    count = 0
    for kind in ("kill", "pause", "cut", "cut", "cut"):
        for phases in range(2):
            calls, more = 0, True
            while more:
                trial = Trial(address, folder / f"{count}", params, count, mutant)
                more = trial.interrupt(phases, calls, kind)
                calls, count = calls + 1, count + 1
    return count


def trials(
    address: str, folder: Path, params: RoundParams, crashes: int, mutant: str = PLAIN
) -> tuple[int, int, int]:
    """Run trials until so many processes were killed; return trials, crashes, power cuts."""
    count = total = cuts = 0
    while total < crashes:
        trial = Trial(address, folder / f"{count}", params, count, mutant)
        trial.run()
        count, total, cuts = count + 1, total + trial.crashes, cuts + trial.cuts
        shutil.rmtree(trial._disk.folder)
    return count, total, cuts
