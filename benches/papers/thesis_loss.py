"""Figures 6.9 to 6.13 of Basu's thesis (2020): loss by epochs, and time under encryption."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benches.papers.curves import draw_curves, numbered
from benches.papers.encrypted_items import EncryptedItems, Items, PlainItems, descend
from benches.papers.subset import most_rated
from benches.papers.table import Panel, Picture, Results, Row, Run, Table, Target
from benches.papers.under_encryption import BASU
from fedmf.data import Ratings, Split, load
from fedmf.data.splits import leave_last
from fedmf.models import Factors
from fedmf.training import Schedule, rmse
from fedmf.training.schedule import Draw
from secagg.paillier import PrivateKey, generate_keypair

if TYPE_CHECKING:  # the tables can be listed without matplotlib
    from matplotlib.axes import Axes

DATA = "ml-latest-small"
HELD_OUT = 3  # ratings of each user, as in `benches.papers.thesis`
# Half of the thesis's rate, with which the loss of hundreds of users rises again.
MODEL = replace(BASU, start="zero-mean", spread=0.3, rate=0.001)
EPOCHS, ENCRYPTED_EPOCHS = 40, 30
BITS, REFRESH = 3072, 10
SIZES, ENCRYPTED_USERS = (20, 40, 80), 50  # items of the encrypted matrix
GROUPS, COMMON = (50, 100, 200, 400), 50
SEEDS = 3
EPOCH, SAME = "epoch", "same items"
USER, SERVER, ALL = "s of a user", "s of the server", "s of everybody"
TEST, TEST_COMMON = "test RMSE", f"test RMSE of {COMMON} users"


class _Training(NamedTuple):
    losses: list[float]
    items: list[NDArray[np.float64]]  # the item matrix after each epoch
    last: Factors
    seconds: float  # without the losses


def loss(train: Ratings, factors: Factors) -> float:
    """Return the regularised least squares of eq. 6.2, λ counted once per rating."""
    p, q = factors.user_factors, factors.item_factors
    error = train.values - factors.predict(train.users, train.items)
    sizes = (p**2).sum(axis=1)[train.users] + (q**2).sum(axis=1)[train.items]
    return float(np.mean(error**2 + MODEL.reg * sizes))


def _start(train: Ratings, run: Run) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    return MODEL.initial(train, Schedule(seed=run.seed).rng(Draw.START))


def _trained(train: Ratings, items: Items, epochs: int, run: Run) -> _Training:
    """Train from the run's start, from which `items` must be, too."""
    begun, path = perf_counter(), list[Factors]()
    path.extend(descend(MODEL, train, items, _start(train, run)[0], rounds=epochs))
    seconds = perf_counter() - begun
    losses = [loss(train, factors) for factors in path]
    return _Training(losses, [one.item_factors for one in path], path[-1], seconds)


def _in_the_clear(train: Ratings, epochs: int, run: Run) -> _Training:
    return _trained(train, PlainItems(_start(train, run)[1].reshape(-1)), epochs, run)


def _test(split: Split, factors: Factors) -> float:
    test = split.test
    return rmse(test.values, factors.predict(test.users, test.items))


def _split(n_items: int | None, n_users: int | None) -> Split:
    """Return the most rated items and the users who rated most of them; None for all."""
    whole = load(DATA)
    if n_items is not None and n_users is not None:
        whole = most_rated(whole, n_items, n_users)
    return leave_last(whole, HELD_OUT)


@cache
def _key(bits: int) -> PrivateKey:
    return generate_keypair(bits)


def _under_encryption(n_items: int, encrypted: bool, run: Run) -> dict[str, float]:
    """Train a subset in the clear and, if asked for, under encryption.

    A user computes, decrypts the item matrix and encrypts a gradient; the server adds and
    subtracts. Times are of an epoch. Computing in the clear is the users' but for the sum,
    which takes the server a millisecond.
    """
    split, epochs = _split(n_items, ENCRYPTED_USERS), run.fewer(ENCRYPTED_EPOCHS, least=2)
    train, users = split.train, split.train.n_users
    clear = found = _in_the_clear(train, epochs, run)
    user, server = clear.seconds / users / epochs, 0.0
    if encrypted:
        start = _start(train, run)[1].reshape(-1)
        items = EncryptedItems(start, _key(BITS), users=users, refresh_every=REFRESH)
        found = _trained(train, items, epochs, run)
        user += items.of_users.seconds / users / epochs
        server = items.of_server.seconds / epochs
    same = [np.array_equal(a, b) for a, b in zip(clear.items, found.items, strict=True)]
    return {
        **_shown(found.losses),
        TEST: _test(split, found.last),
        SAME: float(np.mean(same)),
        USER: user,
        SERVER: server,
        ALL: user * users + server,
    }


def _shown(losses: Sequence[float]) -> dict[str, float]:
    """Return the loss after every epoch, for the picture, and the last, for the table."""
    return numbered(EPOCH, losses) | {"last": losses[-1]}


