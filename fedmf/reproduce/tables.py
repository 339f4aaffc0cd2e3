"""Which tables there are, and where: each is imported when it is asked for."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from importlib import import_module
from types import ModuleType

from fedmf.errors import SettingError
from fedmf.reproduce.table import Row, Table

__all__ = ["ALL", "MODULES", "find_row", "find_table", "resolve"]

ALL = "all"

MODULES: Mapping[str, str] = {
    "fedmmf-4": "fedmf.reproduce.fedmmf4",
    "fedmmf-4-lastfm": "fedmf.reproduce.fedmmf4",
    "fedmmf-4-ml-10m": "fedmf.reproduce.fedmmf4",
    "fedmmf-2": "fedmf.reproduce.masked_ratings",
    "fedmmf-3": "fedmf.reproduce.masked_ratings",
    "fedmmf-fig4": "fedmf.reproduce.masked_ratings",
    "fcf-2": "fedmf.reproduce.fcf2",
    "fcf-convergence": "fedmf.reproduce.convergence",
    "thesis-6.1": "fedmf.reproduce.thesis",
    "beyond": "fedmf.reproduce.beyond",
    "large": "fedmf.reproduce.large",
    "rounds": "fedmf.reproduce.rounds",
    "dropouts": "fedmf.reproduce.rounds",
    "fixed-point": "fedmf.reproduce.rounds",
    "secure": "fedmf.reproduce.secure",
    "end-to-end": "fedmf.reproduce.secure",
    "attacks": "fedmf.reproduce.attacks",
    "dp": "fedmf.reproduce.dp",
    "presets": "fedmf.reproduce.presets",
    "selection": "fedmf.reproduce.selection",
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
