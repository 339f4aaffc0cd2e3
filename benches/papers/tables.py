"""Which tables there are, and where: each is imported when it is asked for."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from importlib import import_module
from types import ModuleType

from benches.papers.table import Row, Table
from fedmf.errors import SettingError

__all__ = ["ALL", "MODULES", "find_row", "find_table", "resolve"]

ALL = "all"

MODULES: Mapping[str, str] = {
    "fedmmf-4": "benches.papers.fedmmf4",
    "fedmmf-4-lastfm": "benches.papers.fedmmf4",
    "fedmmf-4-ml-10m": "benches.papers.fedmmf4",
    "fedmmf-2": "benches.papers.masked_ratings",
    "fedmmf-3": "benches.papers.masked_ratings",
    "fedmmf-fig4": "benches.papers.masked_ratings",
    "fcf-2": "benches.papers.fcf2",
    "fcf-convergence": "benches.papers.convergence",
    "thesis-6.1": "benches.papers.thesis",
    "beyond": "benches.papers.beyond",
    "large": "benches.papers.large",
    "rounds": "benches.papers.rounds",
    "dropouts": "benches.papers.rounds",
    "fixed-point": "benches.papers.rounds",
    "secure": "benches.papers.secure",
    "end-to-end": "benches.papers.secure",
    "attacks": "benches.papers.attacks",
    "dp": "benches.papers.dp",
    "presets": "benches.papers.presets",
    "selection": "benches.papers.selection",
}
"""By key, the module that has the table as its ``TABLE``, or as one of its ``TABLES``.

The order is that of ``--table all``.
"""


def resolve(keys: Sequence[str], modules: Mapping[str, str]) -> dict[str, str]:
    """Return the keys that were asked for with their modules, in the order of `modules`.

    Raises
    ------
    SettingError
        If a key is unknown, or there is none; the message lists those there are.
    """
    known = f"there are {', '.join(modules)}, and {ALL} for all of them"
    if not keys:
        raise SettingError(f"--table says which table: {known}")
    for key in keys:
        if key != ALL and key not in modules:
            close = difflib.get_close_matches(key.lower(), [*modules, ALL], n=1)
            guess = f"did you mean {close[0]}? " if close else ""
            raise SettingError(f"--table {key} is unknown: {guess}{known}")
    wanted = modules if ALL in keys else [key for key in modules if key in keys]
    return {key: modules[key] for key in wanted}


def find_table(module: str, key: str) -> Table:
    """Import a module and return its table of that key.

    Raises
    ------
    MissingExtra
        If the module needs a package that is not installed.
    LookupError
        If the module has no such table, or several.
    """
    found = [table for table in _tables(import_module(module)) if table.key == key]
    if len(found) != 1:
        raise LookupError(f"{module} should have one table {key!r} and has {len(found)}")
    return found[0]


def find_row(module: str, key: str, name: str) -> Row:
    """Return a row by name, as processes look it up: what it runs cannot be sent to them.

    Raises
    ------
    LookupError
        If there is no such row, or several.
    """
    found = [row for row in find_table(module, key).rows if row.name == name]
    if len(found) != 1:
        raise LookupError(f"table {key} should have one row {name!r} and has {len(found)}")
    return found[0]


def _tables(module: ModuleType) -> tuple[Table, ...]:
    one: Table | None = getattr(module, "TABLE", None)
    several: tuple[Table, ...] = getattr(module, "TABLES", ())
    return several if one is None else (one, *several)
