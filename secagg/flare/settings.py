"""Parameters of a job's rounds, from the arguments of the job's controller."""

from __future__ import annotations

from secagg.encoding import FixedPoint
from secagg.protocol import RoundParams
from secagg.protocol.shape import Security


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
    """Return the parameters of a round of some sites; see `RoundParams.suggest`.

    A given threshold counts among all sites, on the complete graph.
    """
    return RoundParams.suggest(
        sites,
        length,
        FixedPoint(clip=clip, fractional_bits=fractional_bits),
        security=security,
        max_weight=max_weight,
        neighbours="auto" if threshold is None else None,
        threshold=threshold,
        session=b"flare",
    )
