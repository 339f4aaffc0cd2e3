"""Noise of a job's sums, from the arguments of a controller, which are JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import msgspec

from secagg._check import check_kind
from secagg.errors import ParameterError
from secagg.privacy import Budget, plan
from secagg.privacy.noised import Noised, check_bounded
from secagg.protocol import Noise


class Given(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Noise as in a job; see `SecAggFedAvg` for the fields."""

    epsilon: float | None = None
    delta: float | None = None
    rounds: int | None = None
    sigma: float | None = None
    min_survivors: int | None = None
    colluders: int | None = None

    @classmethod
    def read(cls, noise: Mapping[str, float]) -> Given:
        """Return the noise of a dict; raise `ParameterError` for other fields and types."""
        check_kind("noise", noise, Mapping, 'a dict, such as {"epsilon": 2, "delta": 1e-6}')
        try:
            found = msgspec.convert(dict(noise), cls)
        except msgspec.ValidationError as error:
            raise ParameterError(f"noise is {noise!r}: {error}; see SecAggFedAvg") from None
        planned = found.sigma is None
        if planned and None in (found.epsilon, found.delta):
            raise ParameterError(f"noise is {noise!r}; it needs epsilon and delta, or sigma")
        if not planned and (found.epsilon, found.delta, found.rounds) != (None, None, None):
            raise ParameterError(
                f"noise is {noise!r}; sigma states the noise, so leave epsilon, delta and "
                "rounds out"
            )
        return found

    @property
    def exact(self) -> Noise | None:
        """Noise of a stated σ; None for the noise of a budget."""
        return None if self.sigma is None else Noise(Fraction(self.sigma), self.colluders or 0)

    @property
    def budget(self) -> Budget | None:
        """Budget; None for a stated σ."""
        if self.epsilon is None or self.delta is None:
            return None
        return Budget(self.epsilon, self.delta)


def noise_of_helpers(noise: Mapping[str, float] | None, max_weight: int | None) -> Noise | None:
    """Return the noise that helpers add; raise `ParameterError` unless "sigma" is alone."""
    if noise is None:
        return None
    found = Given.read(noise)
    if found != Given(sigma=found.sigma) or max_weight is not None:
        raise ParameterError(
            f"noise is {noise!r}, max_weight {max_weight}, and helpers add noise to one-shot "
            'sums, without weights: pass {"sigma": …} alone'
        )
    return found.exact


@dataclass(frozen=True)
class JobNoise:
    """Updates of bounded norm, and their noise, in the sums of a job.

    Attributes
    ----------
    given : Given
    norm : float or None
    sites, rounds, fractional_bits : int
        Arguments of the controller.
    """

    given: Given | None
    norm: float | None
    sites: int
    rounds: int
    fractional_bits: int

    @classmethod
    def of(
        cls,
        noise: Mapping[str, float] | None,
        norm: float | None,
        clip: float | None,
        max_weight: int | None,
        *numbers: int,
    ) -> JobNoise | None:
        """Return the noise of a job, or None; raise `ParameterError` if arguments differ."""
        if norm is None and noise is None:
            if clip is None:
                raise ParameterError("a sum without noise needs clip=…; pass it, or norm=…")
            return None
        check_bounded(clip, max_weight)
        return cls(None if noise is None else Given.read(noise), norm, *numbers)

    @property
    def budget(self) -> Budget | None:
        """Budget of the job; None without epsilon."""
        return None if self.given is None else self.given.budget

    def of_length(self, length: int) -> Noised:
        """Return the settings of sums with so many elements; see `Noised`."""
        given = self.given or Given()
        if (budget := given.budget) is None:
            return Noised.of(given.exact, self.norm, given.min_survivors, self.fractional_bits)
        if self.norm is None:
            raise ParameterError("noise needs a bound of the updates; pass norm=…")
        found = plan(
            self.sites,
            length,
            norm=self.norm,
            epsilon=budget.epsilon,
            delta=budget.delta,
            rounds=self.rounds if given.rounds is None else given.rounds,
            min_survivors=given.min_survivors,
            colluders=given.colluders,
        )
        return Noised.of(found, None, None, self.fractional_bits)
