"""Matrix factorisation by one party that has all ratings, as a baseline for federated training.

It is the SVD of the Python library Surprise (Funk's factorisation with biases; Koren, Bell and
Volinsky, "Matrix factorization techniques for recommender systems", Computer 42(8), 2009,
eq. 5). The default settings of that library are the centralised baseline of Basu's thesis
(2020), section 6.7.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedmf.data import Ratings, Split
from fedmf.data.checks import check_ratings
from fedmf.errors import MissingExtra, ModelError, SettingError
from fedmf.models.recommender import pairs
from fedmf.settings import Count, NotNegative, Positive, Seed, Settings

Floats = NDArray[np.float64]
Positions = NDArray[np.int64]


class SVD(Settings):
    """Model r̂_ui = μ + b_u + b_i + q_i · p_u, by stochastic gradient descent rating by rating.

    Surprise visits the ratings user by user, this class in a random order that is drawn once.
    Factors start from N(0, spread²); users and items without a rating have factors of zero.
    """

    mean_: float
    user_biases_: Floats
    item_biases_: Floats
    user_factors_: Floats
    item_factors_: Floats

    def __init__(
        self,
        *,
        k: Count = 100,
        epochs: Count = 20,
        rate: Positive = 0.005,
        reg: NotNegative = 0.02,
        spread: Positive = 0.1,
        seed: Seed = 0,
    ) -> None:
        self.k, self.epochs, self.rate, self.reg = k, epochs, rate, reg
        self.spread, self.seed = spread, seed
        self.__post_init__()

    def fit(self, train: Ratings) -> Self:
        """Train from the start; SettingError for no ratings or if the factors diverge."""
        check_ratings(train=train)
        if train.n_ratings == 0:
            raise SettingError("the training part has no rating: pass one that has")
        rng = np.random.default_rng(self.seed)
        self.mean_ = float(train.values.mean())
        self.user_biases_, self.item_biases_ = np.zeros(train.n_users), np.zeros(train.n_items)
        self.user_factors_ = rng.normal(0.0, self.spread, size=(train.n_users, self.k))
        self.item_factors_ = rng.normal(0.0, self.spread, size=(train.n_items, self.k))
        steps = _independent(train, rng.permutation(train.n_ratings))
        for _ in range(self.epochs):
            with np.errstate(over="ignore", invalid="ignore"):  # raises below
                for users, items, values in steps:
                    self._step(users, items, values)
            biases, factors = (self.user_biases_, self.item_biases_), self.user_factors_
            if not all(np.isfinite(x).all() for x in (*biases, factors, self.item_factors_)):
                del self.mean_  # a diverged model must not predict
                raise SettingError(
                    f"the factors diverge at the rate of {self.rate:g}: lower it"
                )
        self.user_factors_[np.bincount(train.users, minlength=train.n_users) == 0] = 0.0
        self.item_factors_[np.bincount(train.items, minlength=train.n_items) == 0] = 0.0
        return self

    def predict(self, users: ArrayLike, items: ArrayLike) -> Floats:
        """Return r̂_ui of each pair, not clipped to the scale (Surprise clips)."""
        if not hasattr(self, "mean_"):
            raise ModelError("the model is not trained yet: call fit first")
        rows, columns = pairs(users, items, len(self.user_biases_), len(self.item_biases_))
        biases = self.mean_ + self.user_biases_[rows] + self.item_biases_[columns]
        products = self.user_factors_[rows] * self.item_factors_[columns]
        return np.asarray(biases + products.sum(axis=-1))

    def _step(self, users: Positions, items: Positions, values: Floats) -> None:
        """Take a step for each of some ratings by distinct users and of distinct items."""
        p, q = self.user_factors_[users], self.item_factors_[items]
        b_u, b_i = self.user_biases_[users], self.item_biases_[items]
        error = values - (self.mean_ + b_u + b_i + (p * q).sum(axis=1))
        self.user_biases_[users] = b_u + self.rate * (error - self.reg * b_u)
        self.item_biases_[items] = b_i + self.rate * (error - self.reg * b_i)
        self.user_factors_[users] = p + self.rate * (error[:, None] * q - self.reg * p)
        self.item_factors_[items] = q + self.rate * (error[:, None] * p - self.reg * q)


def _independent(train: Ratings, order: Positions) -> list[tuple[Positions, Positions, Floats]]:
    """Return groups of ratings to step on at once, with the same result as in `order`."""
    # A rating's group is the first after those of all earlier ratings by its user or of its
    # item. So no group has a user or an item twice, and of two ratings that share one the
    # earlier is in the earlier group: the result is that of the sequence, but for rounding.
    users, items = train.users[order].tolist(), train.items[order].tolist()
    free_users, free_items = [0] * train.n_users, [0] * train.n_items
    group = np.empty(train.n_ratings, dtype=np.int64)
    for place, (user, item) in enumerate(zip(users, items, strict=True)):
        number = max(free_users[user], free_items[item])
        free_users[user] = free_items[item] = number + 1
        group[place] = number
    parted = order[np.argsort(group, kind="stable")]
    ends = np.cumsum(np.bincount(group))[:-1]
    users_of, items_of = train.users.astype(np.int64), train.items.astype(np.int64)
    return [
        (users_of[some], items_of[some], train.values[some]) for some in np.split(parted, ends)
    ]


def surprise(
    split: Split, name: Literal["SVD", "SVDpp"], seed: int, *, clip: bool, **settings: float
) -> Floats:
    """Predict the test part by a factorisation of the library Surprise, with these settings.

    Raises MissingExtra if scikit-surprise is not installed.
    """
    try:
        from surprise import SVD, SVDpp, Trainset
    except ModuleNotFoundError as error:
        raise MissingExtra(
            "scikit-surprise, the peer, is not installed: pip install scikit-surprise"
        ) from error

    train, test = split.train, split.test
    by_user, by_item = defaultdict(list), defaultdict(list)
    triples = (array.tolist() for array in (train.users, train.items, train.values))
    for user, item, value in zip(*triples, strict=True):
        by_user[user].append((item, value))
        by_item[item].append((user, value))
    known = Trainset(
        by_user,
        by_item,
        train.n_users,
        train.n_items,
        train.n_ratings,
        train.scale,
        {user: user for user in by_user},  # our numbers are its inner ones; others are unknown
        {item: item for item in by_item},
    )
    model = {"SVD": SVD, "SVDpp": SVDpp}[name](random_state=seed, **settings).fit(known)
    pairs = zip(test.users.tolist(), test.items.tolist(), strict=True)
    return np.array([model.predict(user, item, clip=clip).est for user, item in pairs])
