"""The item matrix under encryption: the server moves it and cannot read it.

In Basu's thesis (chapter 6; after Chai et al. 2020) the users share one private key and the
server has the item matrix encrypted, C_V. Each user decrypts it, moves their own factors, and
sends the gradient, scaled by the public learning rate, encrypted. The server adds these up to
C_G and subtracts: C_V ← C_V − C_G (eq. 6.6). Unlike with `PaillierSum` it does not even learn
the sum. *One user who colludes with the server reads every user's gradient.*

In fixed point all of this is exact, where one exponent per ciphertext, as in the thesis, is
not private. A slot has room for so many summands, and every gradient that was subtracted is one
of them: when the next do not fit, a user decrypts the matrix and encrypts it again.
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
    """The item matrix, row after row, in the integers of `ENCODING`, in the clear.

    `start` is float64 of shape (m · k,). Raises SettingError, as `subtract` does, if an element
    lies beyond the encoding's clip.
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
    """The same as `PlainItems`, encrypted by users who share a key.

    `of_users` and `of_server` time the encryption of all users together, and the server's. A
    matrix is decrypted once here, and the time counted for every user.
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
        """Send the matrix to users, who decrypt it."""
        with self.of_server.running():
            data = self._matrix.to_bytes()
        with self.of_users.running(for_each_of=users):
            vector = self._key.public_key.load_vector(data, self._packing, summands=None)
            return self._key.decrypt_vector(vector).integers

    def _sent(self, vector: Floats) -> EncryptedVector:
        """Encrypt a user's vector, and load it at the server."""
        with self.of_users.running():
            data = self._key.encrypt_vector(vector, self._packing).to_bytes()
        with self.of_server.running():
            return self._key.public_key.load_vector(data, self._packing)


Items: TypeAlias = PlainItems | EncryptedItems


def descend(
    model: FedMF, ratings: Ratings, items: Items, user_factors: Floats, *, rounds: int
) -> Iterator[Factors]:
    """Train from `items` and `user_factors`, of shape (n_users, k); yield each round's factors.

    The steps are those of the model's "paper" update. The thesis' eq. 6.3 and 6.4 have a factor
    2 in front of the gradient, and take both at the factors before the step: its learning rate
    is half of `FedMF.rate`.

    Raises
    ------
    SettingError
        The model counts raters, or a factor or gradient lies beyond the encoding's clip.
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
    """Subtraction from the item matrix: the sum is the matrix as users read it then."""

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
    """Training whose server step is the subtraction itself."""

    def server_step(self, state: Factors, steps: FactorSteps, total: Aggregate) -> Factors:
        """Return the matrix as users read it, and their factors."""
        p = steps.moved(total.survivors)
        return replace(state, user_factors=p, item_factors=total.sum.reshape(steps.shape))