def _converged(n_items: int | None, n_users: int | None, run: Run) -> dict[str, float]:
    split = _split(n_items, n_users)
    found = _in_the_clear(split.train, run.fewer(EPOCHS, least=2), run)
    figures = _shown(found.losses) | {TEST: _test(split, found.last)}
    if n_items == ITEMS:  # of these rows the common users have the same test ratings
        common = _split(ITEMS, COMMON).train.user_ids
        kept = np.isin(split.test.user_ids[split.test.users], common)
        figures[TEST_COMMON] = _test(Split(split.train, split.test.take(kept)), found.last)
    return figures


ITEMS, MORE, SOME = 500, 1000, 100
WHOLE = "all 9,724 items, all 610 users"
SUBSETS: dict[str, tuple[int | None, int | None]] = {
    **{f"{ITEMS} items, {n} users": (ITEMS, n) for n in GROUPS},
    f"{MORE} items, {SOME} users": (MORE, SOME),
    WHOLE: (None, None),
}


def _name(n_items: int, encrypted: bool) -> str:
    return f"{n_items} items, {'encrypted' if encrypted else 'in the clear'}"


def _logarithmic(axes: Axes) -> None:
    axes.set_yscale("log")
    axes.set_yticks([1, 2, 5, 10], ["1", "2", "5", "10"])
    axes.minorticks_off()


def loss_and_encryption(results: Results) -> Picture:
    """Draw figure 6.9: the loss with and without encryption."""
    return draw_curves(
        results,
        {f"{n} items": [_name(n, False), _name(n, True)] for n in SIZES},
        step=EPOCH,
        about="Figure 6.9: the loss of eq. 6.2 by epochs, in the clear and encrypted; the "
        "lines lie on each other.",
        x="epoch",
        y="loss, logarithmic",
        scale=_logarithmic,
        short=lambda name: name.partition(", ")[2],
    )


def convergence(results: Results) -> Picture:
    """Draw figures 6.11 to 6.13: the loss of subsets."""
    few, more = f"{ITEMS} items, {SOME} users", f"{MORE} items, {SOME} users"
    return draw_curves(
        results,
        {
            f"6.11: {ITEMS} items": [f"{ITEMS} items, {n} users" for n in GROUPS],
            f"6.12: {SOME} users": [few, more],
            "6.13: subset and full": [more, WHOLE],
        },
        step=EPOCH,
        about="Figures 6.11 to 6.13: the loss of eq. 6.2 by epochs.",
        x="epoch",
        y="loss, logarithmic",
        scale=_logarithmic,
        short=lambda name: "all" if name == WHOLE else name,
    )


SETTINGS = (
    "ml-latest-small, the most rated items and the users who rated most of them, each user's "
    "last three ratings held out. λ .01 is the thesis's, k 20 and the start N(0, .3²) are not "
    "stated there. *loss*: eq. 6.2 with λ once per rating, mean over the training ratings. "
)
TABLES = (
    Table(
        key="thesis-6.9",
        title="Basu 2020, figures 6.9 and 6.10: loss and time with and without encryption",
        metrics=("epoch 1", "epoch 10", "last", TEST, SAME, USER, SERVER, ALL),
        panels=(Panel("6.10: seconds per epoch", (USER, SERVER)),),
        rows=tuple(
            Row(
                _name(n, encrypted),
                DATA,
                partial(_under_encryption, n, encrypted),
                target={SAME: Target(at_least=1.0)} if encrypted else {},
                seeds=1,
            )
            for n in SIZES
            for encrypted in (False, True)
        ),
        note=SETTINGS + f"{ENCRYPTED_USERS} users share a Paillier key of {BITS} bits and send "
        "packed gradients; the server subtracts them from the encrypted item matrix (eq. 6.6), "
        f"which a user encrypts again every {REFRESH} epochs. *{SAME}*: the share of the "
        "epochs with the same integers as in the clear; the thesis finds a difference of about "
        ".001. It says that the server bears most of the time. Here the server takes about as "
        "long as one user, and all users together many times as long, as each decrypts the "
        "matrix and encrypts a gradient. Times are of an epoch.",
        pictures=(loss_and_encryption,),
    ),
    Table(
        key="thesis-6.11",
        title="Basu 2020, figures 6.11 to 6.13: loss by users and items, subset against full",
        metrics=("epoch 1", "epoch 10", "epoch 20", "epoch 30", "last", TEST, TEST_COMMON),
        panels=(),
        rows=tuple(
            Row(name, DATA, partial(_converged, *size), seeds=SEEDS)
            for name, size in SUBSETS.items()
        ),
        note=SETTINGS + f"Sums in the clear, {EPOCHS} epochs. The thesis's learning rate, "
        "twice the rate here, makes the loss rise again with 400 users, as gradients are "
        "summed. With all users the loss of one start rises after 30 epochs even so. "
        f"*{TEST_COMMON}*: the errors on the same test ratings of the same users "
        "in every row.",
        pictures=(convergence,),
    ),
)
