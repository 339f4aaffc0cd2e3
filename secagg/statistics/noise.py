"""Noise of a study: sensitivities by the plan, scales of the sums, and errors of the results.

A step's vector is scaled so that the same noise on every element spends on each field the
declared part of the budget: ρ = Δ² / 2σ² (Canonne, Kamath and Steinke 2020, section 2), and the
ρ of fields and steps add up. docs/studies.md has the proof.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar, Literal, TypeAlias, cast, get_args

import numpy as np
from numpy.typing import NDArray

from secagg._check import check_integer, check_kind
from secagg.encoding import Integers
from secagg.errors import ParameterError
from secagg.graph.graph import Adversary, lowest_complete
from secagg.oneshot import OneShotParams
from secagg.privacy import Loss
from secagg.privacy.ledger import Unit as LedgerUnit
from secagg.privacy.sensitivity import square_of
from secagg.protocol import RoundParams
from secagg.protocol.noise import Noise
from secagg.protocol.shape import Security
from secagg.statistics.budget import FAILURE, LEAST, is_covered, rho_of
from secagg.statistics.columns import Real, decimal_text, exact
from secagg.statistics.layout import Exact, Field, Step

Unit: TypeAlias = Literal["record", "site"]
SIGMA = 1 << 20
"""σ in steps: rounding to a step is a millionth of the noise."""
_ROUNDED = 1 + 1e-9
"""Factor that exceeds the errors of floats."""
LARGEST = (1 << 50) - 1
"""Largest element of a site; a sum of 8,192 sites does not fit in 63 bits."""


@dataclass(frozen=True)
class Privacy:
    """Differential privacy of a study: (ε, δ) for a record, or for all records of a site.

    Neighbouring tables differ in one record, added or removed, or in all records of a site,
    all added or all removed.

    Parameters
    ----------
    epsilon : number
        ε > 0 of the whole study.
    delta : number
        δ, 0 < δ < 1, well below 1 / number of records.
    max_records : int
        Most records of a site, 1 to 2^24. A site with more records takes no part.
    unit : "record" or "site"
    noises : number
        Noises in a sum, 1 to 1,000; privacy counts a single noise. One-shot sums have
        C(ℓ, t − 1) for t of ℓ helpers. Sums by the four exchanges have n / (m − c) at most, for
        n sites, m of which are enough, and c colluders.
    colluders : int, optional
        c, the largest number of sites that tell the server their parts of the noise, in sums by
        the four exchanges, whose sites add the noise. None: helpers add the noise, in one-shot
        sums.
    weights : mapping of str to number, optional
        Part of the budget of each statistic by name, and of "records", the missing and clipped
        values; 1 by default.

    Raises
    ------
    ParameterError
        A value is invalid.
    """

    epsilon: Real
    delta: Real
    max_records: int
    unit: Unit = "record"
    noises: Real = 3
    colluders: int | None = None
    weights: Mapping[str, Real] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        check_integer("max_records", self.max_records, 1, 1 << 24)
        if self.colluders is None:
            check_integer("noises", cast(int, self.noises), 1, 1000)
        else:
            check_integer("colluders", self.colluders, 0, 1 << 20)
            self._take_noises()
        check_kind("weights", self.weights, Mapping, "a mapping of statistic to number")
        if self.unit not in get_args(Unit):
            raise ParameterError(f"unit is {self.unit!r}; take one of {get_args(Unit)}")
        weights = {name: decimal_text(exact(name, w)) for name, w in self.weights.items()}
        for name in ("epsilon", "delta"):
            object.__setattr__(self, name, decimal_text(exact(name, getattr(self, name))))
        object.__setattr__(self, "weights", dict(sorted(weights.items())))
        if float(self.epsilon) <= 0 or not 0 < float(self.delta) < 1:
            raise ParameterError(
                f"epsilon is {self.epsilon} and delta {self.delta}; take epsilon above 0, and "
                "delta between 0 and 1"
            )
        covered = is_covered(float(self.epsilon), float(self.delta))
        if not (self.by_helpers or covered):  # samples of a part of the noise are not exact
            raise ParameterError(
                f"epsilon is {self.epsilon} and delta {self.delta}; for noise of the sites "
                f"take epsilon from {LEAST} on, and delta from {FAILURE:.2g} · e^epsilon on"
            )
        if any(Fraction(w) <= 0 for w in weights.values()):
            raise ParameterError(f"weights are {weights}; give each statistic a weight above 0")

    def _take_noises(self) -> None:
        """Store `noises`, an int if they are a whole number, so that equal plans are equal."""
        noises = exact("noises", self.noises)
        if not 1 <= noises <= 1000:
            raise ParameterError(f"noises is {self.noises}; take a number from 1 to 1000")
        whole = noises.denominator == 1
        object.__setattr__(self, "noises", int(noises) if whole else decimal_text(noises))

    @property
    def noise(self) -> Noise:
        """Noise in the parameters of a sum."""
        return Noise(Fraction(SIGMA), self.colluders or 0)

    def of(self, params: OneShotParams | RoundParams) -> bool:
        """Return whether a sum has the declared noise, and as many noises at most.

        Colluders who reach the threshold would rebuild a site's masks, and no other site's part
        of the noise would hide the vector.
        """
        if params.noise != self.noise or isinstance(params, OneShotParams) != self.by_helpers:
            return False
        if isinstance(params, OneShotParams):
            return params.seeds == self.noises
        if params.neighbours is not None or _exposes(params):
            return False  # on a graph no site counts the sites of a sum
        return self.least(params.n_clients) <= params.min_survivors

    @property
    def by_helpers(self) -> bool:
        """True if helpers add the noise, in one-shot sums, False if the sites do."""
        return self.colluders is None

    def least(self, n: int) -> int:
        """Return m, the fewest sites of a sum of n sites at most by the four exchanges."""
        return math.ceil(n / exact("noises", self.noises)) + (self.colluders or 0)

    def threshold(self, n: int, security: Security) -> int:
        """Return the least threshold of n sites by the four exchanges that c do not reach."""
        adversary: Adversary = "semi-malicious" if security == "active" else "semi-honest"
        return lowest_complete(n, self.colluders or 0, adversary)

    @property
    def ledger_unit(self) -> LedgerUnit:
        """Unit of a `secagg.privacy.PrivacyLedger` of this unit: there a site is a client."""
        return "record" if self.unit == "record" else "client"

    @property
    def rho(self) -> float:
        """ρ of the study; the Gaussian mechanism of μ² = 2ρ has no larger loss."""
        return rho_of(float(self.epsilon), float(self.delta))

    def part(self, name: str, names: Sequence[str]) -> float:
        """Return the part of a statistic in the budget."""
        unknown = sorted(set(self.weights) - set(names))
        if unknown:
            raise ParameterError(f"weights names {unknown}; the names are {list(names)}")
        of = {one: float(self.weights.get(one, 1)) for one in names}
        return of[name] / sum(of.values())

    def errors(self, fields: Mapping[str, Field]) -> dict[str, float]:
        """Return the standard deviation of the noise of a sum, for each field."""
        sigma = SIGMA * math.sqrt(float(self.noises))
        return {name: sigma / float(one.factor) for name, one in fields.items()}

    def words(self) -> str:
        """Return what the noise protects, in a sentence."""
        whom = "each record" if self.unit == "record" else "all records of each site together"
        private = f"(ε = {self.epsilon}, δ = {self.delta})-differential privacy"
        who = (
            "fewer helpers than open a sum"
            if self.by_helpers
            else f"at most {self.colluders} sites"
        )
        # sites that leave could open an attempt that failed, beside the attempt after it
        honest = (
            "the server follows" if self.by_helpers else "these sites and the server follow"
        )
        return (
            f"Noise gives {whom} {private}, also against the server, as long as {who} collude "
            f"with the server, and sums are active or {honest} the protocol."
        )


def scale(privacy: Privacy, one: Field, rho: float, norm: float, largest: int) -> Field:
    """Return a field with the factor that fits the noise.

    Parameters
    ----------
    privacy : Privacy
    one : Field
    rho : float
        Budget of the field.
    norm : float
        Largest L2 norm of a record's contribution.
    largest : int
        Largest contribution of a record to an element.

    Raises
    ------
    ParameterError
        The budget is too small, or the sums are too large for 64 bits.
    """
    records = privacy.max_records if privacy.unit == "site" else 1
    # rounding moves each of two neighbours by half a step, √d in all
    room = SIGMA * math.sqrt(2 * rho) - math.sqrt(one.size)
    factor = Fraction(room / (norm * records))
    top = math.ceil(factor * largest * privacy.max_records)
    if not 0 < top <= LARGEST:
        raise ParameterError(
            f"{one.size} numbers of a field do not fit beside the noise; plan a larger "
            "epsilon, fewer numbers, or fewer max_records"
        )
    return replace(one, factor=factor, rho=rho)


class NoisedStep(Step):
    """Step of a study with noise: an element for each number."""

    encoding: ClassVar[Integers] = Integers(LARGEST)
    """The same in all steps, as a session demands."""

    @property
    def square(self) -> Fraction:
        """Δ², the largest squared L2 distance of two neighbours' vectors."""
        rho = sum(one.rho for one in self.fields)  # of each field: ρ = Δ² / 2σ²
        return 2 * SIGMA**2 * Fraction(rho * _ROUNDED)

    def loss(self, params: OneShotParams | RoundParams) -> Loss:
        """Return what a sum with the noise of these parameters spends of a unit's privacy."""
        whole, part = Loss.of(params), self.square / square_of(params)
        return replace(whole, squares=whole.squares * part, rho=whole.rho * part)

    def pack(self, sums: Mapping[str, Any]) -> NDArray[np.int64]:
        """Return a site's vector, before the noise."""
        numbers = (
            (one, x) for one in self.fields for x in np.asarray(sums[one.name], object).flat
        )
        return np.array([round(int(x) * one.factor) for one, x in numbers], np.int64)

    def unpack(self, digits: NDArray[np.int64]) -> dict[str, Exact]:
        """Return estimates of the sums: exact fractions, which can be negative."""
        parts = np.split(digits, np.cumsum([one.size for one in self.fields]))
        return {
            one.name: np.array([int(x) / one.factor for x in part], object).reshape(one.shape)
            for one, part in zip(self.fields, parts, strict=False)
        }


