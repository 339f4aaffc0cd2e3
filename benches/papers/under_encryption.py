"""FedMF under homomorphic encryption, beside the same training in the clear."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean

import numpy as np

from benches.papers.encrypted_items import EncryptedItems, Items, PlainItems, descend
from fedmf.aggregate import Aggregation, PaillierSum, PlainSum
from fedmf.aggregate.aggregation import Progress
from fedmf.data import Split
from fedmf.errors import MissingExtra, SettingError
from fedmf.models import Factors, FedMF
from fedmf.training import History, Schedule, Trainer, rmse
from fedmf.training.schedule import Draw
from secagg.bench import cases, keyed
from secagg.bench.table import Column, Table, Value, as_text, duration, volume
from secagg.bench.timing import machine
from secagg.paillier import PrivateKey

BASU = FedMF(k=20, reg=0.01, rate=0.002, update="paper", min_raters=1)
"""λ and twice the learning rate of Basu's thesis, section 6.7; see `descend` for the twice."""

PHE_SECONDS = 5.0  # for each party of phe's sample
PHE_USERS = 3  # at least
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
    phe: cases.Row | None = None

    @property
    def difference(self) -> float:
        """The change of the error by encryption."""
        return abs(self.rmse_encrypted - self.rmse_plain)

    def document(self) -> dict[str, object]:
        """Return the comparison and the machine, for `secagg.bench.table.as_json`."""
        return vars(self) | {"difference": self.difference, "machine": machine()}

    def table(self) -> str:
        """Return the comparison as lines for people."""
        used = machine()
        again = "" if self.refreshes is None else f", encrypted again {self.refreshes}×"
        same = "the same" if self.same_integers else "DIFFERENT"
        notes = [
            f"all of it per iteration; {used['cpu']}, {used['gmp']}, kernels {used['tier']}"
        ]
        if self.phe is not None and not self.phe.measured:
            sample = self.phe.client.seconds
            notes.append(
                f"~ scaled from a sum of {sample.done} of {sample.of} floats, which was right "
                f"to {self.phe.error:.0e}"
            )
        rows = [cost.cells() for cost in self.costs]
        return (
            f"{self.data}: {self.users} users, {self.items} items, k = {self.factors}, "
            f"{self.rounds} iterations{again}\n"
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
    measured on a sample, and scaled up. Ctrl-C raises KeyboardInterrupt at once.
    """
    model = FedMF() if model is None else model
    train, bits = split.train, key.public_key.bits
    phe = None
    if with_phe:
        progress("measuring phe", 0, 1)
        phe = measure_phe(train.n_users, train.n_items * model.k, bits)

    def trained(what: str, aggregation: Aggregation) -> History:
        progress(what, 0, rounds)
        callbacks = [lambda record: progress(what, record.round, rounds)]
        trainer = Trainer(model, aggregation, rounds=rounds, seed=seed, callbacks=callbacks)
        history = trainer.fit(train, split.test).history_
        if history.interrupted:
            raise KeyboardInterrupt  # half a training compares with nothing
        return history

    plain = trained(CLEAR, PlainSum())
    encrypted = trained(ENCRYPTED, PaillierSum(trust="key holder", key=key))
    costs = [_cost("in the clear", plain), _cost(f"PaillierSum, {bits} bits", encrypted)]
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
        costs=(*costs, *([] if phe is None else [_phe_cost(phe, train.n_users)])),
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

    The users share the key; after `refresh_every` rounds they encrypt the matrix again.
    """
    if rounds < 1 or refresh_every < 1:
        raise SettingError(
            f"rounds = {rounds} and refresh_every = {refresh_every} must be at least 1"
        )
    train, test = split.train, split.test
    p, q = model.initial(train, Schedule(seed=seed).rng(Draw.START))
    start, users = q.reshape(-1), train.n_users
    encrypted = EncryptedItems(start, key, users=users, refresh_every=refresh_every)

    def trained(what: str, items: Items) -> list[Factors]:
        progress(what, 0, rounds)
        after = []
        for factors in descend(model, train, items, p, rounds=rounds):
            after.append(factors)
            progress(what, len(after), rounds)
        return after

    meant, found = trained(CLEAR, PlainItems(start)), trained(ENCRYPTED, encrypted)
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


def measure_phe(users: int, elements: int, bits: int) -> cases.Row:
    """Measure sums under a key holder's key by phe, as FedMF was first secured."""
    try:
        from secagg.bench import peers
    except ModuleNotFoundError as error:
        if str(error.name).partition(".")[0] != "phe":
            raise
        raise MissingExtra(
            "measuring phe needs phe: pip install 'secagg[bench]', or leave it out "
            "(--no-phe, with_phe=False)"
        ) from None
    case = cases.Case(max(users, PHE_USERS), elements)
    return keyed.measure(peers.floats(*peers.generate(bits)), case, PHE_SECONDS)


def _phe_cost(row: cases.Row, users: int) -> Cost:
    user, server = row.client.seconds.value, row.server.seconds.value
    holder = row.holder.seconds.value if row.holder else 0.0
    return Cost(
        how="phe, a ciphertext per float",
        user=user,
        server=server,
        key_holder=holder,
        everybody=users * user + server + holder,
        bytes_up=row.bytes_up.value,
        scaled=not row.measured,
    )


def _test_rmse(history: History) -> float:
    error = history.last.test_rmse
    if error is None:
        raise SettingError("there are no test ratings to compare by: split the ratings")
    return error
