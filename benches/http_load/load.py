"""Settings of a run, and all that its processes compute from them: vectors, keys and faults."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Literal

import msgspec
import numpy as np

from secagg import ClientPolicy, FixedPoint, Registry, RoundParams, graph
from secagg.bench.cases import CLIP, F64, RandomVectors
from secagg.oneshot import OneShotParams, OneShotPolicy
from secagg.protocol.suites import SuiteName
from secagg.session import bind
from secagg.testing import make_identity

Kind = Literal["round", "semi-honest", "active"]
ENCODING = FixedPoint(CLIP, fractional_bits=10, rounding="nearest")
STEPS = ("advertise_keys", "share_keys", "masked_input", "unmasking")
ONE_SHOT_STEPS = ("report", "check", "reserve", "open")
"""Steps of a one-shot sum, of which the members have the first only."""
DROPS = ("fetched", "cut", "sent", "polling")
"""Moments of a drop-out at a step, in their order: with the task in hand, in the middle of its
answer, before the acknowledgement is read, and while waiting for the next task."""
GARBAGE = ("random", "truncated", "extended", "version", "flipped", "shortened", "text")
"""Garbage at a step. The first four are signed by the member, so they reach the session."""
_CORRUPT = 0.05
_MARGIN = 0.05
"""Fraction of clients that may be late, besides those that drop out or send garbage."""
_FEWEST = 0.85
"""Fraction of the clients that turns up at least."""
_COMPLETE = 40
"""Clients up to which the graph is complete."""


def draws(*about: int | str) -> Random:
    """Return draws that are the same in every process."""
    return Random(" ".join(map(str, about)))  # noqa: S311 - of faults, not of keys


@dataclass(frozen=True)
class Fault:
    """Fault of a member: one of `DROPS` or `GARBAGE`, at a step of a round.

    `silent` is True if the member stays away until the next round, so that only a deadline
    ends the wait for it. Otherwise it comes back at once, without its state.
    """

    kind: str
    step: str
    silent: bool


SPENT = Fault("spent", "report", silent=False)
"""The member was in this one-shot sum before, and declines."""


@dataclass(frozen=True, kw_only=True)
class HelperKeys:
    """Public keys of a helper, in hexadecimal, and its port."""

    box: str
    identity: str
    port: int


@dataclass(frozen=True, kw_only=True)
class Load:
    """Settings of a run.

    Attributes
    ----------
    kind : "round", "semi-honest" or "active"
        Rounds on a graph. Or one-shot sums, with three semi-honest helpers, one of which dies,
        or with four active ones, one of which lies.
    clients, processes, length, rounds : int
    suite : "hybrid" or "x25519"
        Suite of the rounds; the helpers of one-shot sums have keys of suite hybrid.
    drop_out, garbage : float
        Fractions of the clients, in each round.
    kills : int
        Number of times that the server is killed.
    silent_every : int
        In one of so many rounds, those that drop out stay away for the whole round.
    deadline : float
        Deadline of each phase, in seconds.
    until : float
        Time after which no round begins, in seconds of the system's clock.
    seed, port : int
    helpers : tuple of HelperKeys
    """

    kind: Kind
    clients: int
    processes: int
    length: int
    rounds: int
    suite: SuiteName
    drop_out: float
    garbage: float
    kills: int
    silent_every: int
    deadline: float
    until: float
    seed: int
    port: int = 0
    helpers: tuple[HelperKeys, ...] = ()

    @staticmethod
    def read(folder: Path) -> Load:
        """Return the settings that `write` wrote into a folder."""
        return msgspec.json.decode((folder / "load.json").read_bytes(), type=Load)

    def write(self, folder: Path) -> None:
        """Write the settings for the other processes."""
        (folder / "load.json").write_bytes(msgspec.json.encode(self))

    @property
    def url(self) -> str:
        """URL of the server."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def lost(self) -> float:
        """Largest fraction of the clients that may be missing at the end of a round."""
        return self.drop_out + self.garbage + _MARGIN

    @cached_property
    def params(self) -> RoundParams:
        """Parameters of all rounds, on the recommended graph."""
        n, k, t = self.clients, None, self.clients // 2 + 1
        if n > _COMPLETE:
            k, t = graph.recommend(n, corrupt=_CORRUPT / _FEWEST, dropout=self.lost)
        return RoundParams(
            n_clients=n,
            threshold=t,
            length=self.length,
            encoding=ENCODING,
            neighbours=k,
            suite=self.suite,
        )

    @property
    def policy(self) -> ClientPolicy:
        """Policy of all members."""
        hybrid = self.suite == "hybrid"
        return ClientPolicy(corrupt=_CORRUPT, dropout=self.lost, require_hybrid=hybrid)

    @cached_property
    def registry(self) -> Registry:
        """Public keys of all members."""
        return Registry({u: make_identity(u).public for u in range(self.clients)})

    def one_shot_params(self, number: int) -> OneShotParams:
        """Return the parameters of a one-shot sum."""
        assert self.kind != "round"
        return OneShotParams(
            n_clients=self.clients,
            length=self.length,
            encoding=ENCODING,
            helpers=tuple(
                (bytes.fromhex(one.box), bytes.fromhex(one.identity)) for one in self.helpers
            ),
            threshold=2,
            min_clients=self.min_survivors,
            security=self.kind,
            session=bind(b"load %d" % number, self.message(number)),
        )

    def message(self, number: int) -> bytes:
        """Return the server's message to the members of a round: its number."""
        return b"%d" % number

    @property
    def min_survivors(self) -> int:
        """Smallest number of clients in a sum."""
        if self.kind == "round":
            return self.params.min_survivors
        return self.clients // 2 + 1

    @property
    def steps(self) -> tuple[str, ...]:
        """Steps of a sum."""
        if self.kind == "round":
            return STEPS
        return ONE_SHOT_STEPS if self.kind == "active" else ("report", "check", "open")

    @property
    def one_shot_policy(self) -> OneShotPolicy | None:
        """Policy of all members for one-shot sums."""
        if self.kind == "round":
            return None
        keys = frozenset(bytes.fromhex(one.identity) for one in self.helpers)
        return OneShotPolicy(helpers=keys, require_active=self.kind == "active")

    def vector(self, number: int, u: int) -> F64:
        """Return the vector of a client in a round."""
        seed = self.seed * self.rounds + number
        return RandomVectors(self.clients, self.length, CLIP, seed)[u]

    def sum(self, number: int, survivors: tuple[int, ...]) -> np.ndarray:
        """Return the plain sum of the survivors' encoded vectors."""
        total = np.zeros(self.length, dtype=np.int64)
        for u in survivors:
            total += ENCODING.encode_integers(self.vector(number, u))[0]
        return total

    def fault(self, number: int, u: int) -> Fault | None:
        """Return the fault of a client in the first attempt at a round."""
        rng = draws(self.seed, number, u)
        steps = STEPS if self.kind == "round" else ONE_SHOT_STEPS[:1]
        x, step = rng.random(), rng.choice(steps)
        if x < self.drop_out:
            kind = rng.choice(DROPS)
            awaited = step != steps[-1] or kind in ("fetched", "cut")
            silent = number % self.silent_every == self.silent_every - 1
            return Fault(kind, step, silent and awaited)
        if x < self.drop_out + self.garbage:
            return Fault(rng.choice(GARBAGE), step, silent=False)
        return None

    def kill(self, index: int) -> tuple[int, int, int]:
        """Return when the server is killed: round, index of the step, and answers to it.

        All kills come early, so that most rounds are in one life of the process, and the growth
        of its memory shows.
        """
        rng, steps = draws(self.seed, "kill", index), self.steps
        number = 1 + index * max(1, self.rounds // 12)
        step, answers = rng.randrange(len(steps)), rng.randrange(1, max(2, self.clients // 2))
        # helpers are few, so their steps are over at once
        return number, step, 0 if self.kind != "round" and step else answers
