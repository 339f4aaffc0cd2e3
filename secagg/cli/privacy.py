"""Noise of one-shot sums: the option, and the privacy of a client in words."""

from __future__ import annotations

import math
from contextlib import suppress
from fractions import Fraction
from typing import Annotated, cast

import typer

from secagg._printable import at_least
from secagg.cli.console import Document
from secagg.cli.lines import fact
from secagg.cli.planned_noise import DELTA
from secagg.encoding import FixedPoint
from secagg.errors import MissingExtra
from secagg.oneshot import Noise, OneShotParams
from secagg.privacy import Budget, Loss, against, epsilon
from secagg.protocol import RoundParams

# well below 1 / n for every n
_DELTA = 1e-9

NoiseSigma = Annotated[
    float | None,
    typer.Option(
        "--noise",
        help="Standard deviation of the noise that helpers add, in steps of the encoding: "
        f"2^-{FixedPoint.fractional_bits}, or 1 for integers.",
        show_default="no noise",
    ),
]


def as_noise(sigma: float | None) -> Noise | None:
    """Return the noise of a standard deviation in steps, or None."""
    # Noise turns a float into a Fraction
    return None if sigma is None else Noise(cast("Fraction", sigma))


def privacy_of(params: OneShotParams) -> Document:
    """Return the noise, its error, ε and δ, ε of ledgers, and against whom, for JSON.

    Both ε are None without dp-accounting, and ε of ledgers if budgets near it have no room.
    """
    if params.noise is None:
        return {}
    found = counted = None
    with suppress(MissingExtra):
        found, counted = epsilon(params, _DELTA), _counted(Loss.of(params))
    sigma, scale = float(params.noise.sigma), getattr(params.encoding, "scale", 1.0)
    return {
        "noise": sigma,
        "error": sigma * math.sqrt(params.seeds) / scale,
        "epsilon": found,
        "delta": _DELTA,
        "epsilon_ledger": counted,
        "delta_ledger": DELTA,
        "against": against(params),
    }


def _counted(loss: Loss) -> float | None:
    """Return ε as a ledger counts the loss; None if budgets near this ε have no room.

    A budget bounds the distance from Gaussian noise, which is large for noise of few steps.
    """
    found = loss.epsilon(DELTA)
    finite = found < math.inf
    return found if finite and Budget(max(1.01 * found, 1e-6), DELTA).allows(loss) else None


def in_words(privacy: Document, seeds: int) -> dict[str, str]:
    """Return the noise of a sum and the privacy of a client, in words."""
    known, counted = privacy["epsilon"], privacy["epsilon_ledger"]
    stated = "ε needs the extra privacy" if known is None else f"ε = {at_least(known)}"
    refused = stated if known is None else "refused, for too little noise or too few steps"
    ledger = refused if counted is None else f"ε = {at_least(counted)}"
    return {
        "noise": f"{privacy['noise']:g} steps, of each of {seeds} seeds",
        "error of the sum": f"{privacy['error']:.3g} an element",
        "privacy": f"{stated}, δ = {privacy['delta']:g}, for any change of a vector in one sum",
        "a client's ledger": f"{ledger}, δ = {privacy['delta_ledger']:g}, against zeros",
        "against": str(privacy["against"]),
    }


def told(params: RoundParams | OneShotParams) -> Document:
    """Print the privacy of a client in a noised sum, and return the numbers."""
    if not isinstance(params, OneShotParams) or params.noise is None:
        return {}
    privacy = privacy_of(params)
    for name, text in in_words(privacy, params.seeds).items():
        fact(f"{name}: {text}")
    fact("Each sum of a client costs so much; the costs of several sums add up.")
    return privacy
