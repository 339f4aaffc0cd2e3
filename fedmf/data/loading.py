"""Loading of data sets by name: `load`, the `NAMES` and the published `SIZES`."""

from __future__ import annotations

import difflib
from pathlib import Path

from fedmf.data.ratings import Ratings
from fedmf.data.sets import lastfm, movielens, plain
from fedmf.data.sets.folders import folder_of
from fedmf.data.sets.movielens import FORMATS
from fedmf.data.sets.simulated import simulate
from fedmf.data.sets.sources import SOURCES, Source
from fedmf.errors import DataError

# Small enough to train on within a minute or two, with every user a client of the protocol.
SIMULATED_USERS, SIMULATED_ITEMS, SIMULATED_RATINGS = 300, 500, 20_000

# The published numbers of users, items and ratings, which `load` validates.
SIZES = {
    "simulated": (SIMULATED_USERS, SIMULATED_ITEMS, SIMULATED_RATINGS),
    **{name: form.counts for name, form in FORMATS.items() if form.counts is not None},
    **dict.fromkeys(lastfm.BINS, lastfm.SIZE),
    **plain.SIZES,
}
NAMES = tuple(SIZES)


def load(name: str, root: Path | None = None) -> Ratings:
    """Return the data set of that name.

    Parameters
    ----------
    name
        One of `NAMES`. "simulated" needs no file: 20,000 ratings 1 to 5 of 500 items by 300
        users, from `fedmf.data.sets.simulated.simulate` with seed 0.
    root
        The folder that contains the folders of the sets ("ml-100k", "ml-10M100K", …). By
        default the folder in the environment variable ``FEDMF_DATA``, then the cache of ``fedmf
        data fetch``.

    Raises
    ------
    DataError
        If the name is unknown, or the data set is missing, damaged or incomplete. The message
        names the remedy and, for a damaged file, the line.
    """
    if name == "simulated":
        return simulate(SIMULATED_USERS, SIMULATED_ITEMS, SIMULATED_RATINGS, seed=0)
    return read(name, folder_of(source_of(name), root))


def source_of(name: str) -> Source:
    """Return the source of a data set in files; DataError if the name is unknown."""
    for source in SOURCES.values():
        if name in source.sets:
            return source
    close = difflib.get_close_matches(name.lower(), NAMES, n=1)
    guess = f"; did you mean {close[0]!r}?" if close else ""
    raise DataError(f"data set {name!r} is unknown: choose from {', '.join(NAMES)}{guess}")


def read(name: str, folder: Path) -> Ratings:
    """Return the data set of that name from the given folder; see `load`."""
    if name in lastfm.BINS:
        return lastfm.read(name, folder)
    if name in plain.SIZES:
        return plain.read(name, folder)
    return movielens.read(FORMATS[name], folder)
