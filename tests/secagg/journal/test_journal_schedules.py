"""Rounds in which anything is lost, late, repeated, out of order, or killed."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from pathlib import Path

import pytest

from effort import scaled
from harness import TWO, Cohort, ReplayedEntropy, make_params
from secagg import (
    Integers,
    Journal,
    LocalProtocolError,
    Phase,
    RemoteProtocolError,
    RoundParams,
    Server,
    TooFewSurvivors,
)

EVENTS = ("kill", "twice", "again later", "drop", "delay")
ENDED = (Phase.FINISHED, Phase.FAILED)
KINDS = [
    {},
    {"modulus": 2_147_483_647},
    {"modulus": (1 << 61) - 1, "max_weight": 7},
    {"modulus_bits": 19, "encoding": Integers(max=99), "max_weight": 3},
    {"security": "active"},
]


def random_params(rng: random.Random) -> RoundParams:
    n, kind = rng.randint(2, 9), rng.choice(KINDS)
    neighbours = (
        rng.choice([None, *range(2, n, 2)]) if n > 2 and "security" not in kind else None
    )
    if neighbours is not None:
        least, most = 2, neighbours
    else:
        least, most = (2 * n // 3 if "security" in kind else n // 2) + 1, n
    threshold = rng.randint(least, most)
    return make_params(n, threshold, neighbours=neighbours, allow_two_clients=n == 2, **kind)


class Schedule:
    """One round, its network and its faults, all from one seed."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.rng = random.Random(seed)
        self.params = random_params(self.rng)
        ids = self.rng.sample([*range(50), (1 << 64) - 1], self.params.n_clients)
        policy = TWO if self.params.n_clients == 2 else None
        self.cohort = Cohort(self.params, ids, policy, seed)
        self.folder = folder
        self.lives = 0
        self.journal = Journal.create(folder / "0", self.params)
        entropy = ReplayedEntropy((seed, "server"))
        self.server = Server(
            self.params, registry=self.cohort.registry, journal=self.journal, entropy=entropy
        )
        rare, often = [0, 0, 0.02, 0.1], [0, 0.05, 0.1, 0.3]
        self.chance = {
            name: self.rng.choice(often if name in ("kill", "twice") else rare)
            for name in EVENTS
        }
        self.present = set(ids)
        self.network: list[tuple[int, bytes]] = []
        self.late: list[tuple[int, bytes]] = []
        self.made: dict[int, tuple[int, bytes]] = {}
        self.accepted: list[set[int]] = []
        self.events: Counter[str] = Counter()

    def happens(self, what: str) -> bool:
        happened = self.rng.random() < self.chance[what]
        self.events[what] += happened
        return happened

    def run(self) -> None:
        """A few phases, each with a bounded number of steps; nothing waits."""
        inbox = dict.fromkeys(self.cohort.ids, b"")
        for phase in range(len(self.cohort.phases())):
            self.accepted.append(set())
            self.clients_answer(phase, inbox)
            self.rng.shuffle(self.network)
            for message in self.network:
                if self.happens("delay"):
                    self.late.append(message)
                else:
                    self.arrive(phase, message)
            self.network, self.late = self.late, []
            try:
                inbox = self.server.close_round()
            except TooFewSurvivors:
                self.restart()
                return
            if self.happens("kill"):  # before any answer was sent
                self.restart()
                inbox = self.server.outbox

    def clients_answer(self, phase: int, inbox: dict[int, bytes]) -> None:
        for u in sorted(inbox.keys() & self.present):
            if self.happens("drop"):
                self.present.discard(u)
                continue
            data = self.cohort.answer(u, inbox[u])
            self.made[u] = (phase, data)
            self.network.append((u, data))

    def arrive(self, phase: int, message: tuple[int, bytes]) -> None:
        """The network delivers a message, some twice, and the server may die after it."""
        u, data = message
        due = self.made[u] == (phase, data)
        for _ in range(1 + self.happens("twice")):
            try:
                self.server.receive(u, data)
            except RemoteProtocolError as error:
                assert error.sender == u
                assert not due
                self.events["rejected"] += 1
        if due:
            self.accepted[phase].add(u)
        if self.happens("again later"):
            self.late.append(message)
        if self.happens("kill"):
            self.restart()
            # it sends its answers again, and clients that have answered repeat their messages
            for v in self.rng.sample(sorted(self.accepted[phase]), len(self.accepted[phase])):
                self.server.receive(v, self.made[v][1])

    def restart(self) -> None:
        """Kill −9: the files on the disk at this moment, opened by another server."""
        self.lives += 1
        before = (self.server.phase, self.server.waiting, self.server.outbox)
        image = self.folder / str(self.lives)
        shutil.copyfile(self.journal.path, image)
        self.journal.close()
        self.journal = Journal.open(image, self.params)
        self.server = Server.resume(self.journal, registry=self.cohort.registry)
        assert before == (self.server.phase, self.server.waiting, self.server.outbox)

    def check(self) -> None:
        """The exact sum of those whose input was accepted, or an abort that was due."""
        assert self.server.phase in ENDED
        if self.server.phase is Phase.FAILED:
            counts = [len(accepted) for accepted in self.accepted]
            few = counts[-1] < self.params.min_survivors
            assert few or self.params.neighbours is not None
            with pytest.raises(LocalProtocolError):
                self.server.result()
            return
        result, u3 = self.server.result(), sorted(self.accepted[2])
        assert list(result.survivors) == u3
        assert result.integers.tolist() == self.cohort.expected(u3)
        assert result.disputes == ()
        if self.params.max_weight is not None:
            assert result.weight == sum(self.cohort.weights[u] for u in u3)


def run(seed: int, folder: Path) -> Schedule:
    folder.mkdir()
    schedule = Schedule(seed, folder)
    try:
        schedule.run()
        schedule.check()
    except BaseException as error:
        error.add_note(f"schedule {seed} of {schedule.params}")
        raise
    finally:
        schedule.journal.close()
        shutil.rmtree(folder)
    return schedule


@pytest.mark.parametrize("full", [200, pytest.param(500, marks=pytest.mark.large)])
def test_check28_random_schedules_give_the_sum_or_an_abort(ram_path: Path, full: int) -> None:
    """Random schedules give the exact sum or a typed abort."""
    events: Counter[str] = Counter()
    rounds = scaled(full)
    for seed in range(rounds):
        schedule = run(seed, ram_path / str(seed))
        events += schedule.events
        events[schedule.server.phase] += 1
    # else the schedules would test little
    rarest = min(events[name] for name in (*EVENTS, "rejected", *ENDED))
    assert rarest > rounds // 10, events
