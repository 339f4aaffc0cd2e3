"""Picture of a comparison: seconds and bytes of a round, by variant and length."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median
from textwrap import fill
from typing import TYPE_CHECKING

from benches.flower_rounds.measure import Round
from benches.flower_rounds.report import facts, lengths, values
from benches.flower_rounds.variants import VARIANTS
from secagg.kit.picture import BLUE, DIM, ORANGE, blank, plain, style
from secagg.kit.table import duration, volume

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_PANELS: tuple[tuple[str, str, str, Callable[[float], str]], ...] = (
    ("seconds", "a round takes", BLUE, duration),
    ("up", "a node sends", ORANGE, volume),
)


def draw(rounds: Sequence[Round]) -> Figure:
    """Draw a panel for each length and figure, from at least one round.

    A small mark is a round, and a bar the median of a variant.
    """
    names = [name for name in VARIANTS if any(one.variant == name for one in rounds)]
    columns = lengths(rounds)
    labels = [VARIANTS[name].label for name in names]
    title = "A round on Flower"
    about = f"{title}, with {' and '.join(f'{d:,}' for d in columns)} elements"
    with style():
        whole = blank(
            110 + 2 * (45 + 26 * len(names)), f"{about}: time and bytes. {', '.join(labels)}."
        )
        place = {"x": 0.01, "ha": "left"}
        whole.suptitle(title, fontsize=13, **place)
        foot = f"Marks are rounds, bars medians. All processes on {facts()['cpu']}."
        whole.supxlabel(fill(foot, 84), fontsize=10, color=DIM, **place)
        grid = whole.subplots(2, len(columns), sharey=True, squeeze=False)
        for row, (what, says, colour, write) in zip(grid, _PANELS, strict=True):
            for axes, length in zip(row, columns, strict=True):
                found = [values(rounds, name, length, what) for name in names]
                _panel(axes, found, colour, write)
                axes.set_title(f"{says}, d = {length:,}")
                axes.set_yticks(range(len(names)), labels)
                axes.set_ylim(len(names) - 0.5, -0.5)
    return whole


def _panel(
    axes: Axes, found: Sequence[Sequence[float]], colour: str, write: Callable[[float], str]
) -> None:
    for height, taken in enumerate(found):
        if not taken:
            continue
        middle = median(taken)
        axes.barh(height, middle, 0.55, color=colour, alpha=0.45)
        axes.plot(taken, [height] * len(taken), "o", ms=4, mew=0, color=colour)
        axes.annotate(
            write(middle), (max(taken), height), (6, 0),
            textcoords="offset points", va="center", fontsize=10,
        )  # fmt: skip
    axes.set_xlim(0, 1.3 * max(max(taken, default=0) for taken in found))
    axes.locator_params(axis="x", nbins=4)
    axes.xaxis.set_major_formatter(lambda value, _: write(value) if value else "0")
    plain(axes, "x")
