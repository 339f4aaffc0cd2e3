"""Pictures as SVG, for light and dark pages."""

from __future__ import annotations

import io
import re
from contextlib import AbstractContextManager
from typing import Any, Literal

from secagg.errors import needing

with needing("the picture", "matplotlib", "matplotlib"):
    from matplotlib import rc_context
    from matplotlib.axes import Axes
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

WIDTH = 480.0  # points: 640 pixels, and text of two thirds of its size on a telephone

INK, DIM, LINE, GRID, PAGE = "#24292f", "#57606a", "#8c959f", "#d0d7de", "#ffffff"
# For data, after Okabe and Ito (2008); a shape or a dash goes with each colour.
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
_LONG = re.compile(r"-?\d+\.\d{3,}")
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


def style() -> AbstractContextManager[None]:
    """Return a context that draws figures in the style of the documentation."""
    return rc_context(_STYLE)


def blank(height: float, text: str) -> Canvas:
    """Return an empty picture of the width of a page and of a height in points.

    `text` becomes the label, which describes the picture to people who cannot see the picture.
    """
    whole = Canvas(figsize=(WIDTH / 72, height / 72), layout="constrained")
    FigureCanvasAgg(whole)
    whole.set_label(text)
    return whole


def plain(axes: Axes, grid: Literal["both", "x", "y"] = "both") -> None:
    """Remove all spines but the lower; draw a light grid for `grid`: "both", "x" or "y"."""
    axes.grid(True, which="major", axis=grid, lw=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(which="both", length=0)


def _short(number: re.Match[str]) -> str:
    return f"{float(number[0]):.2f}".rstrip("0").rstrip(".")


def svg(picture: Canvas) -> bytes:
    """Return the picture as an SVG file, light or dark like the page around the picture."""
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
    # hundredths of a point are enough for places; labels keep their decimals
    text = re.sub(r' (?:d|x|y)="[^"]*"', lambda found: _LONG.sub(_short, found[0]), text)
    # matplotlib repeats a colour in every style, and only !important overrides a style
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
