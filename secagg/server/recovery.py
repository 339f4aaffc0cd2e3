"""Recovery of secrets from revealed shares, some of which may be wrong.

A rebuilt secret is checked against the value that the dealer published: b_v against its
commitment, s_u against the advertised public key. All shares are compared with the polynomial,
not only the t shares that define the polynomial.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from secagg import _fast, shamir
from secagg.errors import Dispute, RemoteProtocolError
from secagg.protocol import Phase
from secagg.protocol.keys import SEED_BYTES
from secagg.protocol.messages import SHARE_LIMBS
from secagg.shamir.field import U64
from secagg.shamir.reed_solomon import are_off

Verify = Callable[[int, bytes], bool]


class Dealt(NamedTuple):
    """Secrets of dealers whose shares are known to be what they dealt.

    Attributes
    ----------
    secrets : dict of id to bytes
        Secrets that verify. A dealer is missing if no t shares are found that give the
        published secret.
    suspects : list of ids
        Dealers whose shares are on no polynomial of degree below t, or not on the polynomial of
        the published secret.
    """

    secrets: dict[int, bytes]
    suspects: list[int]


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
                    disputes = (Dispute(dealer, holder) for holder in sorted(holders))
                    raise unrecoverable(dealer, len(holders), tuple(disputes))
            columns = [column for column in columns if dealers[column] not in secrets]
        return [secrets[dealer] for dealer in dealers]

    def rebuild_dealt(
        self, dealers: Sequence[int], verify: Verify, points: U64, shares: U64
    ) -> Dealt:
        """Return secrets of dealers, whose holders revealed exactly what the dealers dealt.

        So any t shares give the secret of an honest dealer. The parameters are as in `rebuild`,
        and `points` are of the same holders for all dealers.
        """
        firsts = shares[: self.threshold].reshape(self.threshold, -1)
        limbs = self._at_zero(points[: self.threshold], firsts).reshape(-1, SHARE_LIMBS)
        off = are_off(points, shares, self.threshold, self._entropy)
        made = Dealt({}, [])
        for column, dealer in enumerate(dealers):
            is_right = partial(verify, dealer)
            secret = self._verified(limbs[column], is_right)
            if secret is None or off[column]:
                made.suspects.append(dealer)
            if secret is None and off[column]:
                alone = shares[:, [column]]
                found = shamir.find_wrong(points, alone, self.threshold, self._entropy)
                secret, _ = self._secret(points, shares[:, column], found.get(0), is_right)
            if secret is not None:
                made.secrets[dealer] = secret
        return made

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
        # two leave-outs have one secret only if all shares are right, and then none is wrong
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


def unrecoverable(
    dealer: int, shares: int, disputes: tuple[Dispute, ...]
) -> RemoteProtocolError:
    """Return the error for a dealer's secret that some shares do not give."""
    return RemoteProtocolError(
        f"the {shares} shares of client {dealer}'s secret do not give the one that it "
        "published: it dealt wrong shares, or too many were changed; begin a new round",
        sender=None,
        phase=Phase.UNMASKING,
        check="shares",
        disputes=disputes,
    )
