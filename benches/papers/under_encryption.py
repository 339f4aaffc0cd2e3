"""FedMF under homomorphic encryption, beside the same training in the clear."""

from __future__ import annotations

from statistics import fmean

import numpy as np

from benches.papers.comparison import Comparison, Cost
from benches.papers.encrypted_items import EncryptedItems, Items, PlainItems, descend
from benches.papers.phe_sums import PheSample, measure_phe
from fedmf.aggregate import Aggregation, PaillierSum, PlainSum
from fedmf.aggregate.aggregation import Progress
from fedmf.data import Ratings, Split
from fedmf.errors import SettingError
from fedmf.models import Factors, FedMF
from fedmf.training import History, RoundRecord, Schedule, Trainer, rmse
from fedmf.training.schedule import Draw
from secagg.paillier import PrivateKey

__all__ = ["BASU", "fedmf_under_encryption", "items_under_encryption"]

BASU = FedMF(k=20, reg=0.01, rate=0.002, update="paper", min_raters=1)
"""λ and twice the learning rate of Basu's thesis, section 6.7; see `descend` for the twice."""

PHE_USERS, PHE_FLOATS = 3, 100  # of phe's sample
CLEAR, ENCRYPTED = "training in the clear", "training under encryption"


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

    Parameters
    ----------
    split
        Everyone takes part in every round.
    key
        The key holder's.
    model
        Default: FedMF().
    rounds, seed
        As of `Trainer`.
    with_phe
        Whether to measure, too, what phe would take with a ciphertext for each float: on the
        first 100 elements of three users' first gradients, scaled to all users and elements.
    progress
        Called with what is being done, and how many rounds of how many are over.

    Raises
    ------
    MissingExtra
        If phe is not installed and wanted; before any training.
    KeyboardInterrupt
        As soon as it comes: half a training compares with nothing.
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
        costs.append(_phe_cost(phe, train.n_users, train.n_items * model.k))
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

    Parameters
    ----------
    split
        Everyone takes part in every round.
    key
        The users', which they share.
    model, rounds
        As of `descend`.
    seed
        Of the starting factors.
    refresh_every
        As of `EncryptedItems`.
    progress
        As of `fedmf_under_encryption`.

    Raises
    ------
    SettingError
        If a setting is out of range.
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


def _phe_cost(sample: PheSample, users: int, elements: int) -> Cost:
    user = sample.encrypting * elements
    server = sample.adding * elements * (users - 1)
    holder = sample.decrypting * elements
    return Cost(
        how="phe, a ciphertext per float",
        user=user,
        server=server,
        key_holder=holder,
        everybody=users * user + server + holder,
        bytes_up=sample.bytes_up * elements,
        scaled=True,
    )


def _test_rmse(history: History) -> float:
    error = history.last.test_rmse
    if error is None:
        raise SettingError("there are no test ratings to compare by: split the ratings")
    return error
