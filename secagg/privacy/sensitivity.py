"""Sensitivity of a sum: the norm that a client's encoded vector has at most."""

from __future__ import annotations

from secagg.oneshot import OneShotParams
from secagg.protocol import RoundParams


def square_of(params: RoundParams | OneShotParams) -> int:
    """Return Δ², the largest squared L2 distance of a client's encoded input from zeros.

    For `Bounded` Δ² is B, which the client checks in exact integers. Otherwise Δ² is
    d (W M)² + W², and with `count_clipped` d² more. W is `max_weight`; without weights W is 1
    and the second term 0. M is ``encoding.max_encoded``.
    """
    if params.rotated is not None:
        return params.rotated.squared_norm
    largest = params.encoding.max_encoded * (params.max_weight or 1)
    counted = params.length if params.count_clipped else 0
    return params.length * largest**2 + (params.max_weight or 0) ** 2 + counted**2
