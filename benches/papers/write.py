"""The report in a folder: results.md to read, results.json for programs, and the pictures.

The document names its pictures below "results/", so that results.md and that folder can be
copied together to wherever they are to be read.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from benches.papers.document import report_document
from benches.papers.markdown import markdown
from benches.papers.results import Report, TableResult
from benches.papers.store import write_at_once
from fedmf.errors import MissingExtra

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["PICTURES", "write"]

PICTURES = "results"


def write(report: Report, folder: Path) -> None:
    """Write a report.

    Raises
    ------
    SettingError
        If a file cannot be written.
    MissingExtra
        If matplotlib is not installed; the other files are written.
    """
    document = json.dumps(report_document(report), indent=2, allow_nan=False)
    write_at_once(folder / "results.json", f"{document}\n".encode())
    pictures: dict[str, list[str]] = {}
    try:
        for result in report.tables:
            for number, figure in enumerate(_figures(result, quick=report.quick), start=1):
                name = f"{PICTURES}/{result.table.key}{f'-{number}' if number > 1 else ''}.png"
                drawn = io.BytesIO()
                figure.savefig(drawn, format="png")
                write_at_once(folder / name, drawn.getvalue())
                pictures.setdefault(result.table.key, []).append(name)
    finally:
        write_at_once(folder / "results.md", markdown(report, pictures).encode())


def _figures(result: TableResult, *, quick: bool) -> Iterator[Figure]:
    """Yield the picture of a table, then those of its own."""
    try:
        from benches.papers.picture import draw
    except ModuleNotFoundError as error:
        if str(error.name).partition(".")[0] != "matplotlib":
            raise
        raise MissingExtra(
            "the pictures need matplotlib: pip install 'secagg[fedmf]'"
        ) from None
    figure = draw(result, quick=quick)
    if figure is not None:
        yield figure
        for picture in result.table.pictures:
            yield picture(result.results)
