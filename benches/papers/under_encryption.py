"""Comparison of FedMF under homomorphic encryption with the same training in the clear."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean

import numpy as np

from benches.papers.encrypted_items import EncryptedItems, Items, PlainItems, descend
from benches.papers.training import errors_after
from fedmf.aggregate import Aggregation, PaillierSum, PlainSum
from fedmf.aggregate.aggregation import Progress
from fedmf.data import Split
from fedmf.errors import MissingExtra, SettingError
from fedmf.models import Factors, FedMF
from fedmf.training import History, Schedule, Trainer, rmse
from fedmf.training.schedule import Draw
from secagg.bench import cases, keyed
from secagg.kit.table import Column, Table, Value, as_text, duration, volume
from secagg.kit.timing import machine
from secagg.paillier import PrivateKey

BASU = FedMF(k=20, reg=0.01, rate=0.002, update="paper", min_raters=1)
"""Settings of Basu's thesis, section 6.7; `descend` explains why the rate is doubled."""

PHE_SECONDS = 5.0  # budget of each party in phe's sample
CLEAR, ENCRYPTED = "training in the clear", "training under encryption"
TIMES = ("a user", "server", "key holder", "everybody")
TIMED = (Column(head, duration) for head in TIMES)
COLUMNS = (Column(""), *TIMED, Column("a user sends", volume))


@dataclass(frozen=True)
class Cost:
    """Mean costs of an iteration, in seconds and bytes."""

    how: str
    user: float
    server: float
    key_holder: float
    everybody: float  # all users, the server and the key holder, one after the other
    bytes_up: float | None = None
    scaled: bool = False  # from a sample


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Results of a training under encryption, and of the same training in the clear."""

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
        """Absolute difference of the two RMSE."""
        return abs(self.rmse_encrypted - self.rmse_plain)

    def document(self) -> dict[str, object]:
        """Return the comparison and the machine, for `secagg.kit.table.as_json`."""
        return vars(self) | {"difference": self.difference, "machine": machine()}

    def table(self) -> str:
        """Return the comparison as text, to print."""
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
        rows = list[tuple[str | Value | None, ...]]()
        for one in self.costs:
            amounts = (one.user, one.server, one.key_holder, one.everybody, one.bytes_up)
            cells = (Value(x, scaled=one.scaled) if x else None for x in amounts)
            rows.append((one.how, *cells))
        return (
            f"{self.data}: {self.users} users, {self.items} items, k = {self.factors}, "
            f"{self.rounds} iterations{again}\n"
            f"test RMSE in the clear {self.rmse_plain:.12f}, encrypted "
            f"{self.rmse_encrypted:.12f}, difference {self.difference:.1e}; the integers are "
            f"{same}\n\n{as_text(Table(columns=COLUMNS, rows=rows, notes=notes))}"
        )


def fedmf_under_encryption(
    split: Split,
    key: PrivateKey,
    *,
    model: FedMF | None = None,
    rounds: int = 36,
    seed: int = 0,
    with_phe: bool = True,
    progress: Progress = lambda what, done, of: None,
) -> Comparison:
    """Train FedMF with `PlainSum`, and with `PaillierSum` under a key holder's key.

    All users take part in every round. With `with_phe` the library phe is timed on a sample
    with a ciphertext per float, and the time is scaled up.
    """
    model = FedMF() if model is None else model
    train, bits, users = split.train, key.public_key.bits, split.train.n_users
    phe = None
    if with_phe:
        progress("measuring phe", 0, 1)
        phe = measure_phe(users, train.n_items * model.k, bits)

    def trained(what: str, aggregation: Aggregation) -> History:
        progress(what, 0, rounds)
        callbacks = [lambda record: progress(what, record.round, rounds)]
        trainer = Trainer(model, aggregation, rounds=rounds, seed=seed, callbacks=callbacks)
        history = trainer.fit(train, split.test).history_
        if history.interrupted:
            raise KeyboardInterrupt  # an unfinished training cannot be compared
        return history

    plain = trained(CLEAR, PlainSum())
    encrypted = trained(ENCRYPTED, PaillierSum(trust="key holder", key=key))
    how = f"PaillierSum, {bits} bits"
    costs = [_of_rounds("in the clear", plain), _of_rounds(how, encrypted)]
    if phe is not None:
        user, server = phe.client.seconds.value, phe.server.seconds.value
        holder = phe.holder.seconds.value if phe.holder else 0.0
        whole, sent = users * user + server + holder, phe.bytes_up.value
        how = "phe, a ciphertext per float"
        costs.append(Cost(how, user, server, holder, whole, sent, scaled=not phe.measured))
    return Comparison(
        data=train.name,
        users=users,
        items=train.n_items,
        factors=model.k,
        rounds=rounds,
        bits=bits,
        rmse_plain=errors_after(plain)["RMSE"],
        rmse_encrypted=errors_after(encrypted)["RMSE"],
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
    progress: Progress = lambda what, done, of: None,
) -> Comparison:
    """Train as in Basu's thesis, with `PlainItems` and with `EncryptedItems`."""
    if rounds < 1 or refresh_every < 1:
        raise SettingError(
            f"rounds = {rounds} and refresh_every = {refresh_every} must be at least 1"
        )
    train, test, bits = split.train, split.test, key.public_key.bits
    p, q = model.initial(train, Schedule(seed=seed).rng(Draw.START))
    start, users = q.reshape(-1), train.n_users
    encrypted = EncryptedItems(start, key, users=users, refresh_every=refresh_every)

    def trained(what: str, items: Items) -> tuple[list[Factors], float]:
        progress(what, 0, rounds)
        after = list[Factors]()
        for factors in descend(model, train, items, p, rounds=rounds):
            after.append(factors)
            progress(what, len(after), rounds)
        return after, rmse(test.values, after[-1].predict(test.users, test.items))

    meant, plain = trained(CLEAR, PlainItems(start))
    found, error = trained(ENCRYPTED, encrypted)
    of_users, server = encrypted.of_users.seconds / rounds, encrypted.of_server.seconds / rounds
    how = f"encrypted items, {bits} bits"
    cost = Cost(how, of_users / users, server, 0.0, of_users + server)
    return Comparison(
        data=train.name,
        users=users,
        items=train.n_items,
        factors=model.k,
        rounds=rounds,
        bits=bits,
        rmse_plain=plain,
        rmse_encrypted=error,
        same_integers=all(
            np.array_equal(one.item_factors, other.item_factors)
            for one, other in zip(meant, found, strict=True)
        ),
        refreshes=encrypted.refreshes,
        costs=(cost,),
    )


def _of_rounds(how: str, history: History) -> Cost:
    """Return the mean cost of the rounds without a count of raters, or else of all rounds."""
    rounds = [one for one in history if one.count_digest is None] or history.rounds
    names = ("client_seconds", "server_seconds", "key_holder_seconds", "bytes_up")
    users, server, holder, sent = (fmean(getattr(r, name) for r in rounds) for name in names)
    return Cost(how, users / rounds[0].cohort, server, holder, users + server + holder, sent)


def measure_phe(users: int, elements: int, bits: int) -> cases.Row:
    """Time sums with the library phe under a key holder's key, with a ciphertext per float."""
    try:
        from secagg.bench import peers
    except ModuleNotFoundError as error:
        if str(error.name).partition(".")[0] != "phe":
            raise
        raise MissingExtra(
            "phe is not installed: pip install phe, or leave it out (--no-phe, with_phe=False)"
        ) from None
    case = cases.Case(max(users, 3), elements)
    return keyed.measure(peers.floats(*peers.generate(bits)), case, PHE_SECONDS)
