"""A comparison in a folder: compare.json for programs, compare.png for slides."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from secagg.compare.document import comparison_document
from secagg.compare.run import Comparison

__all__ = ["prepare"]


def prepare(folder: Path) -> Callable[[Comparison], None]:
    """Make the folder, and return what saves a comparison there.

    What can go wrong should do so before minutes of measuring.

    Raises
    ------
    MissingExtra
        matplotlib is not installed.
    OSError
        The folder cannot be made.
    """
    from secagg.compare.picture import draw  # needs matplotlib, which the commands do not

    folder.mkdir(parents=True, exist_ok=True)

    def save(comparison: Comparison) -> None:
        text = json.dumps(comparison_document(comparison), indent=2)
        (folder / "compare.json").write_text(text + "\n", encoding="utf-8")
        draw(comparison.rows, folder / "compare.png")

    return save
