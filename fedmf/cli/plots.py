"""Plot of a training, drawn without a screen and without matplotlib's global state."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator, StrMethodFormatter

from fedmf.errors import ModelError
from fedmf.training import History
from secagg.kit.picture import BLUE, GREEN, INK, PURPLE, VERMILION, blank, plain, style, svg


def learning_curve(
    history: History, path: str | os.PathLike[str], *, title: str = "FedMF"
) -> None:
    """Write an SVG with two plots over the rounds: errors, and times of a user and the server.

    The axis of the errors omits first rounds that would flatten the rest. Raises ModelError if
    the history has no round, or the file cannot be written.
    """
    if not len(history):
        raise ModelError("the learning curve is empty: finish at least one round")
    with style():
        figure = blank(
            360,
            f"{title}: RMSE over {len(history)} rounds, and the time of a user and the server",
        )
        errors, times = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
        _errors(errors, history)
        _times(times, history)
        errors.set_title(f"{title}: RMSE")
    try:
        Path(path).write_bytes(svg(figure))
    except OSError as error:
        raise ModelError(f"the learning curve cannot be written to {path}: {error}") from error


def _errors(axes: Axes, history: History) -> None:
    rounds = [record.round for record in history]
    marker = "o" if len(rounds) <= 60 else None
    train, test = (
        [math.nan if error is None else error for error in found]
        for found in zip(*((one.train_rmse, one.test_rmse) for one in history), strict=True)
    )
    axes.plot(rounds, train, color=VERMILION, ls="--", marker=_mark(history), label="train")
    if not all(map(math.isnan, test)):
        axes.plot(rounds, test, color=BLUE, lw=2, marker=marker, ms=3, label="test")
        axes.annotate(
            f"{test[-1]:.4f}", (rounds[-1], test[-1]), (0, 7),
            textcoords="offset points", ha="right",
        )  # fmt: skip
    aborted = [record.round for record in history if record.aborted]
    if aborted:
        marks = [train[rounds.index(number)] for number in aborted]
        axes.plot(aborted, marks, "x", color=INK, ms=7, label="aborted round")
    axes.set_ylim(*_window([*train, *test]))
    plain(axes)
    axes.legend(loc="upper right")


def _times(axes: Axes, history: History) -> None:
    """Draw milliseconds per round, with gaps at aborted rounds of unknown time."""
    rounds = [record.round for record in history]
    users = [1000 * one.client_seconds / one.cohort or math.nan for one in history]
    server = [1000 * one.server_seconds or math.nan for one in history]
    mark = _mark(history)
    axes.plot(rounds, users, color=GREEN, marker=mark, label="one user")
    axes.plot(rounds, server, color=PURPLE, ls="--", marker=mark, label="the server")
    axes.set_xlim(min(rounds) - 0.5, max(rounds) + 0.5)
    if any(map(math.isfinite, users + server)):
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 3), numticks=6))
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axes.yaxis.set_minor_locator(NullLocator())
    axes.set_title("milliseconds per round")
    axes.set_xlabel("round")
    plain(axes)
    axes.legend(ncols=2, loc="lower right", bbox_to_anchor=(1, 0.96))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))


def _mark(history: History) -> str | None:
    """Return a marker for a history of a single round, which has no line."""
    return "D" if len(history) == 1 else None


def _window(errors: Sequence[float]) -> tuple[float, float]:
    """Return the range to show, up to twice the spread of all errors but the highest tenth."""
    known = sorted(error for error in errors if math.isfinite(error))
    low, typical, high = known[0], known[(9 * len(known)) // 10], known[-1]
    top = min(high, typical + (typical - low)) if typical > low else high
    margin = 0.06 * (top - low) or 0.01
    return low - margin, top + margin
