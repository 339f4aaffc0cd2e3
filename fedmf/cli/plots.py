"""Plot of a training, drawn without a screen and without matplotlib's global state."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator, StrMethodFormatter

from fedmf.errors import ModelError
from fedmf.training import History

TRAIN, TEST, USER, SERVER = "#8a8f98", "#1f5fa8", "#e0a030", "#7a4b94"


def learning_curve(
    history: History, path: str | os.PathLike[str], *, title: str = "FedMF"
) -> None:
    """Write a PNG of the errors per round above the time of a user and the server.

    The axis of the errors omits first rounds that would flatten the rest. Without a round, or
    if the file cannot be written, it raises ModelError.
    """
    if not len(history):
        raise ModelError("there is no learning curve: not one round was finished")
    rounds = [record.round for record in history]
    marker = "o" if len(rounds) <= 60 else None
    figure = Figure(figsize=(7.5, 5.6), dpi=144, layout="constrained")
    FigureCanvasAgg(figure)
    errors, times = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))

    train, test = (
        [math.nan if error is None else error for error in found]
        for found in zip(*((one.train_rmse, one.test_rmse) for one in history), strict=True)
    )
    errors.plot(rounds, train, color=TRAIN, lw=1.6, marker=marker, ms=2.5, label="train")
    if not all(map(math.isnan, test)):
        errors.plot(rounds, test, color=TEST, lw=2, marker=marker, ms=3, label="test")
        errors.annotate(
            f"{test[-1]:.4f}",
            (rounds[-1], test[-1]),
            xytext=(0, 7),
            textcoords="offset points",
            ha="right",
            color=TEST,
            weight="bold",
        )
    aborted = [record.round for record in history if record.aborted]
    if aborted:
        marks = [train[rounds.index(number)] for number in aborted]
        errors.plot(aborted, marks, "x", color="#c03030", ms=7, label="aborted round")
    errors.set_ylim(*_window([*train, *test]))
    errors.set_ylabel("RMSE")
    errors.set_title(title, loc="left", fontsize=11)
    errors.legend(frameon=False, loc="upper right")

    # An aborted round has taken no time that is known: a gap.
    users = [1000 * one.client_seconds / one.cohort or math.nan for one in history]
    server = [1000 * one.server_seconds or math.nan for one in history]
    times.plot(rounds, users, color=USER, lw=1.6, marker=marker, ms=2.5, label="one user")
    times.plot(rounds, server, color=SERVER, lw=1.6, marker=marker, ms=2.5, label="the server")
    if any(map(math.isfinite, users + server)):
        times.set_yscale("log")
        times.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=8))
        times.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        times.yaxis.set_minor_locator(NullLocator())
    times.set_ylabel("ms per round")
    times.set_xlabel("round")
    times.legend(frameon=False, ncols=2, loc="lower right", bbox_to_anchor=(1, 0.96))
    times.xaxis.set_major_locator(MaxNLocator(integer=True))

    for axes in (errors, times):
        axes.grid(True, which="major", color="#e4e6ea", lw=0.8)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
    try:
        figure.savefig(path, format="png")
    except OSError as error:
        raise ModelError(f"the learning curve cannot be written to {path}: {error}") from error


def _window(errors: Sequence[float]) -> tuple[float, float]:
    """Return the range to show: up to twice the spread of all but the highest tenth."""
    known = sorted(error for error in errors if math.isfinite(error))
    low, typical, high = known[0], known[(9 * len(known)) // 10], known[-1]
    top = min(high, typical + (typical - low)) if typical > low else high
    margin = 0.06 * (top - low) or 0.01
    return low - margin, top + margin
