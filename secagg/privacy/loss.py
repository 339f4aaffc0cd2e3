"""Loss of privacy of sums with shares of discrete Gaussian noise.

h shares of N_Z(0, s²) add up to Y. Three steps compare a vector of D such sums, under any
shift, with the Gaussian mechanism. docs/differential-privacy.md has the proofs.

1. Y has the probabilities of N_Z(0, v), v = h s², up to factors of e^±τ, with
   τ = 10 Σ exp(−2π² s² k / (k + 1)) over k = 1 … h − 1 (Kairouz, Liu and Steinke, ICML 2021).
2. Within 12 √v, N_Z(0, v) has the probabilities of round(N(0, w)), w = v − 1/12, up to factors
   of e^±η, with η = 7.2 / v².
3. For integers x, x + round(N) is round(x + N), a function of the Gaussian mechanism's result.

So ε is the Gaussian mechanism's for the variance w (Balle and Wang, ICML 2018, theorem 8),
plus 2a, where e^±a bounds the factors of all elements; see `Distance`. The second bound is
theorem 1 of Kairouz, Liu and Steinke, by zero-concentrated privacy. The smaller ε counts.

In one-shot sums a helper adds N_Z(0, σ²) alone: the same steps with h = 1, without the first.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

from secagg._check import check_integer, check_kind, is_real
from secagg.errors import ParameterError, needing
from secagg.graph.cohorts import exposure
from secagg.graph.graph import Adversary
from secagg.oneshot import OneShotParams
from secagg.privacy.distance import NONE, ROUNDED, Distance
from secagg.privacy.gaussian import epsilon_of
from secagg.privacy.sensitivity import square_of
from secagg.protocol import RoundParams
from secagg.protocol.noise import LARGEST_SHARE, LEAST_SHARE, STEPS, Share

_Bound = Callable[[float], float]
"""ε of a mechanism by δ."""
GRAIN = 1 << 40
"""μ² and ρ are multiples of 1 / 2^40, rounded up: sums of many rounds stay short."""
_LEAST, _LARGEST = (Fraction(s, STEPS) ** 2 for s in (LEAST_SHARE, LARGEST_SHARE))
"""Variances of a share. From 16 on, 2π² s² k / (k + 1) ≥ π² s² bounds τ."""
_SAMPLE_ERROR = 2.0**-45
"""κ, the largest relative error of a probability of the sampler of shares."""
_TAIL = math.exp(-72.0)
"""P(|Y| > 12 √v) ≤ 2 e^−72, as Y is subgaussian (Canonne, Kamath and Steinke 2020)."""
_CONDITIONED = 2.0**-100
"""More than the change of the logarithms when both laws are restricted to 12 √v."""
_TABLE_ERROR = 2.0**-120
"""Largest distance of a sample by a rounded table from an exact sample, in total variation."""
ORDERS = [1 + 2 ** (k / 16) for k in range(-104, 400)]
"""Every order gives a valid bound; dp-accounting ignores orders up to 1.01."""
_PROVEN, _UNPROVEN = 32, 1e100
"""Least v with a proven η, and the η of less noise, which says nothing and is still finite."""


@dataclass(frozen=True)
class Loss:
    """Privacy that sums spend on one client's vector, at most; losses add up with ``+``.

    ``Loss()`` is the loss of no sum, and the sum of losses the loss of all sums together. The
    sums' noise is fixed in advance; where results of earlier sums decide on later noise, or on
    the end, only a `Budget` bounds the loss.

    Attributes
    ----------
    squares : Fraction
        Σ μ², the squared parameters of Gaussian differential privacy.
    rho : Fraction
        Σ ρ of zero-concentrated differential privacy, which bounds the same loss.
    law : Distance
        Distance of the sums of exact shares from rounded Gaussians, which concerns `squares`.
    sampler : Distance
        Distance of the sampled shares from exact shares, which concerns both bounds.
    failure : float
        Probability of noise that these bounds do not cover; 1 or more for sums without noise.
    exposure : float
        Probability that some client is exposed, whose vector has then no other client's noise:
        by chance on a sparse graph, for sure if the colluders reach the threshold.
    """

    squares: Fraction = Fraction(0)
    rho: Fraction = Fraction(0)
    law: Distance = NONE
    sampler: Distance = NONE
    failure: float = 0.0
    exposure: float = 0.0

    def __post_init__(self) -> None:
        numbers: list[Fraction | float] = [self.squares, self.rho]
        numbers += [self.failure, self.exposure]
        for distance in (self.law, self.sampler):
            numbers += [distance.total, distance.squares]
        if not all(number >= 0 for number in numbers):  # NaN is not
            raise ParameterError(f"a loss has no number below 0, unlike {self}")

    @classmethod
    def of(cls, *sums: RoundParams | OneShotParams) -> Loss:
        """Return the loss of sums, a sum with each of these parameters, for a vector or zeros.

        The weight is 0 for the zeros, too. Sums without noise have no bound. The sensitivity is
        the norm of the encoding: B of `Bounded`; for other encodings all elements at their
        largest. A complete graph enforces `min_survivors`; on a sparse graph, and among
        helpers, the loss is against a server that follows the protocol.
        """
        return sum(map(cls._of_sum, sums), start=cls())

    @classmethod
    def unbounded(cls) -> Loss:
        """Return the loss of a sum without noise, which no budget allows."""
        return cls(failure=1.0)

    @classmethod
    def _of_sum(cls, params: RoundParams | OneShotParams) -> Loss:
        check_kind("params", params, (RoundParams, OneShotParams), "a RoundParams")
        noise = params.noise
        if noise is None:
            return cls.unbounded()
        square, elements = Fraction(square_of(params)), params.elements
        if isinstance(params, OneShotParams):
            return cls.of_whole(noise.sigma**2, elements, square)
        m, c = params.min_survivors, noise.colluders
        share = Fraction(Share.of(noise.scaled, m, c).scaled, STEPS)
        found = cls.of_shares(share**2, m - c, elements, square)
        n, k, t = params.n_clients, params.neighbours, params.threshold
        # who lies in an active round asks different clients for different secrets
        server: Adversary = "semi-malicious" if params.active else "semi-honest"
        return replace(found, exposure=exposure(n, k, t, c, m, server))

    @classmethod
    def of_shares(
        cls, variance: Fraction, shares: int, elements: int, sensitivity: Fraction
    ) -> Loss:
        """Return the loss of a sum with noise that clients add, each a share.

        Parameters
        ----------
        variance : Fraction
            s², the variance of a share, at least 16.
        shares : int
            h ≥ 2, the fewest shares that no reader of the sum knows: of m survivors less c
            colluding clients, m − c. More shares make the loss no larger.
        elements : int
            D, elements of a masked vector.
        sensitivity : Fraction
            Δ², the largest squared L2 distance of two encoded vectors of a client, > 0.

        Raises
        ------
        ParameterError
            A value is out of range.
        """
        check_integer("shares", shares, 2, 1 << 20)
        check_integer("elements", elements, 1, 1 << 31)
        for name, value in (("variance", variance), ("sensitivity", sensitivity)):
            check_kind(name, value, (Fraction, int), "a Fraction")
        if not _LEAST <= variance <= _LARGEST:
            raise ParameterError(
                f"a share of noise has the variance {float(variance):g}; it must lie between "
                f"{_LEAST} and 2^56 steps², so encode with more steps or with fewer"
            )
        if sensitivity <= 0:
            raise ParameterError(f"sensitivity must be above 0, not {float(sensitivity):g}")
        total = Fraction(variance) * shares  # at least 32, for which η is proven
        between = 10 * shares * math.exp(-(math.pi**2) * float(variance))
        ratio = math.sqrt(sensitivity / total)
        # two forms of the bound: the first is smaller for many elements, the second for few
        concentrated = min(
            ratio**2 + between * elements / 2, (ratio + between * math.sqrt(elements)) ** 2
        )
        return cls(
            squares=_up(sensitivity / (total - Fraction(1, 12))),
            rho=_up(Fraction(concentrated * ROUNDED) / 2),
            law=Distance.of(elements, _eta(total) + between + _CONDITIONED),
            sampler=Distance.of(elements * shares, _SAMPLE_ERROR),
            failure=elements * (6 * _TAIL + shares * _TABLE_ERROR) * ROUNDED,
        )

    @classmethod
    def of_whole(cls, variance: Fraction, elements: int, sensitivity: Fraction) -> Loss:
        """Return the loss of a sum with exact discrete Gaussian noise of a single party.

        Arguments are as in `of_shares`, with the variance σ² > 0.
        """
        proven = variance >= _PROVEN
        eta = _eta(variance) if proven else _UNPROVEN
        return cls(
            squares=_up(sensitivity / (variance - Fraction(1, 12) if proven else variance)),
            rho=_up(sensitivity / (2 * variance)),
            law=Distance.of(elements, eta + _CONDITIONED),
            failure=elements * 6 * _TAIL * ROUNDED,
        )

    def __add__(self, other: Loss) -> Loss:
        return Loss(
            self.squares + other.squares,
            self.rho + other.rho,
            self.law + other.law,
            self.sampler + other.sampler,
            self.failure + other.failure,
            self.exposure + other.exposure,
        )

    def __mul__(self, sums: int) -> Loss:
        """Return the loss of so many sums like these."""
        check_integer("the number of sums", sums, 0, 1 << 40)
        if not sums:
            return Loss()
        return Loss(
            self.squares * sums,
            self.rho * sums,
            self.law * sums,
            self.sampler * sums,
            self.failure * sums,
            self.exposure * sums,
        )

    def epsilon(self, delta: float) -> float:
        """Return ε of the (ε, δ)-differential privacy that is left, ∞ if there is none.

        Parameters
        ----------
        delta : float
            δ, 0 < δ < 1, well below 1 / number of clients.

        Raises
        ------
        ParameterError
            `delta` is out of range.
        MissingExtra
            dp-accounting is not installed: ``pip install "secagg[privacy]"``.
        """
        if not is_real(delta) or not 0 < delta < 1:
            raise ParameterError(f"delta must be above 0 and below 1, not {delta!r}")
        left = delta - self.exposure
        if left <= 0 or self.failure >= 1:
            return math.inf
        if not self.squares:
            return 0.0
        sampled = self.sampler.slack
        gaussian = partial(epsilon_of, self.squares)
        return min(
            self._within(gaussian, left, self.law.slack + sampled),
            self._within(of_concentrated(self.rho), left, sampled),
        )

    def _within(self, bound: _Bound, delta: float, a: float) -> float:
        """Return ε of sums that differ from a mechanism with a bound.

        Let M ≤ e^a (M' + f) and M' ≤ e^a (M + f) for any set of results, and let M' be
        (ε, δ')-private. Then M is (ε + 2a, e^a (δ' + f (1 + e^(ε + a))))-private.
        """
        found = 0.0
        while math.isfinite(found + a):
            beyond = self.failure * (1 + math.exp(min(found + a, 700.0)))
            left = delta * math.exp(-a) - beyond
            if left <= 0:
                break
            needed = bound(left)
            if needed <= found:
                return found + 2 * a
            found = needed * ROUNDED
        return math.inf


def _eta(variance: Fraction) -> float:
    """Return η for v ≥ 32."""
    return 7.2 / float(variance) ** 2


def _up(value: Fraction) -> Fraction:
    return Fraction(math.ceil(value * GRAIN), GRAIN)


def of_concentrated(rho: Fraction) -> _Bound:
    """Return the bound of mechanisms with zero-concentrated privacy, Σ ρ."""
    with needing("ε", "'secagg[privacy]'", "dp_accounting"):
        import dp_accounting
        from dp_accounting import rdp
    # the divergence of such an event is ρ α, for neighbours of any kind
    accountant = rdp.RdpAccountant(ORDERS, dp_accounting.NeighboringRelation.REPLACE_ONE)
    accountant.compose(dp_accounting.ZCDpEvent(float(rho)))
    return lambda delta: float(accountant.get_epsilon(delta)) * ROUNDED
