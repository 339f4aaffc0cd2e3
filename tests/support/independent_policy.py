"""Policies of clients and helpers, from docs/protocol.md (`P §`) and docs/oneshot.md (`O §`).

Nothing of the package is imported. `p` is the `Parameters` of `independent_params` in a
`Policy`, and those of `independent_oneshot` in a `OneShotPolicy`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import comb
from typing import Any

ENCODINGS = (("fixed point", 27), ("integers", 16), ("bounded", 23))
"""P §3.3: the beginning and the length of an encoding's bytes."""


def exact(decimal: float) -> Fraction:
    """P §3.4: the decimal as written, which Python prints."""
    return Fraction(str(decimal))


def rounded_up(decimal: float, n: int) -> int:
    product = exact(decimal) * n
    return -(-product.numerator // product.denominator)


def within(value: object, low: int, high: int) -> bool:
    return type(value) is int and low <= value <= high


def is_fraction(value: object) -> bool:
    return type(value) in (int, float) and 0 <= value < 1  # type: ignore[operator]


def is_bounds(value: object) -> bool:
    """P §3.4, `bounds`: None, or the bytes of an encoding with a largest weight."""
    if value is None:
        return True
    encoding, weight = value  # type: ignore[misc]
    kinds = [encoding.startswith(k.encode()) and len(encoding) == size for k, size in ENCODINGS]
    return any(kinds) and (weight is None or within(weight, 1, 2**53))


@dataclass(frozen=True, kw_only=True)
class Policy:
    """P §3.4 and §3.5. `bounds` is a pair: the encoding's bytes, and `max_weight` or None."""

    require_active: bool = False
    require_hybrid: bool = False
    allow_two_clients: bool = False
    min_threshold: int = 2
    min_clients: int = 3
    max_length: int = 2**28
    bounds: tuple[bytes, int | None] | None = None
    min_cohort: int | None = None
    corrupt: float = 0.2
    colluders: int | None = None
    dropout: float = 0.1
    sigma: int = 40

    def in_range(self) -> bool:
        return (
            within(self.min_threshold, 1, 2**20)
            and within(self.min_clients, 2 if self.allow_two_clients else 3, 2**20)
            and within(self.max_length, 1, 2**31)
            and (self.min_cohort is None or within(self.min_cohort, 2, 2**20))
            and is_fraction(self.corrupt)
            and (self.colluders is None or within(self.colluders, 0, 2**20))
            and is_fraction(self.dropout)
            and within(self.sigma, 1, 128)
            and is_bounds(self.bounds)
        )

    def accepts(self, p: Any, registered: int = 0) -> bool:
        """P §3.4, before anything is drawn; `registered` is r."""
        return (
            (p.active or not self.require_active)
            and (p.hybrid or not self.require_hybrid)
            and p.t >= self.min_threshold
            and p.h >= self.min_clients
            and p.d <= self.max_length
            and self.bounds in (None, (p.encoding.encode(), p.W))
            and self.accepts_cohort(p, p.n, registered)
        )

    def lying(self, p: Any, registered: int) -> int:
        """P §8.3: so many complaints of a dealer may all be false."""
        return min(self._colluders(p, registered), p.most_liars)

    def _colluders(self, p: Any, registered: int) -> int:
        """P §3.4: c."""
        if self.colluders is not None:
            return self.colluders
        return rounded_up(self.corrupt, max(p.n, registered))

    def accepts_cohort(self, p: Any, m: int, registered: int = 0) -> bool:
        """P §3.4, the cohort."""
        if self.min_cohort is not None and m < self.min_cohort:
            return False
        c = self._colluders(p, registered)
        if p.noise is not None and p.noise.colluders < c:
            return False
        if p.k is not None:
            return is_private(m, p.k, p.t, c, self.dropout, self.sigma)
        reached = p.t <= c or (p.active and 2 * p.t <= m + c)
        alone = not self.allow_two_clients and max(p.t, self.min_clients) < c + 2
        return not reached and not alone


def is_private(m: int, k: int, t: int, c: int, dropout: float, sigma: int) -> bool:
    """P §3.5."""
    D, K = rounded_up(dropout, m), min(k, m - 1)
    if m - c - D < 2:
        return False
    if m - 1 == K:
        return t > c
    return too_many(m, K, t, c) + in_pieces(m, K, c + D) <= Fraction(1, 2**sigma)


def too_many(m: int, K: int, t: int, c: int) -> Fraction:
    """E1 of P §3.5."""
    if t > min(c, K):
        return Fraction(0)
    if K <= 2048:
        ways = (comb(c, x) * comb(m - 1 - c, K - x) for x in range(t, min(c, K) + 1))
        return Fraction(m * sum(ways), comb(m - 1, K))
    if t * (m - 1) <= c * K:
        return Fraction(1)
    first = Fraction(comb(c, t) * comb(m - 1 - c, K - t), comb(m - 1, K))
    q = Fraction((c - t) * (K - t), (t + 1) * (m - c - K + t))
    return m * first / (1 - q)


def in_pieces(m: int, K: int, missing: int) -> Fraction:
    """E2 of P §3.5, by its largest term."""
    g = min(missing, (K * m - 2) // (K + 2) + 1)
    return pairs_of_gaps(m, K, g) if g >= K else Fraction(0)


def pairs_of_gaps(m: int, K: int, g: int) -> Fraction:
    return Fraction(comb(m - g, 2) * comb(g, K), comb(m - 1, K))


@dataclass(frozen=True, kw_only=True)
class OneShotPolicy:
    """O §3.6, of a client, and O §3.7, of a helper."""

    min_threshold: int = 2
    min_clients: int = 3
    require_active: bool = False
    helpers: frozenset[bytes] | None = None
    corrupt: float = 0.2
    colluders: int | None = None
    max_length: int = 2**28
    max_clients: int = 2**17
    bounds: tuple[bytes, int | None] | None = None
    require_hybrid: bool = False

    def in_range(self) -> bool:
        return (
            within(self.min_threshold, 1, 16)
            and within(self.min_clients, 2, 2**20)
            and is_fraction(self.corrupt)
            and (self.colluders is None or within(self.colluders, 0, 2**20))
            and within(self.max_length, 1, 2**31)
            and within(self.max_clients, 2, 2**20)
            and is_bounds(self.bounds)
        )

    def accepts(self, p: Any, endorsements: Sequence[bytes] = ()) -> bool:
        """O §3.6."""
        trusted = not endorsements
        if self.helpers is not None:
            trusted = p.endorsed(endorsements, self.helpers)
        return (
            p.t >= self.min_threshold
            and p.least >= self.min_clients
            and self.bounds in (None, (p.encoding.encode(), p.W))
            and trusted
            and self._accepts(p, p.n, p.least)
        )

    def accepts_at_helper(self, p: Any, registered: int | None) -> bool:
        """O §3.7; `registered` is None without a registry."""
        return (
            bool(p.active) == (registered is not None)
            and (registered is not None or p.n <= self.max_clients)
            and self._accepts(p, max(p.n, registered or 0), max(p.least, self.min_clients))
        )

    def _accepts(self, p: Any, population: int, smallest: int) -> bool:
        c = self.colluders
        if c is None:
            c = rounded_up(self.corrupt, population)
        active = p.active or not self.require_active
        hybrid = p.suite == "hybrid" or not self.require_hybrid
        return active and hybrid and p.d <= self.max_length and smallest >= c + 2
