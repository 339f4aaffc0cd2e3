"""Drawing of pictures as SVG, for light and dark pages, with the one of ``secagg bench``."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from textwrap import fill
from typing import Any, Literal, TypeAlias

from secagg.bench.cases import Figure, Row
from secagg.bench.table import duration, volume
from secagg.bench.timing import machine
from secagg.errors import MissingExtra

try:
    from matplotlib import rc_context
    from matplotlib.axes import Axes
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas
    from matplotlib.ticker import FuncFormatter, NullLocator
except ModuleNotFoundError as error:
    if str(error.name).partition(".")[0] != "matplotlib":
        raise
    raise MissingExtra(
        "the picture needs matplotlib: pip install matplotlib", name="matplotlib"
    ) from None

WIDTH = 480.0  # points: 640 pixels, and text of two thirds of its size on a telephone

INK, DIM, LINE, GRID, PAGE = "#24292f", "#57606a", "#8c959f", "#d0d7de", "#ffffff"
# For data, after Okabe and Ito (2008); a shape or a dash goes with each.
BLUE, VERMILION, GREEN, PURPLE, ORANGE = "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b87f00"
SCALE = ("#5896d0", "#3577b2", "#1b5c92", "#0d4a7a", "#062f52")  # five steps, from few to many
DARK = {
    INK: "#e6edf3", DIM: "#9ea7b3", LINE: "#6e7681", GRID: "#30363d", PAGE: "#131416",
    BLUE: "#56b4e9", VERMILION: "#f0883e", GREEN: "#2fcfa0", PURPLE: "#c060a0",
    ORANGE: "#e69f00",
    **dict(zip(SCALE, ("#3d6f9c", "#5590c4", "#79b0de", "#a3cdf0", "#d9ebfb"), strict=True)),
}  # fmt: skip
"""Colour on a dark page for every colour of a picture."""

_FONT = "system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif"
_STYLE: dict[Any, Any] = {
    "font.sans-serif": ["DejaVu Sans"],  # that matplotlib has, to measure texts by
    "font.size": 11,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "xtick.labelsize": 10,
    "ytick.labelsize": 10.5,
    "legend.fontsize": 10.5,
    "legend.frameon": False,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": LINE,
    "xtick.color": LINE,
    "ytick.color": LINE,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "grid.color": GRID,
    "lines.linewidth": 1.8,
    "svg.fonttype": "none",  # text is text
    "svg.hashsalt": "secagg",  # the same picture is the same file
}
SYSTEMS = {  # that are drawn: colour and mark
    "ss": (BLUE, "o"),
    "one-shot": (ORANGE, "P"),
    "he": (VERMILION, "D"),
    "phe-packed": (PURPLE, "s"),
    "phe-float": (INK, "v"),
    "ckks": (GREEN, "^"),
}

_Scale: TypeAlias = tuple[Callable[[float], str], Sequence[float]]  # format and ticks
TIME: _Scale = (duration, [10.0**i for i in range(-6, 2)] + [60, 600, 3600, 36e3, 36e4, 36e5])
BYTES: _Scale = (volume, [10.0**i for i in range(13)])
_PANELS: tuple[tuple[str, Callable[[Row], Figure], _Scale], ...] = (
    ("a client computes", lambda row: row.client.seconds, TIME),
    ("server and key holder compute", lambda row: row.central.seconds, TIME),
    ("a client sends and receives", lambda row: row.bytes_up + row.bytes_down, BYTES),
)


def style() -> AbstractContextManager[None]:
    """Return a context in which figures are drawn in the style of the documentation."""
    return rc_context(_STYLE)


def blank(height: float, text: str) -> Canvas:
    """Return an empty picture of the width of a page and of a height in points.

    `text` becomes its label, which describes the picture to people who cannot see it.
    """
    whole = Canvas(figsize=(WIDTH / 72, height / 72), layout="constrained")
    FigureCanvasAgg(whole)
    whole.set_label(text)
    return whole


def plain(axes: Axes, grid: Literal["both", "x", "y"] = "both") -> None:
    """Remove all spines but the lower one; draw a light grid for `grid`: "both", "x" or "y"."""
    axes.grid(True, which="major", axis=grid, lw=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(which="both", length=0)


def svg(picture: Canvas) -> bytes:
    """Return the picture as an SVG file that is light or dark like the page around it."""
    drawn = io.BytesIO()
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    with style():
        picture.savefig(
            drawn,
            format="svg",
            transparent=True,
            metadata=nothing | {"Title": picture.get_label()},
        )
    text = drawn.getvalue().decode()
    text = re.sub(r" <metadata>.*?</metadata>\n", "", text[text.index("<svg") :], flags=re.S)
    rules = "".join(
        f'[style*="{kind}: {colour}"]{{{kind}:{dark}!important}}\n'
        for colour, dark in DARK.items()
        for kind in ("fill", "stroke")
        if f"{kind}: {colour}" in text
    )
    head = (
        f"<style>\nsvg{{color-scheme:light dark}}\ntext{{font-family:{_FONT}!important}}\n"
        f"@media (prefers-color-scheme:dark){{\n{rules}}}\n</style>\n"
    )
    return re.sub(r"<svg([^>]*)>\n", rf'<svg role="img"\1>\n{head}', text, count=1).encode()


def canvas(rows: Sequence[Row]) -> Canvas:
    """Return the picture of a comparison of systems, from at least one row.

    Its panels are client time, time of server and key holder, and client traffic. They show
    each system over the vector length, or at the only length. Of several numbers of clients
    only the middle one is drawn. Hollow marks are scaled from a sample.
    """
    cohorts = sorted({row.case.clients for row in rows})
    n = cohorts[len(cohorts) // 2]
    shown = [row for row in rows if row.case.clients == n and row.system.name in SYSTEMS]
    lengths = sorted({row.case.length for row in shown})
    single = len(lengths) == 1
    title = f"What the sum of {n:,} private vectors costs"
    about = f", {lengths[0]:,} elements each" if single else ", over their length"
    systems = ", ".join(dict.fromkeys(row.system.label for row in shown))
    panels = ", ".join(title for title, _, _ in _PANELS)
    height = 3 * (44 + 17 * len(shown)) if single else 3 * 175
    with style():
        whole = blank(height + 70, f"{title}{about}: {panels}. Systems: {systems}.")
        place = {"x": 0.01, "ha": "left"}
        whole.suptitle(f"{title}{about}" if single else title, fontsize=13, **place)
        of = "" if single else "Elements of a vector. "
        foot = (
            f"{of}● measured, ○ scaled from a sample. One core of {machine()['cpu']}; each "
            "party in a process of its own."
        )
        whole.supxlabel(fill(foot, 84), fontsize=10, color=DIM, **place)
        for axes, (title, figure, scale) in zip(whole.subplots(3, 1), _PANELS, strict=True):
            (_systems if single else _lines)(axes, shown, figure, scale)
            axes.set_title(title)
    return whole


def _systems(
    axes: Axes, rows: Sequence[Row], figure: Callable[[Row], Figure], scale: _Scale
) -> None:
    """Draw a panel for a single length: a row for each system, with its value by the mark."""
    axes.set_xscale("log")
    for height, row in enumerate(rows):
        _mark(axes, row, figure(row).value, height, figure(row))
        axes.annotate(
            _written(figure(row), scale), (figure(row).value, height), (9, 0),
            textcoords="offset points", va="center", fontsize=10,
        )  # fmt: skip
    axes.set_yticks(range(len(rows)), [row.system.label for row in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    low, high = axes.get_xlim()
    axes.set_xlim(low / 1.5, high * (high / low) ** 0.25)  # room for the values
    _ticked(axes, "x", scale)
    plain(axes, "x")


def _lines(
    axes: Axes, rows: Sequence[Row], figure: Callable[[Row], Figure], scale: _Scale
) -> None:
    """Draw a panel over lengths: a line for each system, with its last value in the legend."""
    axes.set_xscale("log")
    axes.set_yscale("log")
    lines: dict[str, list[Row]] = {}
    for row in sorted(rows, key=lambda row: row.case.length):
        lines.setdefault(row.system.name, []).append(row)
    drawn = []
    for name, points in reversed(lines.items()):  # this library's on top
        colour, mark = SYSTEMS[name]
        last = figure(points[-1])
        values = [figure(row).value for row in points]
        axes.plot([row.case.length for row in points], values, color=colour, zorder=2)
        for row in points:
            _mark(axes, row, row.case.length, figure(row).value, figure(row))
        label = f"{points[-1].system.label}: {_written(last, scale)}"
        (line,) = axes.plot([], [], color=colour, marker=mark, label=label)
        drawn.append((last.value, line))
    lengths = sorted({row.case.length for row in rows})
    axes.set_xticks(lengths, [f"{x // 1000}k" if x % 1000 == 0 else f"{x:,}" for x in lengths])
    axes.xaxis.set_minor_locator(NullLocator())
    _ticked(axes, "y", scale)
    plain(axes)
    order = [line for _, line in sorted(drawn, key=lambda end: end[0], reverse=True)]
    axes.legend(handles=order, loc="upper left", bbox_to_anchor=(1, 1.05), handlelength=1.5)


def _mark(axes: Axes, row: Row, x: float, y: float, figure: Figure) -> None:
    colour, mark = SYSTEMS[row.system.name]
    face = colour if figure.measured else PAGE
    axes.plot(x, y, mark, ms=6.5, mfc=face, mec=colour, mew=1.8, clip_on=False, zorder=3)


def _written(figure: Figure, scale: _Scale) -> str:
    return f"{'' if figure.measured else '~'}{scale[0](figure.value)}"


def _ticked(axes: Axes, name: str, scale: _Scale) -> None:
    """Label a logarithmic axis with up to five round times or sizes."""
    write, ticks = scale
    low, high = axes.get_xlim() if name == "x" else axes.get_ylim()
    axis = axes.xaxis if name == "x" else axes.yaxis
    there = [tick for tick in ticks if low <= tick <= high]
    axis.set_ticks(there[:: -(-len(there) // 5)] if there else there)
    axis.set_major_formatter(FuncFormatter(lambda value, _: write(value)))
    axis.set_minor_locator(NullLocator())
