"""A comparison in a folder: compare.json for programs, compare.png for slides."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from secagg.bench.document import comparison_document
from secagg.bench.run import Comparison
from secagg.errors import ParameterError

__all__ = ["prepare", "saving"]


def prepare(folder: str) -> Callable[[Comparison], None]:
    """Make the folder, and return what saves a comparison there, as `saving` does.

    Raises
    ------
    ParameterError
        No folder is named, or it cannot be made.
    """
    if not folder:
        raise ParameterError("--out is empty: name a folder, or leave it out")
    path = Path(folder)
    return saving(path / "compare.json", path / "compare.png")


def saving(document: Path, picture: Path) -> Callable[[Comparison], None]:
    """Try the two files, and return what writes a comparison to them.

    What can go wrong should do so before minutes of measuring.

    Raises
    ------
    MissingExtra
        matplotlib is not installed.
    ParameterError
        A file cannot be written.
    """
    from secagg.bench.picture import draw  # needs matplotlib, which the commands do not

    for path in (document, picture):
        _try(path)

    def save(comparison: Comparison) -> None:
        text = json.dumps(comparison_document(comparison), indent=2)
        document.write_text(text + "\n", encoding="utf-8")
        if comparison.rows:
            draw(comparison.rows, picture)

    return save


def _try(path: Path) -> None:
    """Open the file for writing, and leave everything as it was but for its folder."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        there = path.exists()
        path.open("ab").close()
        if not there:
            path.unlink()
    except OSError as error:
        raise ParameterError(f"cannot write {path}: {error.strerror}; choose another") from None
