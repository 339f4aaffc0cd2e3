"""The package gmpy2, or a stand-in that raises `MissingExtra` when the stand-in is used.

So this package can be imported without gmpy2, which secret sharing does not need.
"""

from __future__ import annotations

from typing import NoReturn, cast

from secagg._check import is_integer
from secagg.errors import MissingExtra, ParameterError

__all__ = ["as_int", "checked_int", "gmpy2"]


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


def checked_int(name: str, value: object) -> int:
    """Return an int of Python, numpy or gmpy2 as an int, or raise `ParameterError`."""
    number = as_int(value)
    if number is None:
        raise ParameterError(f"{name} must be an int, not {type(value).__name__}")
    return number


def as_int(value: object) -> int | None:
    """Return an int of Python, numpy or gmpy2 as an int, and None for anything else."""
    if is_integer(value) or isinstance(value, gmpy2.mpz):
        return int(cast("int", value))
    return None
