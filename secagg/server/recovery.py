"""Recovery of b_v and s_u from the shares of round 4, and of the disputes about wrong shares.

A rebuilt secret is checked against the value that the dealer published: b_v against its
commitment, s_u against the advertised public key. All shares are compared with the polynomial,
not only the t shares that define the polynomial.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from secagg import _fast, shamir
from secagg.errors import Dispute, RemoteProtocolError
from secagg.protocol import Phase
from secagg.protocol.keys import SEED_BYTES
from secagg.shamir.arithmetic import U64

Verify = Callable[[int, bytes], bool]


class Recovery:
    """Rebuild the secrets of a round from the shares that the clients revealed.

    Parameters
    ----------
    threshold : int
        Number of shares that determine a secret, t.
    seed : bytes
        Hash of all revealed shares, from which the decoder draws random coefficients. No client
        knows the coefficients when the client reveals a share. A resumed server draws the same
        coefficients.

    Attributes
    ----------
    disputes : list of Dispute
        Dealer and holder of each wrong share that was found. Wrong shares of a secret are found
        if at most ⌊(n − t) / 2⌋ of the n shares are wrong. The search misses some wrong shares
        if three or more secrets have more wrong shares than that.
    """

    def __init__(self, threshold: int, seed: bytes) -> None:
        self.threshold = threshold
        self.disputes: list[Dispute] = []
        self._seed, self._draws = seed, 0
        self._weights: dict[bytes, U64] = {}

    def rebuild(
        self,
        dealers: Sequence[int],
        verify: Verify,
        holders: Sequence[int],
        points: U64,
        shares: U64,
    ) -> list[bytes]:
        """Return the 32-byte secrets of dealers with the same holders.

        Parameters
        ----------
        dealers : d ids
        verify : callable
            Check of a dealer's id and a candidate for the dealer's secret.
        holders : n ids
            The clients that revealed their shares.
        points : uint64 array, shape (n,)
            The holders' points; n ≥ t.
        shares : uint64 array, shape (n, d, 5)
            Limbs in [0, 2^61 − 1).

        Raises
        ------
        RemoteProtocolError
            A secret cannot be rebuilt; check "shares", with the disputes about the secret.
        """
        secrets: dict[int, bytes] = {}
        columns = list(range(len(dealers)))
        while columns:  # twice at most: liars can end the first search early, not a second
            found = shamir.find_wrong(points, shares[:, columns], self.threshold, self._entropy)
            for place, column in enumerate(columns):
                dealer, rows = dealers[column], found.get(place)
                is_right = partial(verify, dealer)
                secret, wrong = self._secret(points, shares[:, column], rows, is_right)
                if secret is not None:
                    secrets[dealer] = secret
                    self.disputes += (Dispute(dealer, holders[row]) for row in wrong)
                elif place in found:  # without a search, a few wrong shares could be the reason
                    raise _lost(dealer, holders)
            columns = [column for column in columns if dealers[column] not in secrets]
        return [secrets[dealer] for dealer in dealers]

    def _secret(
        self,
        points: U64,
        values: U64,
        wrong: NDArray[np.intp] | None,
        is_right: Callable[[bytes], bool],
    ) -> tuple[bytes | None, Sequence[int]]:
        """Return a secret that verifies, or None, and the rows known to be wrong."""
        if wrong is not None:
            kept = np.delete(np.arange(points.size), wrong)[: self.threshold]
            secret = self._verified(self._at_zero(points[kept], values[kept]), is_right)
            if secret is not None:
                return secret, wrong.tolist()
        # with more wrong shares than decoding corrects, the check still shows a right secret
        first = slice(self.threshold)
        secret = self._verified(self._at_zero(points[first], values[first]), is_right)
        if points.size != self.threshold + 1:
            return secret, ()
        one_left_out = [
            (found, row)
            for row, limbs in enumerate(shamir.leave_one_out(points, values))
            if (found := self._verified(limbs, is_right)) is not None
        ]
        # X25519 ignores five bits of a seed, so two secrets can verify; then no row is named
        rows = [row for _, row in one_left_out]
        secret = one_left_out[0][0] if one_left_out else secret
        return secret, rows if len(rows) == 1 else ()

    def _verified(self, limbs: U64, is_right: Callable[[bytes], bool]) -> bytes | None:
        secret = shamir.from_limbs(limbs, SEED_BYTES)
        return secret if secret is not None and is_right(secret) else None

    def _at_zero(self, points: U64, values: U64) -> U64:
        """Return the constant terms that t shares determine; the points' weights are cached."""
        name = points.tobytes()
        if name not in self._weights:
            self._weights[name] = _fast.m61_lagrange_at_zero(points).reshape(1, -1)
        return _fast.m61_matmul(self._weights[name], np.ascontiguousarray(values)).ravel()

    def _entropy(self, size: int) -> bytes:
        self._draws += 1
        label = b"secagg/2 wrong shares" + self._seed + self._draws.to_bytes(8, "little")
        return hashlib.shake_256(label).digest(size)


def _lost(dealer: int, holders: Sequence[int]) -> RemoteProtocolError:
    return RemoteProtocolError(
        f"the {len(holders)} shares of client {dealer}'s secret do not give the one that it "
        "published: it dealt wrong shares, or too many were changed; begin a new round",
        sender=None,
        phase=Phase.UNMASKING,
        check="shares",
        disputes=tuple(Dispute(dealer, holder) for holder in sorted(holders)),
    )
