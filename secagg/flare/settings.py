"""Parameters of a job's rounds, from the arguments of its controller."""

from __future__ import annotations

from secagg.encoding import FixedPoint
from secagg.protocol import RoundParams
from secagg.protocol.headroom import modulus_bits
from secagg.protocol.params import Security

__all__ = ["round_params", "two_thirds"]


def two_thirds(sites: int) -> int:
    """Return the smallest number of sites above two thirds of all."""
    return 2 * sites // 3 + 1


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
        modulus_bits=modulus_bits(sites, encoding, max_weight or 1),
        max_weight=max_weight,
        security=security,
        session=b"flare",
    )
