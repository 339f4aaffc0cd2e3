"""Guarantee of a noised sum in words: against whom the noise holds."""

from __future__ import annotations

from secagg.oneshot import OneShotParams
from secagg.privacy.loss import Loss
from secagg.protocol import RoundParams
from secagg.protocol.shape import Shape


def against(params: RoundParams | OneShotParams) -> str:
    """Return against whom the noise of a sum protects a client, in a sentence without a stop.

    docs/differential-privacy.md has the reasons.
    """
    noise = params.noise
    if noise is None:
        return "nobody: the sum has no noise"
    if isinstance(params, OneShotParams):
        helpers = params.threshold - 1
        also = f" and {helpers} of {len(params.helpers)} helpers" if helpers else ""
        return f"an aggregator that {_does(params)}{also}, with any other clients"
    if Loss.of(params).exposure >= 1:
        return f"nobody: {noise.colluders} colluders can rebuild a client's masks"
    c = noise.colluders
    alone = f"with up to {c} client{'s' * (c > 1)}" if c else "without any client"
    server = f"a server that {_does(params)}, {alone}"
    if params.neighbours is None:
        return server
    return f"{server}; no guarantee against a server that lies about survivors"


def _does(params: Shape) -> str:
    return "does anything" if params.active else "follows the protocol"
