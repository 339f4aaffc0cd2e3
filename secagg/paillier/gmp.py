"""The package gmpy2, or a stand-in that raises `MissingExtra` when the stand-in is used.

So this package can be imported without gmpy2, which secret sharing does not need.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import NoReturn, cast

from secagg._check import is_integer
from secagg.errors import MissingExtra, ParameterError

__all__ = ["as_int", "checked_int", "checked_ints", "gmpy2"]


class Missing:
    """Stand-in for gmpy2 where gmpy2 is not installed."""

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):  # asked for by tools that inspect modules
            raise AttributeError(name)
        raise MissingExtra(
            "homomorphic encryption needs gmpy2, which is not installed: "
            'pip install "secagg[he]"',
            name="gmpy2",
        )


try:
    import gmpy2
except ModuleNotFoundError as error:
    if error.name != "gmpy2":
        raise
    gmpy2 = Missing()


def checked_int(name: str, value: object, remedy: str = "") -> int:
    """Return an int of Python, numpy or gmpy2 as an int, or raise `ParameterError`."""
    number = as_int(value)
    if number is None:
        raise ParameterError(f"{name} must be an int, not {type(value).__name__}{remedy}")
    return number


def as_int(value: object) -> int | None:
    """Return an int of Python, numpy or gmpy2 as an int, and None for anything else."""
    if is_integer(value) or isinstance(value, gmpy2.mpz):
        return int(cast("int", value))
    return None


def checked_ints(name: str, values: Iterable[int], remedy: str = "") -> list[int]:
    """Return values as ints; raise `ParameterError` for a number, text, set or mapping."""
    try:
        if isinstance(values, str | bytes | bytearray | Mapping | Set):
            raise TypeError("no numbers in an order")
        found = list(values)
    except TypeError:  # of numpy, too, for an array of no dimension
        raise ParameterError(
            f"{name}s must be a list of ints, not {type(values).__name__}; pass one number as "
            f"[number]{remedy}"
        ) from None
    return [checked_int(f"{name} {i}", value, remedy) for i, value in enumerate(found)]
