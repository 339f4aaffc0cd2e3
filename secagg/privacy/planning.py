"""Plan of noised sums: steps of the encoding, noise and bits, and the error to expect."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

from secagg._check import check_flag, check_integer
from secagg._printable import in_short
from secagg.encoding.bounded import Bounded, Rotated
from secagg.errors import ParameterError
from secagg.graph.graph import CORRUPT, DROPOUT, count
from secagg.privacy.budget import EXPOSED, Budget
from secagg.privacy.gaussian import sigma_of
from secagg.privacy.loss import GRAIN, Loss
from secagg.protocol import RoundParams
from secagg.protocol.noise import LARGEST_SHARE, LEAST_SHARE, STEPS, Noise
from secagg.protocol.shape import Security
from secagg.protocol.suggestion import suggest_pair
from secagg.protocol.suites import SuiteName

_MOST_STEPS = 1 << 30
_BITS = range(2, 63)
_COST = 1.02
"""Largest factor of the error by which rounding is worth fewer bits."""


@dataclass(frozen=True)
class Plan:
    """Settings of noised sums, and the error to expect; `plan` finds a plan.

    Each client clips a vector to the norm C, rotates the vector, rounds the elements to
    integers, S steps for C, and adds a share of the noise.

    Attributes
    ----------
    n_clients, length, rounds, min_survivors, colluders : int
        n, d, the number of sums, m and c.
    norm : float
        C, the largest L2 norm of a client's vector.
    budget : Budget
        ε and δ of all sums together, for a client's vectors or zeros in their place.
    count_clipped : bool
        Whether an element counts the clipped vectors.
    steps : int
        S, the number of steps for C.
    modulus_bits : int
        Bits of an element in a message.
    """

    n_clients: int
    length: int
    rounds: int
    min_survivors: int
    colluders: int
    norm: float
    budget: Budget
    count_clipped: bool
    steps: int
    modulus_bits: int

    @property
    def encoding(self) -> Bounded:
        """Encoding of the vectors."""
        return Bounded(self.norm, self.steps)

    @property
    def noise(self) -> Noise:
        """Noise of a sum."""
        return Noise(self.sigma, self.colluders)

    @property
    def _rotated(self) -> Rotated:
        return self.encoding.of_round(b"", self.length, counts=self.count_clipped)

    @property
    def elements(self) -> int:
        """D, the elements of a message: the length, padded to a power of two."""
        return self._rotated.elements

    @property
    def message(self) -> int:
        """Bytes of a vector in a message."""
        return -(-self.elements * self.modulus_bits // 8)

    @property
    def square(self) -> int:
        """B, the largest squared norm of a rounded vector, in steps²."""
        return self._rotated.squared_norm

    @property
    def honest(self) -> int:
        """The fewest shares of noise that the server cannot know, m − c."""
        return self.min_survivors - self.colluders

    @property
    def share(self) -> Fraction:
        """s, the standard deviation of a share of the noise, in steps."""
        # the loss of each sum is rounded up to the grain
        each = self.budget.squares / self.rounds - Fraction(1, GRAIN)
        variance = self.square / each + Fraction(1, 12)
        return Fraction(math.isqrt(math.ceil(variance * STEPS**2 / self.honest) - 1) + 1, STEPS)

    @property
    def sigma(self) -> Fraction:
        """σ, the standard deviation of the noise that is left in the worst case, in steps."""
        return Fraction(math.isqrt(int((self.share * STEPS) ** 2) * self.honest), STEPS)

    @property
    def smallest_modulus(self) -> int:
        """The least R for which a sum rarely wraps; see `Rotated.smallest_modulus`."""
        return self._rotated.smallest_modulus(self.n_clients, self.share**2)

    @property
    def loss(self) -> Loss:
        """Loss of all sums, for a client's vectors or zeros in their place."""
        return self._loss(self.square)

    @property
    def epsilon_replaced(self) -> float:
        """ε of all sums, for a client's vectors or any other vectors in their place."""
        return self._loss(4 * self.square).epsilon(self.budget.delta)

    def _loss(self, square: int) -> Loss:
        one = Loss.of_shares(self.share**2, self.honest, self.elements, Fraction(square))
        return one * self.rounds

    def params(
        self,
        *,
        session: bytes = b"",
        security: Security = "semi-honest",
        neighbours: int | Literal["auto"] | None = "auto",
        threshold: int | None = None,
        suite: SuiteName | None = None,
    ) -> RoundParams:
        """Return the parameters of a sum of this plan.

        Graph and threshold are for c colluders and n − m clients that drop out, as by
        `RoundParams.suggest`. A graph exposes no client in all sums together, but for the part
        of δ that budgets set aside for exposures.

        Parameters
        ----------
        session, security, suite
            See `RoundParams`.
        neighbours, threshold
            See `RoundParams.suggest`.

        Raises
        ------
        ParameterError
            A value is out of range, or no graph is safe enough.
        """
        n, m = self.n_clients, self.min_survivors
        # halves less: a count is rounded up from a fraction, which a float has not exactly
        corrupt, dropout = (max(0.0, x - 0.5) / n for x in (self.colluders, n - m))
        least = math.ceil(math.log2(self.rounds / (self.budget.delta * EXPOSED)))
        for sigma in range(min(128, max(40, least)), 129):
            k, t = suggest_pair(n, corrupt, dropout, security, neighbours, threshold, sigma)
            if threshold is None:
                t = min(t, m)
            elif t > m:
                raise ParameterError(
                    f"threshold is {t}, but the noise is planned for {m} survivors; plan with "
                    f"min_survivors={t} or more"
                )
            found = RoundParams(
                n_clients=n,
                threshold=t,
                length=self.length,
                encoding=self.encoding,
                modulus_bits=self.modulus_bits,
                neighbours=k,
                session=session,
                count_clipped=self.count_clipped,
                security=security,
                suite=suite,
                noise=self.noise,
                min_survivors=m,
            )
            if self.budget.allows(Loss.of(found) * self.rounds):
                return found
            if neighbours != "auto":
                break
        raise ParameterError(
            f"neighbours={k} and threshold={t} expose a client of {self.rounds} sums too often "
            f"for delta {self.budget.delta:g}; take more neighbours, or a larger threshold"
        )

    def error(self, survivors: int | None = None) -> float:
        """Return the standard deviation of an element of the mean, noise and rounding.

        Parameters
        ----------
        survivors : int, optional
            Number of clients in the sum; all by default.
        """
        known = self.n_clients if survivors is None else survivors
        check_integer("survivors", known, self.min_survivors, self.n_clients)
        step = self.norm / self.steps
        return step * math.sqrt((float(self.share) ** 2 + 0.25) / known)

    def error_norm(self, survivors: int | None = None) -> float:
        """Return the norm of the mean's error, √d times the error of an element."""
        return self.error(survivors) * math.sqrt(self.length)

    @property
    def factors(self) -> dict[str, float]:
        """Factors by which the error exceeds a trusted server's, if no client drops out.

        "total" is the product of "dropouts", "count" and "rounding". Dropouts and colluders
        cost √(n / (m − c)). A trusted server adds exact Gaussian noise to the exact sum.
        """
        dropouts = math.sqrt(self.n_clients / self.honest)
        counting = math.sqrt(257 / 256) if self.count_clipped else 1.0
        trusted = (
            self.norm
            * sigma_of(self.budget.epsilon, self.budget.delta)
            * math.sqrt(self.rounds)
            / self.n_clients
        )
        total = self.error() / trusted
        rounding = total / dropouts / counting
        parts = {"dropouts": dropouts, "rounding": rounding, "count": counting}
        return {"total": total, **parts}


