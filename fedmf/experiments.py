"""FedMF under homomorphic encryption, beside the same training in the clear.

Run ``python -m fedmf.experiments --help``.
"""

from __future__ import annotations

import argparse
import json
from functools import partial
from statistics import fmean

import numpy as np

from fedmf.aggregate import PaillierSum, PlainSum
from fedmf.comparison import Comparison, Cost
from fedmf.data import load
from fedmf.encrypted_items import EncryptedItems, PlainItems, descend
from fedmf.errors import FedMFError, SettingError
from fedmf.history import History
from fedmf.integer_sum import refusals
from fedmf.metrics import rmse
from fedmf.mf import FedMF
from fedmf.phe_sums import PheSample, measure_phe
from fedmf.ratings import Split
from fedmf.schedule import Draw, Schedule
from fedmf.splits import random_split
from fedmf.subset import most_rated
from fedmf.trainer import Trainer
from secagg.paillier import PrivateKey, generate_keypair

__all__ = [
    "BASU",
    "fedmf_under_encryption",
    "items_under_encryption",
    "main",
]

BASU = FedMF(k=20, reg=0.01, rate=0.002, update="paper", min_raters=1)
"""λ and twice the learning rate of Basu's thesis, section 6.7; see `descend` for the twice."""

PHE_USERS, PHE_FLOATS = 3, 100  # of phe's sample


def fedmf_under_encryption(
    split: Split,
    key: PrivateKey,
    *,
    model: FedMF | None = None,
    rounds: int = 36,
    seed: int = 0,
    with_phe: bool = True,
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

    Raises
    ------
    MissingExtra
        If phe is not installed and wanted.
    """
    model = FedMF() if model is None else model
    train = split.train
    plain, encrypted = (
        Trainer(model, aggregation, rounds=rounds, seed=seed).fit(train, split.test).history_
        for aggregation in (PlainSum(), PaillierSum(trust="key holder", key=key))
    )
    bits = key.public_key.bits
    costs = [
        _cost("in the clear", plain),
        _cost(f"PaillierSum, {bits} bits", encrypted),
    ]
    phe: PheSample | None = None
    if with_phe:
        p, q = model.initial(train, Schedule(seed=seed).rng(Draw.START))
        everything = model.trained_items(None, train.n_items)
        steps = (
            model.local_step(q, p[user], *train.of_user(user), everything)
            for user in range(min(PHE_USERS, train.n_users))
        )
        phe = measure_phe(
            [rows.dense()[:PHE_FLOATS].astype(np.float64) for _, rows in steps], bits
        )
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
    meant, found = (
        list(descend(model, train, items, p, rounds=rounds)) for items in (plain, encrypted)
    )
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


def main() -> None:
    """Run an experiment and print what it found."""
    arguments = _parser().parse_args()
    try:
        split = random_split(
            most_rated(load(arguments.data), arguments.items, arguments.users),
            seed=arguments.seed,
        )
        with refusals():
            key = generate_keypair(arguments.bits)
        if arguments.experiment == "fedmf":
            found = fedmf_under_encryption(
                split,
                key,
                rounds=36 if arguments.rounds is None else arguments.rounds,
                seed=arguments.seed,
                with_phe=arguments.phe,
            )
        else:
            found = items_under_encryption(
                split,
                key,
                rounds=30 if arguments.rounds is None else arguments.rounds,
                seed=arguments.seed,
                refresh_every=arguments.refresh_every,
            )
    except FedMFError as error:
        raise SystemExit(f"fedmf: {error}") from None
    print(json.dumps(found.document(), indent=2) if arguments.json else found.table())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m fedmf.experiments",
        description="FedMF under Paillier encryption, beside the same training in the clear.",
    )
    parser.add_argument(
        "experiment",
        choices=("fedmf", "basu"),
        help="fedmf: sums that a key holder apart from the server decrypts, beside phe with a "
        "ciphertext for each float. basu: an encrypted item matrix, from which the server "
        "subtracts what users who share a key have encrypted",
    )
    add = partial(parser.add_argument, metavar="N", type=int)
    parser.add_argument("--data", default="ml-latest-small", help="as of fedmf train")
    add("--items", default=40, help="so many of the most rated (40)")
    add("--users", default=50, help="so many of those who rated most of them (50)")
    add("--rounds", default=None, help="iterations (fedmf: 36, basu: 30)")
    add("--seed", default=0, help="of the split and the start (0)")
    add("--bits", default=3072, help="of the key (3072)")
    add("--refresh-every", default=10, help="basu: iterations that slots have room for (10)")
    parser.add_argument("--no-phe", dest="phe", action="store_false", help="fedmf: without phe")
    parser.add_argument("--json", action="store_true", help="print JSON in place of a table")
    return parser


if __name__ == "__main__":
    main()
