"""Doors: what a schedule at any of them takes and gives."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from lying.liar import Liar
from lying.walk import leaves
from oneshot_parties import ram_folder
from secagg import RemoteProtocolError
from secagg.oneshot import HelperJournal, OneShotParams
from secagg.privacy import Budget, Loss, PrivacyLedger
from secagg.protocol.suites import SuiteName

Vector = NDArray[np.float64]
CLIENTS = (11, 22, 33, 44)
VICTIM, LAST = CLIENTS[0], CLIENTS[-1]
LENGTH = 3
PROMISED = 3
"""Smallest number of honest clients that every policy here promises its client."""
BUDGET = Budget(2, 1e-6)
SIGMA = Fraction(1 << 25)
"""Noise of which `BUDGET` has room for two sums with the settings of a first sum."""


@dataclass(frozen=True)
class Private:
    """Private side of a client: what its training gives.

    Attributes
    ----------
    vector : tuple of float
        Update, of `LENGTH` elements.
    weight : int
    loss : float
        A metric, at the doors that have metrics.
    failure : str
        "": none. "raises", "nan", "infinite", "shape", "no weight", "float weight" or "no
        metric": what is wrong with the training.
    """

    vector: tuple[float, ...]
    weight: int = 1
    loss: float = 0.5
    failure: str = ""

    @property
    def trained(self) -> Vector:
        """The vector that the training gives, or one of zeros if it fails."""
        found = np.array(self.vector)
        if self.failure in ("nan", "infinite"):
            found[1] = np.nan if self.failure == "nan" else np.inf
        return found[:-1] if self.failure == "shape" else found

    @property
    def told_weight(self) -> float | None:
        """The weight that the training tells, or None if the training tells none."""
        if self.failure == "no weight":
            return None
        return self.weight + 0.5 if self.failure == "float weight" else self.weight

    @property
    def summed(self) -> Vector:
        """Part in the sum, before a client's own clip."""
        if self.failure:
            return np.zeros(LENGTH)
        return np.array(self.vector) * self.weight


World = Mapping[int, Private]


def plain_world() -> dict[int, Private]:
    """Return a world whose vectors have 16 different sums of subsets."""
    draw = np.random.default_rng(32)
    return {u: Private(tuple(draw.uniform(0.25, 1.0, LENGTH))) for u in CLIENTS}


@dataclass(frozen=True)
class Settings:
    """Settings that a server chooses for a sum; the defaults are those of a first sum."""

    max_weight: int = 10
    clip: float = 8.0
    bits: int = 16
    bound: float = 4.0
    """Bound of the metric."""
    active: bool | None = None
    """None: as the keys of the clients are. False for keyed clients is a downgrade."""
    suite: SuiteName | None = None
    """None: hybrid for keyed clients, who require it in four exchanges; else x25519."""
    sigma: Fraction | None = None
    """Noise of the sum, which is then not opened: it would hide the sum of so few clients."""
    asked: int = 1
    """Times that each client is asked for a vector under the same parameters."""

    def changed(self, **changes: object) -> Settings:
        return replace(self, **changes)  # type: ignore[arg-type]

    def is_active(self, *, keyed: bool) -> bool:
        """Return whether a sum of clients with keys, or without, is active."""
        return keyed if self.active is None else self.active

    def suite_of(self, *, keyed: bool) -> SuiteName:
        """Return the suite of a sum of clients with keys, or without."""
        return self.suite or ("hybrid" if keyed else "x25519")


@dataclass
class Outcome:
    """Outcome of one sum, for the checker.

    Attributes
    ----------
    answers : dict of int to list
        Observables of each client, in the order of its answers: step, "answer" or what else it
        was, bytes, and the steps of its coroutine until then, where it has one.
    views : dict of int to dict
        Leaves of the server's side that a client's training read; none if it did not train.
    trained : dict of int to vector
        Each client's part in a sum, weight included.
    opened : vector, optional
        Sum that was opened. None: none was.
    shown : dict of str to float
        Other numbers that are opened with the sum, such as its weight.
    failed : str
        Class of the error with which the server's run ended, or "".
    masked : list of bytes
        Masked vectors, which the oracle takes statistics of.
    """

    answers: dict[int, list[tuple[object, ...]]] = field(default_factory=dict)
    views: dict[int, dict[str, str]] = field(default_factory=dict)
    trained: dict[int, Vector] = field(default_factory=dict)
    opened: Vector | None = None
    shown: dict[str, float] = field(default_factory=dict)
    failed: str = ""
    masked: dict[int, bytes] = field(default_factory=dict)

    def note(self, client: int, *what: object) -> None:
        self.answers.setdefault(client, []).append(what)

    def take(
        self, client: int, step: object, call: Callable[..., object], *what: object
    ) -> None:
        """Let the server take an answer by `call`, or note the check that rejects it."""
        try:
            call(*what)
        except RemoteProtocolError as error:
            self.note(client, step, "rejected", error.check)


