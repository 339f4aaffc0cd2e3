"""FedMF under homomorphic encryption, beside the same training in the clear."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from benches.papers.encrypted_items import EncryptedItems, Items, PlainItems, descend
from fedmf.aggregate import Aggregation, PaillierSum, PlainSum
from fedmf.aggregate.aggregation import Progress, Stopwatch
from fedmf.data import Ratings, Split
from fedmf.errors import MissingExtra, SettingError
from fedmf.models import Factors, FedMF
from fedmf.training import History, RoundRecord, Schedule, Trainer, rmse
from fedmf.training.schedule import Draw
from secagg.bench.table import Column, Table, Value, as_text, duration, volume
from secagg.bench.timing import machine
from secagg.paillier import PrivateKey

__all__ = [
    "BASU",
    "Comparison",
    "Cost",
    "PheSample",
    "fedmf_under_encryption",
    "items_under_encryption",
    "measure_phe",
]

BASU = FedMF(k=20, reg=0.01, rate=0.002, update="paper", min_raters=1)
"""λ and twice the learning rate of Basu's thesis, section 6.7; see `descend` for the twice."""

PHE_USERS, PHE_FLOATS = 3, 100  # of phe's sample
CLEAR, ENCRYPTED = "training in the clear", "training under encryption"
COLUMNS = (
    Column(""),
    Column("a user", duration),
    Column("server", duration),
    Column("key holder", duration),
    Column("everybody", duration),
    Column("a user sends", volume),
)


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Average costs of an iteration, in seconds and bytes."""

    how: str
    user: float
    server: float
    key_holder: float
    everybody: float  # all users, the server and the key holder, one after the other
    bytes_up: float | None = None
    scaled: bool = False  # from a sample

    def cells(self) -> tuple[str | Value | None, ...]:
        """Return the line of the table."""
        amounts = (self.user, self.server, self.key_holder, self.everybody, self.bytes_up)
        return (self.how, *(Value(x, scaled=self.scaled) if x else None for x in amounts))


@dataclass(frozen=True, kw_only=True)
class PheSample:
    """Measured costs of phe, in seconds and bytes per float."""

    users: int
    floats: int
    encrypting: float
    adding: float  # for each user after the first
    decrypting: float
    bytes_up: float
    error: float  # the largest difference between a sum of phe's and that of the floats

    def cost(self, users: int, elements: int) -> Cost:
        """Scale up to all users and elements."""
        user = self.encrypting * elements
        server = self.adding * elements * (users - 1)
        holder = self.decrypting * elements
        return Cost(
            how="phe, a ciphertext per float",
            user=user,
            server=server,
            key_holder=holder,
            everybody=users * user + server + holder,
            bytes_up=self.bytes_up * elements,
            scaled=True,
        )


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A training under encryption beside the same in the clear."""

    data: str
    users: int
    items: int
    factors: int
    rounds: int
    bits: int
    rmse_plain: float
    rmse_encrypted: float
    same_integers: bool  # in all sums, or all item matrices
    refreshes: int | None = None  # of the encrypted matrix, if there is one
    costs: tuple[Cost, ...]
    phe: PheSample | None = None

    @property
    def difference(self) -> float:
        """The change of the error by encryption."""
        return abs(self.rmse_encrypted - self.rmse_plain)

    def document(self) -> dict[str, object]:
        """Return the comparison and the machine, for `secagg.bench.table.as_json`."""
        return asdict(self) | {"difference": self.difference, "machine": machine()}

    def table(self) -> str:
        """Return the comparison as lines for people."""
        used = machine()
        anew = "" if self.refreshes is None else f", encrypted anew {self.refreshes}×"
        same = "the same" if self.same_integers else "DIFFERENT"
        notes = [
            f"all of it per iteration; {used['cpu']}, {used['gmp']}, kernels {used['tier']}"
        ]
        if self.phe is not None:
            notes.append(
                f"~ scaled from a sum of {self.phe.floats} floats each of {self.phe.users} "
                f"users, which was right to {self.phe.error:.0e}"
            )
        rows = [cost.cells() for cost in self.costs]
        return (
            f"{self.data}: {self.users} users, {self.items} items, k = {self.factors}, "
            f"{self.rounds} iterations{anew}\n"
            f"test RMSE in the clear {self.rmse_plain:.12f}, encrypted "
            f"{self.rmse_encrypted:.12f}, difference {self.difference:.1e}; the integers are "
            f"{same}\n\n{as_text(Table(columns=COLUMNS, rows=rows, notes=notes))}"
        )


def _unseen(what: str, done: int, of: int) -> None:
    """Show nothing of the progress."""


def fedmf_under_encryption(
    split: Split,
    key: PrivateKey,
    *,
    model: FedMF | None = None,
    rounds: int = 36,
    seed: int = 0,
    with_phe: bool = True,
    progress: Progress = _unseen,
) -> Comparison:
    """Train FedMF with `PlainSum` and with `PaillierSum`, a key holder decrypting.

    Everyone takes part in every round. With phe, the cost of a ciphertext for each float is
    measured on the first 100 elements of three users' first gradients, and scaled up. Ctrl-C
    raises KeyboardInterrupt at once: half a training compares with nothing.
    """
    model = FedMF() if model is None else model
    train = split.train
    bits = key.public_key.bits
    phe = _phe_sample(model, train, seed, bits, progress) if with_phe else None

    def trained(what: str, aggregation: Aggregation) -> History:
        def over(record: RoundRecord) -> None:
            progress(what, record.round, rounds)

        progress(what, 0, rounds)
        trainer = Trainer(model, aggregation, rounds=rounds, seed=seed, callbacks=[over])
        history = trainer.fit(train, split.test).history_
        if history.interrupted:
            raise KeyboardInterrupt
        return history

    plain = trained(CLEAR, PlainSum())
    encrypted = trained(ENCRYPTED, PaillierSum(trust="key holder", key=key))
    costs = [
        _cost("in the clear", plain),
        _cost(f"PaillierSum, {bits} bits", encrypted),
    ]
    if phe is not None:
        costs.append(phe.cost(train.n_users, train.n_items * model.k))
    return Comparison(
        data=train.name,
        users=train.n_users,
        items=train.n_items,
        factors=model.k,
        rounds=rounds,
        bits=bits,
        rmse_plain=_test_rmse(plain),
        rmse_encrypted=_test_rmse(encrypted),
        same_integers=all(
            (one.digest, one.count_digest) == (other.digest, other.count_digest)
            for one, other in zip(plain, encrypted, strict=True)
        ),
        costs=tuple(costs),
        phe=phe,
    )


