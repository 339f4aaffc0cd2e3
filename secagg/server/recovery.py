"""Recovery of b_v and s_u from the shares of round 4; it finds the senders of wrong shares.

A rebuilt secret is checked against the value its owner published: b_v against its commitment,
s_u against the advertised public key. All shares are compared with the polynomial, not only the
t that define it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from secagg import _fast, shamir
from secagg.errors import RemoteProtocolError
from secagg.protocol import Phase
from secagg.protocol.keys import SEED_BYTES

__all__ = ["Recovery"]

_ATTEMPTS = 3
"""Failed decodings, seconds each for a thousand clients, before only right secrets count."""


class Recovery:
    """Rebuilder of secrets for the threshold t; caches weights and records faulty senders.

    Attributes
    ----------
    faulty : set of ids
        Clients that sent a share off its polynomial.
    """

    def __init__(self, threshold: int) -> None:
        self.threshold = threshold
        self.faulty: set[int] = set()
        self._weights: dict[bytes, NDArray[np.uint64]] = {}
        # how often decoding failed for shares of these clients though the secret was known
        self._failures: Counter[tuple[int, ...]] = Counter()

    def rebuild(
        self,
        owner: int,
        holders: Sequence[int],
        shares: Mapping[int, NDArray[np.uint64]],
        verify: Callable[[bytes], bool],
    ) -> bytes:
        """Return the owner's 32-byte secret.

        Parameters
        ----------
        owner : int
        holders : ids
            All holders of the secret's shares, in the order of the points 1, 2, …
        shares : mapping of id to uint64 array, shape (5,)
            At least t of the holders' shares, each limb in [0, 2^61 − 1).
        verify : callable
            Check of a candidate for the secret.

        Raises
        ------
        RemoteProtocolError
            More shares are wrong than can be corrected; check "shares".
        """
        answered = [(x, v) for x, v in enumerate(holders, start=1) if v in shares]
        # skip known-faulty senders unless fewer than t others remain: one liar then costs one
        # decoding, however many owners there are
        trusted = [(x, v) for x, v in answered if v not in self.faulty]
        present = trusted if len(trusted) >= self.threshold else answered
        points = np.array([x for x, _ in present], dtype=np.uint64)
        values = np.stack([shares[v] for _, v in present])

        on_line = _fast.m61_matmul(self._interpolation(points), values[: self.threshold])
        secret = self._verified(on_line[0], verify)
        if secret is not None and np.array_equal(on_line[1:], values[self.threshold :]):
            return secret
        # if the secret is known, slow decoding only names the liars: do not repeat it for every
        # owner when more shares are wrong than can be identified
        senders = tuple(u for _, u in present)
        if secret is not None and self._failures[senders] >= _ATTEMPTS:
            return secret
        corrected = shamir.find_wrong(points, values, self.threshold)
        if corrected is None:
            repaired, wrong = self._leave_one_out(points, values, verify)
        else:
            repaired, wrong = self._verified(corrected[0], verify), corrected[1]
        if repaired is not None:
            self.faulty.update(present[row][1] for row in wrong)
            return repaired
        if secret is not None:  # right, but the liars cannot be identified
            self._failures[senders] += 1
            return secret
        raise RemoteProtocolError(
            f"the {len(present)} shares of client {owner}'s secret do not rebuild the "
            "published one, and too many are wrong to identify them",
            sender=None,
            phase=Phase.UNMASKING,
            check="shares",
        )

    def _leave_one_out(
        self,
        points: NDArray[np.uint64],
        values: NDArray[np.uint64],
        verify: Callable[[bytes], bool],
    ) -> tuple[bytes | None, list[int]]:
        """With t + 1 shares, find the one without which the others give the right secret."""
        if points.size != self.threshold + 1:
            return None, []
        found = []
        for row in range(points.size):
            limbs = shamir.combine_limbs(np.delete(points, row), np.delete(values, row, axis=0))
            secret = self._verified(limbs, verify)
            if secret is not None:
                found.append((secret, [row]))
        return found[0] if len(found) == 1 else (None, [])

    def _verified(
        self, limbs: NDArray[np.uint64], verify: Callable[[bytes], bool]
    ) -> bytes | None:
        secret = shamir.from_limbs(limbs, SEED_BYTES)
        return secret if secret is not None and verify(secret) else None

    def _interpolation(self, points: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Return weights from the first t values to those at zero and at the other points."""
        name = points.tobytes()
        if name not in self._weights:
            first, rest = points[: self.threshold], points[self.threshold :]
            # f(x) from t points is f(0) of the same polynomial moved by x
            moved = [_fast.m61_sub(first, np.full_like(first, x)) for x in (0, *rest)]
            self._weights[name] = np.stack([_fast.m61_lagrange_at_zero(xs) for xs in moved])
        return self._weights[name]