class Training:
    """Training of all clients of a door: it reads the server's side and notes what it read.

    Attributes
    ----------
    world : World
        Private side of the clients.
    outcome : Outcome
        Where to note it; a door sets a new one for each sum.
    scales : bool
        Scale the update by what was read. Off for oracles, where sums must be equal.
    """

    def __init__(self) -> None:
        self.world: World = plain_world()
        self.outcome = Outcome()
        self.scales = True

    def train(self, client: int, server_side: object, own: object = None) -> Private:
        """Return what a client's training gives; raise if it fails.

        Parameters
        ----------
        client : int
        server_side : object
            Everything of the server's side that the training can reach.
        own : object
            Name of the client at this door, which it knows by itself; None: it has none.
        """
        private = self.world[client]
        if self.scales:
            name = repr(own)
            read = {
                place: "(own)" if text == name else text
                for place, text in leaves(server_side).items()
            }
            self.outcome.views.setdefault(client, read)
            digest = hashlib.sha256(repr(sorted(read.items())).encode()).digest()
            factor = 0.5 + int.from_bytes(digest[:6], "big") % 1000 / 2000
            private = replace(private, vector=tuple(factor * x for x in private.vector))
        self.outcome.trained.setdefault(client, private.summed)  # later answers do not count
        if private.failure == "raises":
            raise ValueError("the training failed")
        return private


class Door:
    """A door with its clients, who stay the same from sum to sum.

    Attributes
    ----------
    name : str
    keyed : bool
        True if clients have identities, so that they promise active sums.
    pairs : frozenset of str
        Names of the pairs of worlds that it can have.
    repeats : tuple of str
        Ways in which its transport can deliver messages again: "twice", "before".
    training : Training
    journals : list of HelperJournal
        Journals of the helpers of one-shot sums; none at other doors.
    budgeted : bool
        True if the harness gives the clients ledgers at this door.
    ledgers : dict of int to PrivacyLedger
        Ledgers of the clients; none before `give_ledgers`.
    """

    repeats: tuple[str, ...] = ()
    budgeted = False

    def __init__(
        self, name: str, pairs: frozenset[str], *, keyed: bool, one_shot: bool
    ) -> None:
        self.name = f"{name}, {'keyed' if keyed else 'semi-honest'}"
        self.keyed, self.one_shot, self.pairs = keyed, one_shot, pairs
        self.training = Training()
        self.ledgers: dict[int, PrivacyLedger] = {}
        self._left: dict[int, dict[bytes, OneShotParams]] = {}
        self._stack = ExitStack()
        self._folder = self._stack.enter_context(ram_folder())
        paths = [self._folder / f"{j}" for j in range(4 if keyed else 3)] if one_shot else []
        made = [HelperJournal.create(path, "x25519") for path in paths]
        self.journals = [self._stack.enter_context(journal) for journal in made]

    @property
    def trusted(self) -> frozenset[bytes]:
        """Keys of the helpers."""
        return frozenset(journal.public[1] for journal in self.journals)

    def sum(self, settings: Settings, liar: Liar) -> Outcome:
        """Run one sum; it raises no error of the library."""
        raise NotImplementedError

    def give_ledgers(self) -> None:
        """Give each client a new ledger, and forget what left until now."""
        self.ledgers = {u: PrivacyLedger(None, BUDGET) for u in CLIENTS}
        self._left = {u: {} for u in CLIENTS}

    def take_ledgers(self) -> None:
        """Let the clients have no ledgers."""
        self.ledgers = {}

    def leaves(self, client: int, data: bytes, params: OneShotParams) -> None:
        """Note a masked vector that left a client, for parameters."""
        if client in self.ledgers:
            self._left[client][data] = params

    def misspent(self) -> list[int]:
        """Return the clients whose vectors left beyond the budget, or are not in the ledger.

        The same bytes count once, as they tell nothing new.
        """
        found = []
        for u, ledger in self.ledgers.items():
            loss = Loss.of(*self._left[u].values())
            exact = (ledger.sums, ledger.spent.squares) == (len(self._left[u]), loss.squares)
            if not exact or not BUDGET.allows(loss):
                found.append(u)
        return found

    def close(self) -> None:
        """Give back folders and threads."""
        self._stack.close()
