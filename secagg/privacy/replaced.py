"""ε of sums with the noise of helpers, if a client's report is replaced."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from secagg._check import check_kind
from secagg.errors import ParameterError
from secagg.oneshot.params import OneShotParams
from secagg.privacy.loss import Loss, of_concentrated
from secagg.protocol.noise import as_fraction


def epsilon(
    params: OneShotParams, delta: float, *, sensitivity: float | Fraction | None = None
) -> float:
    """Return ε of the (ε, δ)-differential privacy that each client of a session has.

    Neighbouring data differ in the vector and weight of a single client, and have the same ids.
    A single noise counts: the noise of the seed that the aggregator with t − 1 helpers lacks.
    The sum is ρ-zCDP with ρ = Δ² / 2σ² (Canonne, Kamath and Steinke 2020, §2), if AES-128 is a
    PRG, and from 32 steps² on nearly the Gaussian mechanism: the smaller ε of both.

    A client is in one batch of a session. The ρ of a client's sessions add up.

    Parameters
    ----------
    params : OneShotParams
        Parameters with `noise`.
    delta : float
        δ, 0 < δ < 1, well below 1 / `n_clients`.
    sensitivity : float or Fraction, optional
        Δ, the largest L2 distance of two reports of a client in steps, with the weight, > 0.
        None: the most that the parameters allow, Δ² = d (2 W M)² for signed elements, else
        d (W M)² + W². M is ``encoding.max_encoded``. W is `max_weight`, or 1 and without the
        last term. Give less if *clients* clip the norm of their vectors.

    Raises
    ------
    ParameterError
        A value is out of range, or `params` have no noise.
    MissingExtra
        dp-accounting is not installed: ``pip install "secagg[privacy]"``.
    """
    check_kind("params", params, OneShotParams, "a secagg.oneshot.OneShotParams")
    if params.noise is None:
        raise ParameterError(
            "the parameters have no noise, so sums are exact; pass "
            "OneShotParams(noise=secagg.oneshot.Noise(sigma))"
        )
    if not isinstance(delta, float | np.floating) or not 0 < delta < 1:
        raise ParameterError(f"delta must be a float above 0 and below 1, not {delta!r}")
    if sensitivity is None:
        square = _square(params)
    elif (exact := as_fraction(sensitivity)) is not None and exact > 0:
        square = exact**2
    else:
        raise ParameterError(
            f"sensitivity must be a finite number above 0, not {sensitivity!r}"
        )
    # a neighbour replaces a report: adding or removing a client would change the public ids
    loss = Loss.of_whole(params.noise.sigma**2, params.elements, square)
    # the second bound holds for all noise, without the loss's failure
    return min(
        loss.epsilon(float(delta)),
        of_concentrated(square / (2 * params.noise.sigma**2))(float(delta)),
    )


def _square(params: OneShotParams) -> Fraction:
    """Return Δ² of any two reports of a client."""
    largest = params.length * (params.encoding.max_encoded * (params.max_weight or 1)) ** 2
    from_zero = largest + (params.max_weight or 0) ** 2
    return Fraction(max(from_zero, 4 * largest) if params.encoding.signed else from_zero)
