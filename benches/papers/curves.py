"""Pictures of tables whose runs have a figure after every step: a line for each row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import cycle
from statistics import fmean
from typing import TYPE_CHECKING

from benches.papers.table import Picture, Results
from fedmf.errors import DataError

if TYPE_CHECKING:  # a table can be listed without matplotlib
    from matplotlib.axes import Axes


def numbered(step: str, found: Sequence[float]) -> dict[str, float]:
    """Return figures by names such as "epoch 1", "epoch 2", … for `draw_curves`."""
    return {f"{step} {number}": one for number, one in enumerate(found, start=1)}


def draw_curves(
    results: Results,
    panels: Mapping[str, Sequence[str]],
    *,
    step: str,
    about: str,
    y: str,
    x: str,
    short: Callable[[str], str] = str,
    thin: Sequence[str] = (),
    scale: Callable[[Axes], object] = lambda axes: None,
) -> Picture:
    """Draw the mean over the runs after every step; raises DataError if no row has a run.

    Parameters
    ----------
    results : figures of each run, by the name of a row
    panels : names of rows, by the title of a panel; rows without a run are left out
    step : first word of the figures' names, see `numbered`
    about : description of the picture, which the titles of its panels follow
    x, y : labels of the axes
    short : function from a row's name to its name in a legend
    thin : titles of panels with thin lines
    scale : function that sets the vertical axis of a panel
    """
    from secagg.kit.picture import BLUE, GREEN, INK, PURPLE, VERMILION, blank, plain

    there = {title: [one for one in names if one in results] for title, names in panels.items()}
    there = {title: names for title, names in there.items() if names}
    if not there:
        raise DataError(f"the curves by {step} have no row to draw: run one first")
    # a dashed line shows the line below
    looks = [(BLUE, "-"), (VERMILION, "--"), (GREEN, "-."), (PURPLE, ":"), (INK, "-")]
    looks.append((BLUE, ":"))
    figure = blank(30 + 175 * len(there), f"{about} Panels: {'; '.join(there)}.")
    drawn = figure.subplots(len(there), 1, sharey=True, squeeze=False)[:, 0]
    for axes, (title, names) in zip(drawn, there.items(), strict=True):
        for name, (colour, dash) in zip(names, cycle(looks), strict=False):
            runs = results[name]
            steps = [one for one in runs[0] if one.startswith(f"{step} ")]
            numbers = [int(one.removeprefix(f"{step} ")) for one in steps]
            means = [fmean(run[one] for run in runs) for one in steps]
            wide = 1.0 if title in thin else 1.8
            axes.plot(numbers, means, dash, color=colour, lw=wide, label=short(name))
        scale(axes)
        axes.set_title(title)
        axes.locator_params(axis="x", integer=True)
        plain(axes)
        axes.legend(loc="upper left", bbox_to_anchor=(1, 1.05), handlelength=1.5)
    figure.supylabel(y, fontsize=11)
    drawn[-1].set_xlabel(x)
    return figure
