"""The entry point to the data: `load` by name, and the types that it returns."""

from __future__ import annotations

import difflib
from pathlib import Path

from fedmf import movielens
from fedmf.errors import DataError
from fedmf.formats import FORMATS
from fedmf.ratings import Catalogue, Ratings, Split
from fedmf.simulated import simulate

__all__ = ["NAMES", "Catalogue", "Ratings", "Split", "load"]

NAMES = ("simulated", *FORMATS)

# Small enough to train on within a minute or two, with every user a client of the protocol.
SIMULATED_USERS, SIMULATED_ITEMS, SIMULATED_RATINGS = 300, 500, 20_000


def load(name: str, root: Path | None = None) -> Ratings:
    """Return the data set of that name.

    Parameters
    ----------
    name
        One of `NAMES`. "simulated" is always at hand: 20,000 ratings 1 to 5 of 500 items by
        300 users, from `fedmf.simulated.simulate` with seed 0.
    root
        The folder that holds the folders "ml-100k", "ml-1m" and "ml-latest-small"; by default
        the one that the environment variable ``FEDMF_DATA`` names.

    Raises
    ------
    DataError
        If the name is unknown, or the data set is missing, damaged or incomplete. The message
        says what to do, and names the file and the line where there is one.
    """
    if name == "simulated":
        return simulate(SIMULATED_USERS, SIMULATED_ITEMS, SIMULATED_RATINGS, seed=0)
    if name in FORMATS:
        return movielens.read(FORMATS[name], movielens.folder_of(name, root))
    close = difflib.get_close_matches(name.lower(), NAMES, n=1)
    guess = f"; did you mean {close[0]!r}?" if close else ""
    raise DataError(f"unknown data set {name!r}; known are {', '.join(NAMES)}{guess}")
