"""Pictures: SVG with text, the same each time, and readable on a light page and a dark one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import pytest
from matplotlib import rcParams
from matplotlib.text import Text

from compare_rows import widest
from secagg.bench import picture as bench_picture
from secagg.bench.cases import Figure, Load, Row
from secagg.bench.picture import SYSTEMS, canvas
from secagg.kit import picture
from secagg.kit.picture import DARK, LINE, PAGE, svg


def rows(*lengths: int) -> Iterator[Row]:
    for length in lengths:
        for factor, name in enumerate(SYSTEMS, start=1):
            row = widest(100, length, label=f"by {name}")
            part = Figure(factor * length / 500, 1, 2 if factor > 3 else 1)
            load = Load(part, None)
            yield replace(
                row, system=replace(row.system, name=name), holder=None,
                client=load, server=load, bytes_up=part, bytes_down=part,
            )  # fmt: skip


def drawn_colours(text: str) -> set[tuple[str, str]]:
    return set(re.findall(r"(fill|stroke): (#\w+)", text.partition("</style>")[2]))


def without_counterpart(text: str) -> list[tuple[str, str]]:
    """Return the colours of an SVG, as fill or stroke, that stay the same on a dark page."""
    dark = text.partition("prefers-color-scheme:dark")[2]
    return [
        (kind, colour)
        for kind, colour in drawn_colours(text)
        if f'[style*="{kind}: {colour}"]{{{kind}:{DARK.get(colour)}!important}}' not in dark
    ]


@pytest.mark.parametrize("lengths", [(1000,), (1000, 10_000, 100_000)])
def test_every_colour_that_is_drawn_has_a_dark_counterpart(lengths: tuple[int, ...]) -> None:
    text = svg(canvas(list(rows(*lengths)))).decode()
    assert len(drawn_colours(text)) > 8
    assert not without_counterpart(text)


@pytest.mark.parametrize("lengths", [(1000,), (1000, 10_000, 100_000)])
def test_no_text_is_cut_off(lengths: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_picture, "machine", lambda: {"cpu": "Processor " * 6})
    drawn = canvas(list(rows(*lengths)))
    drawn.canvas.draw()
    texts = [one for one in drawn.findobj(Text) if one.get_text()]
    assert len(texts) > 20
    for text in texts:
        if text.get_visible() and text.get_window_extent().width:
            assert drawn.bbox.x0 <= text.get_window_extent().x0, text
            assert text.get_window_extent().x1 <= drawn.bbox.x1, text


def test_a_picture_is_text_and_the_same_each_time() -> None:
    first, second = (svg(canvas(list(rows(1000, 2000)))) for _ in range(2))
    assert first == second
    text = first.decode()
    assert text.startswith('<svg role="img" ')
    assert text.count("<title>What the sum of 100 private vectors costs") == 1
    assert re.search(r"<text [^>]*>by phe-packed: [^<]+</text>", text)
    assert "date" not in text
    assert "font: " not in text


def test_the_settings_of_matplotlib_are_left_alone() -> None:
    before = rcParams.copy()
    svg(canvas(list(rows(1000))))
    assert rcParams.copy() == before


def test_a_single_length_is_a_line_for_each_system() -> None:
    """With its value beside the mark; marks of a curve would leave the panels empty."""
    drawn = canvas(list(rows(1000)))
    assert str(drawn.get_label()).startswith(
        "What the sum of 100 private vectors costs, 1,000 elements each"
    )
    for axes in drawn.axes:
        assert [one.get_text() for one in axes.get_yticklabels()] == [
            f"by {name}" for name in SYSTEMS
        ]
        assert len(axes.texts) == len(SYSTEMS)
        assert axes.texts[-1].get_text().startswith("~")
        assert axes.lines[-1].get_markerfacecolor() == PAGE
        assert axes.lines[0].get_markerfacecolor() == picture.BLUE
    assert LINE in svg(drawn).decode()
