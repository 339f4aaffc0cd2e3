"""Exports of a package that are imported at first use."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec


def lazily(
    package: str, homes: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return a `__getattr__` for a package, which imports at first use, and a `__dir__`.

    The package itself thus imports at once, so a command can catch Ctrl-C during other imports.

    Parameters
    ----------
    package : str
        Name of the package.
    homes : mapping of str to sequence of str
        Names that the package exports from each module, by the module's name.
    """
    module_of = {name: module for module, names in homes.items() for name in names}

    def get(name: str) -> object:
        if name in module_of:
            found: object = getattr(import_module(f"{package}.{module_of[name]}"), name)
            # later uses find the name without this function
            setattr(sys.modules[package], name, found)
            return found
        # inspection asks for names such as __wrapped__, which are not modules
        if not name.startswith("__") and find_spec(f"{package}.{name}"):
            return import_module(f"{package}.{name}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    def names() -> list[str]:
        found = vars(sys.modules[package])
        return sorted({*found, *found["__all__"]})

    return get, names
