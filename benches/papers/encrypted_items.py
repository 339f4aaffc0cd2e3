"""FedMF with an encrypted item matrix, which the server updates but cannot read.

In Basu's thesis (chapter 6; after Chai et al. 2020) the users share one private key and the
server has the encrypted item matrix, C_V. Each user decrypts it and updates their own factors.
Then the user encrypts the gradient, scaled by the public learning rate, and sends it. The
server adds the gradients up to C_G and subtracts: C_V ← C_V − C_G (eq. 6.6). Unlike with
`PaillierSum` the server does not even learn the sum. *One user who colludes with the server
reads every user's gradient.*

Fixed point makes all of this exact; the thesis has one exponent per ciphertext, which is not
private. A slot has room for a limited number of summands, and every subtracted gradient is one
of them. When the next gradients do not fit, a user decrypts the matrix and encrypts it again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

import secagg
from fedmf.aggregate import Aggregate, Phase
from fedmf.aggregate.aggregation import Encoding, IntegerSum, Stopwatch
from fedmf.aggregate.vectors import Vectors
from fedmf.data import Ratings
from fedmf.errors import SettingError
from fedmf.models import Factors, FedMF
from fedmf.training import Schedule
from fedmf.training.loop import Loop
from fedmf.training.trainer import FactorSteps, FactorTraining
from secagg.paillier import EncryptedVector, PrivateKey

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

ENCODING = secagg.FixedPoint(16.0, 32, rounding="nearest", beyond_clip="refuse")
"""Encoding of items and gradients: a step of γ = 0.001 needs more than 16 fractional bits."""


class PlainItems:
    """Item matrix in the clear, row by row, as integers of `ENCODING`.

    `start` is float64 of shape (m · k,). The constructor and `subtract` raise SettingError if
    an element is beyond the encoding's clip.
    """

    def __init__(self, start: Floats) -> None:
        self._integers, _ = ENCODING.encode_integers(start)

    def read(self) -> Integers:
        """Return the matrix as every user reads it, int64 of shape (m · k,)."""
        return self._integers

    def subtract(self, gradients: Iterable[Floats]) -> None:
        """Subtract the users' scaled gradients, float64 of shape (m · k,) each."""
        encoded = (ENCODING.encode_integers(gradient)[0] for gradient in gradients)
        self._integers = self._integers - sum(encoded)


class EncryptedItems:
    """Item matrix like `PlainItems`, encrypted by users who share a key.

    `of_users` is the time of all users together, `of_server` that of the server. A matrix is
    decrypted once, and this time is counted for every user.
    """

    def __init__(
        self,
        start: Floats,  # encrypted by the first user
        key: PrivateKey,
        *,
        users: int,  # gradients of a round
        refresh_every: int,  # rounds that a slot has room for; SettingError if too many
    ) -> None:
        self._key, self._users = key, users
        self._packing = secagg.Packing(
            encoding=ENCODING, length=start.size, summands=1 + users * refresh_every
        )
        self.refreshes = 0  # times that a user encrypted the matrix again
        self.of_users, self.of_server = Stopwatch(), Stopwatch()
        self._matrix = self._sent(start)

    def read(self) -> Integers:
        """See `PlainItems`."""
        return self._opened(users=self._users)

    def subtract(self, gradients: Iterable[Floats]) -> None:
        """See `PlainItems`."""
        total: EncryptedVector | None = None
        for gradient in gradients:
            arrived = self._sent(gradient)
            with self.of_server.running():
                total = arrived if total is None else total + arrived
        if total is None:
            return
        added = self._matrix.added + self._matrix.subtracted
        if added + total.added > self._packing.summands:
            self._matrix = self._sent(ENCODING.decode_integers(self._opened(users=1)))
            self.refreshes += 1
        with self.of_server.running():
            self._matrix -= total

    def _opened(self, *, users: int) -> Integers:
        """Return the matrix, decrypted by `users` users, for whom the time is counted."""
        with self.of_server.running():
            data = self._matrix.to_bytes()
        with self.of_users.running(for_each_of=users):
            vector = self._key.public_key.load_vector(data, self._packing, summands=None)
            return self._key.decrypt_vector(vector).integers

    def _sent(self, vector: Floats) -> EncryptedVector:
        """Encrypt a vector as a user, and load the ciphertexts as the server."""
        with self.of_users.running():
            data = self._key.encrypt_vector(vector, self._packing).to_bytes()
        with self.of_server.running():
            return self._key.public_key.load_vector(data, self._packing)


Items: TypeAlias = PlainItems | EncryptedItems


def descend(
    model: FedMF, ratings: Ratings, items: Items, user_factors: Floats, *, rounds: int
) -> Iterator[Factors]:
    """Train from `items` and `user_factors`, of shape (n_users, k); yield each round's factors.

    The steps are those of the model's "paper" update. Eq. 6.3 and 6.4 of the thesis have a
    factor 2 in front of the gradient, so its learning rate is half of `FedMF.rate`. They take
    both gradients at the factors before the step. Raises SettingError if the model counts
    raters, or a factor or gradient is beyond the encoding's clip.
    """
    if model.needs_counts:  # the server never sees a sum
        raise SettingError(
            f"update = {model.update!r} and min_raters = {model.min_raters} need counts of "
            "raters, which encryption hides: use update='paper' and min_raters=1"
        )
    q = ENCODING.decode_integers(items.read()).reshape(ratings.n_items, model.k)
    start = Factors.of(user_factors, q, ratings)
    loop = Loop(_Subtraction(items=items, rate=model.rate), Schedule(), rounds)
    for one in loop.iterate(_Descent(model, ratings), start):
        yield one.state


@dataclass(frozen=True, kw_only=True)
class _Subtraction(IntegerSum):
    """Aggregation that subtracts from the item matrix; its sum is the new matrix."""

    items: Items
    rate: float

    def _add(
        self,
        vectors: Vectors,
        dropouts: Mapping[int, Phase],
        session: bytes,
        encoding: Encoding,
    ) -> Aggregate:
        self.items.subtract(np.asarray(self.rate * vectors[user].dense()) for user in vectors)
        integers = self.items.read()
        total = ENCODING.decode_integers(integers)
        return Aggregate(sum=total, integers=integers, survivors=tuple(vectors), clipped=0)


class _Descent(FactorTraining):
    """Training without a server step of its own, as the aggregation updates the item matrix."""

    def server_step(self, state: Factors, steps: FactorSteps, total: Aggregate) -> Factors:
        """Return the new item matrix, as users decrypt it, and the users' factors."""
        p = steps.moved(total.survivors)
        return replace(state, user_factors=p, item_factors=total.sum.reshape(steps.shape))
