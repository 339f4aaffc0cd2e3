"""Noise of one-shot sums: the option, and the privacy of a client in words."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, cast

import typer

from secagg.cli.console import Document
from secagg.cli.lines import fact
from secagg.encoding import FixedPoint
from secagg.errors import MissingExtra
from secagg.oneshot import Noise, OneShotParams, epsilon
from secagg.privacy import against
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
    """Return the noise with ε and δ, and against whom; ε is None without dp-accounting."""
    if params.noise is None:
        return {}
    try:
        found = epsilon(params, _DELTA)
    except MissingExtra:
        found = None
    promised: Document = {"epsilon": found, "delta": _DELTA, "against": against(params)}
    return {"noise": float(params.noise.sigma)} | promised


def in_words(privacy: Document, seeds: int) -> dict[str, str]:
    """Return the noise of a sum and the privacy of a client, in words."""
    known = privacy["epsilon"]
    stated = "ε needs dp-accounting" if known is None else f"ε = {known:.3g}"
    return {
        "noise": f"{privacy['noise']:g} steps, of each of {seeds} seeds",
        "privacy": f"{stated}, δ = {privacy['delta']:g}, for any change of one vector",
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
