"""The top-level names that a file of Python imports, wherever in it."""

from __future__ import annotations

import ast
from pathlib import Path


def roots_imported(path: Path) -> set[str]:
    names: list[str] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names.append(node.module or "")
    return {name.split(".")[0] for name in names}