def plan(
    n_clients: int,
    length: int,
    *,
    norm: float,
    epsilon: float,
    delta: float,
    rounds: int = 1,
    min_survivors: int | None = None,
    colluders: int | None = None,
    bits: int | None = None,
    count_clipped: bool = False,
) -> Plan:
    """Find the noise, the steps and the bits for a budget.

    Parameters
    ----------
    n_clients : int
        n, 3 to 2^20.
    length : int
        d, elements of a vector, at most 2^30.
    norm : float
        C, the L2 norm to which clients clip their vectors, 2^−100 ≤ C ≤ 2^100.
    epsilon, delta : float
        Budget of all sums together, for a client's vectors or zeros in their place.
    rounds : int
        Number of sums, attempts that fail after the masked inputs included.
    min_survivors : int, optional
        m, the fewest clients of a sum. By default a tenth of n may drop out.
    colluders : int, optional
        c ≤ m − 2, clients that tell the server their shares. By default a fifth of n.
    bits : int, optional
        Bits of an element, 2 to 62. By default the fewest with which rounding costs at most
        2 % of the error.
    count_clipped : bool
        True: an element of each sum counts the clipped vectors, with noise.

    Raises
    ------
    ParameterError
        An argument is out of range, or no plan has so few bits.
    MissingExtra
        dp-accounting is not installed: ``pip install "secagg[privacy]"``.
    """
    check_integer("n_clients", n_clients, 3, 1 << 20)
    check_integer("length", length, 1, 1 << 30)
    check_integer("rounds", rounds, 1, 1 << 30)
    check_flag("count_clipped", count_clipped)
    norm = Bounded(norm, 1).norm
    if bits is not None:
        check_integer("bits", bits, _BITS[0], _BITS[-1])
    m = n_clients - count(DROPOUT, n_clients) if min_survivors is None else min_survivors
    check_integer("min_survivors", m, 2, n_clients)
    c = count(CORRUPT, n_clients) if colluders is None else colluders
    check_integer("colluders", c, 0, n_clients)
    if c > m - 2:
        raise ParameterError(
            f"colluders is {c}, but at most {m - 2} of {m} survivors may tell their noise; "
            "take fewer colluders, or more survivors"
        )
    budget = Budget(epsilon, delta)
    if budget.squares <= rounds * Fraction(2, GRAIN):
        raise ParameterError(
            f"epsilon {in_short(epsilon)} and delta {in_short(delta)} are out of range for "
            f"{rounds} sums; take epsilon below 30, a larger delta, or fewer rounds"
        )
    start = Plan(n_clients, length, rounds, m, c, norm, budget, count_clipped, 1, _BITS[0])
    for width in _BITS if bits is None else [bits]:
        found = _finest(replace(start, modulus_bits=width))
        if found and (bits is not None or found.factors["rounding"] <= _COST):
            return found
    few = "no number of bits holds" if bits is None else f"{bits} bits do not hold"
    raise ParameterError(
        f"{few} sums within epsilon {in_short(epsilon)} and delta {in_short(delta)} for "
        f"rounds={rounds}; take more bits, fewer rounds, a larger delta, or a larger epsilon "
        "below 30"
    )


def _finest(start: Plan) -> Plan | None:
    """Return the plan of the most steps that fit into a plan's bits, if any is private."""
    low, high = 0, _MOST_STEPS
    while low < high:
        middle = (low + high + 1) // 2
        fits = replace(start, steps=middle).smallest_modulus <= 1 << start.modulus_bits
        low, high = (middle, high) if fits else (low, middle - 1)
    if not low:
        return None
    found = replace(start, steps=low)
    enough = LEAST_SHARE <= found.share * STEPS <= LARGEST_SHARE
    return found if enough and found.budget.allows(found.loss) else None
