"""Parameters of a job's rounds, from the arguments of its controller."""

from __future__ import annotations

from secagg.encoding import FixedPoint
from secagg.protocol import RoundParams
from secagg.protocol.params import Security

__all__ = ["modulus_bits", "round_params", "two_thirds"]


def two_thirds(sites: int) -> int:
    """Return the smallest number of sites above two thirds of all."""
    return 2 * sites // 3 + 1


def modulus_bits(sites: int, encoding: FixedPoint, max_weight: int | None) -> int:
    """Return the bits of the smallest modulus that suffices for a sum of some sites."""
    weight = max_weight or 1
    largest = sites * max(encoding.max_encoded * weight, weight)
    return min(64, (2 * largest).bit_length())


def round_params(
    sites: int,
    length: int,
    *,
    clip: float,
    fractional_bits: int,
    max_weight: int | None,
    threshold: int | None,
    security: Security,
) -> RoundParams:
    """Return the parameters of a round of some sites, with the smallest modulus that suffices.

    The threshold is the smallest above two thirds if none is given. See `RoundParams`.
    """
    encoding = FixedPoint(clip=clip, fractional_bits=fractional_bits)
    return RoundParams(
        n_clients=sites,
        threshold=two_thirds(sites) if threshold is None else threshold,
        length=length,
        encoding=encoding,
        modulus_bits=modulus_bits(sites, encoding, max_weight),
        max_weight=max_weight,
        security=security,
        session=b"flare",
    )