def items_under_encryption(
    split: Split,
    key: PrivateKey,
    *,
    model: FedMF = BASU,
    rounds: int = 30,
    seed: int = 0,
    refresh_every: int = 10,
    progress: Progress = _unseen,
) -> Comparison:
    """Train as in Basu's thesis: the server subtracts from an encrypted item matrix.

    The users share the key; after `refresh_every` rounds they encrypt the matrix anew.
    """
    if rounds < 1 or refresh_every < 1:
        raise SettingError(
            f"rounds = {rounds} and refresh_every = {refresh_every} must be at least 1"
        )
    train, test = split.train, split.test
    p, q = model.initial(train, Schedule(seed=seed).rng(Draw.START))
    start, users = q.reshape(-1), train.n_users
    plain = PlainItems(start)
    encrypted = EncryptedItems(start, key, users=users, refresh_every=refresh_every)

    def trained(what: str, items: Items) -> list[Factors]:
        progress(what, 0, rounds)
        after = []
        for factors in descend(model, train, items, p, rounds=rounds):
            after.append(factors)
            progress(what, len(after), rounds)
        return after

    meant, found = trained(CLEAR, plain), trained(ENCRYPTED, encrypted)
    errors = [
        rmse(test.values, last.predict(test.users, test.items))
        for last in (meant[-1], found[-1])
    ]
    of_users, of_server = encrypted.of_users.seconds, encrypted.of_server.seconds
    cost = Cost(
        how=f"encrypted items, {key.public_key.bits} bits",
        user=of_users / rounds / users,
        server=of_server / rounds,
        key_holder=0.0,
        everybody=(of_users + of_server) / rounds,
    )
    return Comparison(
        data=train.name,
        users=users,
        items=train.n_items,
        factors=model.k,
        rounds=rounds,
        bits=key.public_key.bits,
        rmse_plain=errors[0],
        rmse_encrypted=errors[1],
        same_integers=all(
            np.array_equal(one.item_factors, other.item_factors)
            for one, other in zip(meant, found, strict=True)
        ),
        refreshes=encrypted.refreshes,
        costs=(cost,),
    )


def _cost(how: str, history: History) -> Cost:
    """Average the rounds in which the raters were not counted, besides."""
    rounds = [one for one in history if one.count_digest is None] or history.rounds
    client = fmean(one.client_seconds for one in rounds)
    server = fmean(one.server_seconds for one in rounds)
    holder = fmean(one.key_holder_seconds for one in rounds)
    return Cost(
        how=how,
        user=client / rounds[0].cohort,
        server=server,
        key_holder=holder,
        everybody=client + server + holder,
        bytes_up=fmean(one.bytes_up for one in rounds),
    )


def _phe_sample(
    model: FedMF, train: Ratings, seed: int, bits: int, progress: Progress
) -> PheSample:
    progress("measuring phe", 0, 1)
    p, q = model.initial(train, Schedule(seed=seed).rng(Draw.START))
    everything = model.trained_items(None, train.n_items)
    steps = (
        model.local_step(q, p[user], *train.of_user(user), everything)
        for user in range(min(PHE_USERS, train.n_users))
    )
    return measure_phe(
        [rows.dense()[:PHE_FLOATS].astype(np.float64) for _, rows in steps], bits
    )


def measure_phe(vectors: Sequence[NDArray[np.float64]], bits: int) -> PheSample:
    """Sum vectors under a key holder's key, as FedMF was first secured."""
    try:
        from secagg.bench import peers
    except ModuleNotFoundError as error:
        if str(error.name).partition(".")[0] != "phe":
            raise
        raise MissingExtra(
            "measuring phe needs phe: pip install 'secagg[bench]', or leave it out "
            "(--no-phe, with_phe=False)"
        ) from None
    public, private = peers.generate(bits)
    user, server = peers.FloatParty(public), peers.FloatParty(public)
    holder = peers.FloatHolder(public, private)
    length = vectors[0].size
    encrypting, adding, decrypting = Stopwatch(), Stopwatch(), Stopwatch()
    sent = 0
    for number, vector in enumerate(vectors):
        with encrypting.running():
            message = user.encrypt(vector)
        sent += len(message)
        with adding.running(for_each_of=min(number, 1)):  # the first is only kept
            server.add(message, length)
    with decrypting.running():
        total = holder.decrypt(server.total(), length)
    return PheSample(
        users=len(vectors),
        floats=length,
        encrypting=encrypting.seconds / (len(vectors) * length),
        adding=adding.seconds / ((len(vectors) - 1) * length),
        decrypting=decrypting.seconds / length,
        bytes_up=sent / (len(vectors) * length),
        error=float(np.abs(total.sum - np.add.reduce(vectors)).max()),
    )


def _test_rmse(history: History) -> float:
    error = history.last.test_rmse
    if error is None:
        raise SettingError("there are no test ratings to compare by: split the ratings")
    return error
