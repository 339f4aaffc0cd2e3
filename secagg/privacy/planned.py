"""Plan of noised sums: steps of the encoding, noise and bits, and the error to expect."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from secagg._check import check_integer
from secagg.encoding.bounded import Bounded, Rotated
from secagg.errors import ParameterError
from secagg.graph.graph import Adversary, Recommendation
from secagg.privacy.budget import EXPOSED, Budget
from secagg.privacy.gaussian import sigma_of
from secagg.privacy.loss import GRAIN, Loss
from secagg.protocol import RoundParams
from secagg.protocol.noise import STEPS, Noise
from secagg.protocol.shape import Security
from secagg.protocol.suggestion import suggest_graph, suggest_pair
from secagg.protocol.suites import SuiteName

_MOST_BITS = 128
"""Largest `sigma` of a graph."""


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
        # a graph exposes a client with the rest of δ at most, see `params`
        return self._loss(4 * self.square).epsilon(self.budget.delta * (1 - EXPOSED))

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
        if neighbours == "auto":
            k, t = self.graph(security, threshold=threshold)
        else:
            k, t = suggest_pair(*self._assumed, security, neighbours, threshold)
            t = self._answering(t, threshold)
        found = self._params((k, t), security, session, suite)
        if not self._allows(found):
            raise self._exposing(k, t)
        return found

    def graph(
        self,
        server: Adversary | Literal["active"] = "semi-honest",
        sigma: int = 40,
        eta: int = 30,
        *,
        threshold: int | None = None,
    ) -> Recommendation:
        """Return the first graph of so many bits or more that is safe enough for all sums.

        All sums together expose a client more often than one sum, so they need more bits.

        Parameters
        ----------
        server
            The `security` of `secagg.graph.recommend`, or "active" for a server that may lie.
        sigma, eta
            See `secagg.graph.recommend`.
        threshold : int, optional
            t, at most m, in place of the smallest private threshold.

        Raises
        ------
        ParameterError
            A value is out of range, or no graph is safe enough.
        """
        check_integer("sigma", sigma, 1, _MOST_BITS)
        security: Security = "active" if server == "active" else "semi-honest"
        least = math.ceil(math.log2(self.rounds / (self.budget.delta * EXPOSED)))
        for bits in range(min(_MOST_BITS, max(sigma, least)), _MOST_BITS + 1):
            found = suggest_graph(*self._assumed, server, bits, eta)
            k, t = found.neighbours, self._answering(found.threshold, threshold)
            if self._allows(self._params((k, t), security, b"any", None)):
                rest = found.highest_threshold, found.privacy_bits, found.completion_bits
                return Recommendation(k, t, *rest)
            if k is None:  # more bits would change nothing
                break
        raise self._exposing(k, t)

    @property
    def _assumed(self) -> tuple[int, float, float]:
        """n, and the fractions of the clients that collude and that drop out."""
        n, gone = self.n_clients, self.n_clients - self.min_survivors
        # halves less: a count is rounded up from a fraction, which a float has not exactly
        corrupt, dropout = (max(0.0, x - 0.5) / n for x in (self.colluders, gone))
        return n, corrupt, dropout

    def _answering(self, suggested: int, threshold: int | None) -> int:
        """Return the threshold of a caller, or a suggested one, that m survivors reach."""
        m = self.min_survivors
        if threshold is not None and threshold > m:
            raise ParameterError(
                f"threshold is {threshold}, but the noise is planned for {m} survivors; plan "
                f"with min_survivors={threshold} or more"
            )
        return min(suggested, m) if threshold is None else threshold

    def _params(
        self,
        graph: tuple[int | None, int],
        security: Security,
        session: bytes,
        suite: SuiteName | None,
    ) -> RoundParams:
        neighbours, threshold = graph
        return RoundParams(
            n_clients=self.n_clients,
            threshold=threshold,
            length=self.length,
            encoding=self.encoding,
            modulus_bits=self.modulus_bits,
            neighbours=neighbours,
            session=session,
            count_clipped=self.count_clipped,
            security=security,
            suite=suite,
            noise=self.noise,
            min_survivors=self.min_survivors,
        )

    def _allows(self, params: RoundParams) -> bool:
        """Return whether all sums with such parameters are within the budget."""
        return self.budget.allows(Loss.of(params) * self.rounds)

    def _exposing(self, neighbours: int | None, threshold: int) -> ParameterError:
        sums = "1 sum" if self.rounds == 1 else f"{self.rounds} sums"
        graph, remedy = f"neighbours={neighbours}", "more neighbours"
        if neighbours is None:
            graph, remedy = "the complete graph", "fewer colluders"
        return ParameterError(
            f"{graph} and threshold={threshold} expose a client of {sums} too often for delta "
            f"{self.budget.delta:g}; take {remedy}, or a larger threshold"
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
