"""Picture of docs/differential-privacy.md: the error of a noised mean against ε and clients.

``python -m benches.privacy_error`` draws docs/pictures/privacy.svg from `secagg.privacy.plan`;
nothing is measured.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from secagg._files import replace_file
from secagg.kit.picture import BLUE, DIM, GREEN, VERMILION, blank, plain, style, svg
from secagg.privacy import plan

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PICTURE = Path(__file__).parent.parent / "docs" / "pictures" / "privacy.svg"
LENGTH, DELTA = 100_000, 1e-6
COHORTS = ((100, VERMILION, "s"), (1000, BLUE, "o"), (10_000, GREEN, "^"))
EPSILONS = 2.0 ** np.arange(-2, 4)


def errors(clients: int) -> list[float]:
    """Return the norm of the error of the mean, in units of C, for each ε."""
    plans = (
        plan(
            clients,
            LENGTH,
            norm=1,
            epsilon=float(epsilon),
            delta=DELTA,
            min_survivors=clients * 9 // 10,
            colluders=clients // 20,
        )
        for epsilon in EPSILONS
    )
    return [each.error_norm() for each in plans]


def draw() -> Figure:
    """Draw the error against ε, a line for each number of clients."""
    title = "Error of the mean of one noised sum"
    found = {clients: errors(clients) for clients, *_ in COHORTS}
    numbers = "; ".join(f"{n:,} clients: {each[3]:.2g}" for n, each in found.items())
    with style():
        whole = blank(300, f"{title} against ε, in units of the norm C. At ε = 2, {numbers}.")
        axes = whole.subplots()
        for clients, colour, mark in COHORTS:
            values = found[clients]
            axes.plot(EPSILONS, values, color=colour, marker=mark, ms=5)
            _label(axes, f"{clients:,} clients", (EPSILONS[0], values[0]), colour)
        axes.axhline(1, color=DIM, lw=1, ls="--")
        _label(axes, "largest norm of a vector", (EPSILONS[0], 1), DIM)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
        axes.set_xlabel(f"ε of one sum, δ = 10⁻⁶, {LENGTH:,} elements")
        axes.set_title(f"{title}: norm, in units of C")
        axes.margins(y=0.12)
        plain(axes)
    return whole


def _label(axes: Axes, text: str, at: tuple[float, float], colour: str) -> None:
    axes.annotate(text, at, xytext=(8, 6), textcoords="offset points", color=colour)


def main() -> None:
    """Write the picture."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    replace_file(PICTURE, svg(draw()))


if __name__ == "__main__":
    main()