def shown(count: Fraction) -> float:
    """Return a noised number of records, never below 0."""
    return max(0.0, float(count))


def _exposes(params: RoundParams) -> bool:
    """Return whether the noise's colluders can rebuild the masks of all pairs of sites."""
    return params.neighbours is None and Loss.of(params).exposure >= 1


def check_noise(privacy: Privacy | None, params: OneShotParams | RoundParams | None) -> None:
    """Raise `ParameterError` unless a sum has the noise that a plan declares.

    Parameters
    ----------
    privacy : Privacy, optional
        Privacy of the plan. None: the sums are exact.
    params : OneShotParams or RoundParams, optional
        Parameters of the sum. None: a sum without a protocol, and without noise.
    """
    if privacy is None or (params is not None and privacy.of(params)):
        return
    if privacy.by_helpers:
        raise ParameterError(
            f"the plan has noise, which helpers add to one-shot sums, {privacy.noises} times; "
            "take such a way to sum with such helpers, or plan Privacy(noises=…, colluders=…)"
        )
    if isinstance(params, RoundParams) and params.noise == privacy.noise and _exposes(params):
        n = params.n_clients
        raise ParameterError(
            f"the plan has noise for {privacy.colluders} sites that collude, and they can "
            f"rebuild the masks of a sum with threshold {params.threshold} of {n}; take "
            f"threshold {privacy.threshold(n, params.security)} or more"
        )
    raise ParameterError(
        f"the plan has noise, which the sites of four exchanges add, and {privacy.colluders} "
        "may collude; take such a way to sum, with masks of all pairs of sites and at most "
        f"{privacy.noises} noises"
    )
