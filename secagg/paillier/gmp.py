"""The package gmpy2, or a stand-in that raises `MissingExtra` when the stand-in is used.

So this package can be imported without gmpy2, which secret sharing does not need.
"""

from __future__ import annotations

from typing import NoReturn

from secagg.errors import MissingExtra

__all__ = ["gmpy2"]


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
