"""Last.fm (HetRec 2011): listening counts of users and artists, as ratings 1 to 5.

FedMMF (Yang et al. 2021, section 5.1) does not specify the "bins for the listening counts", so
each choice is a separate data set:

- ``lastfm``: by fifths of all counts, which the users have to compute together. A rating mostly
  reflects the user, as heavy listeners have high ratings.
- ``lastfm-user``: by fifths of the user's own counts. A rating reflects the user's taste.
- ``lastfm-log``: counts of 1 to 9, 10 to 99, 100 to 999, 1,000 to 9,999, and more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from fedmf.data.columns import from_triples, titles_alone
from fedmf.data.ratings import Ratings, check_size
from fedmf.data.sets import lines
from fedmf.data.sets.lines import NUMBER
from fedmf.errors import DataError

SIZE = (1892, 17_632, 92_834)  # users, artists, counts; by the data set's own readme

ARTISTS, COUNTS = "artists.dat", "user_artists.dat"
HEADER = "id\tname\turl\tpictureURL"
FIELDS = (("user id", NUMBER), ("artist id", NUMBER), ("listening count", rb"[1-9][0-9]{0,8}"))

Column = NDArray[np.int64]


def _fifths(groups: Column, counts: Column) -> NDArray[np.float64]:
    """Return the fifth, 1 to 5, of each count in the group; equal counts share a rank."""
    by_group = np.lexsort((counts, groups))
    key = groups * 10**9 + counts
    ordered = key[by_group]
    start = np.searchsorted(ordered, groups * 10**9)
    size = np.searchsorted(ordered, (groups + 1) * 10**9) - start
    below = np.searchsorted(ordered, key, side="left") - start
    not_above = np.searchsorted(ordered, key, side="right") - start
    fifths: Column = 1 + 5 * (below + not_above) // (2 * size)
    return fifths.astype(np.float64)


def _of_all(users: Column, counts: Column) -> NDArray[np.float64]:
    return _fifths(np.zeros_like(users), counts)


def _by_tens(users: Column, counts: Column) -> NDArray[np.float64]:
    """Return the number of digits of each count, at most 5."""
    digits = 1 + np.searchsorted([10, 100, 1000, 10_000], counts, side="right")
    return digits.astype(np.float64)


# From users and counts, each int64 of shape (n,), to ratings, float64 of shape (n,).
BINS: Mapping[str, Callable[[Column, Column], NDArray[np.float64]]] = MappingProxyType(
    {"lastfm": _of_all, "lastfm-user": _fifths, "lastfm-log": _by_tens}
)


def read(name: str, folder: Path, size: tuple[int, int, int] | None = SIZE) -> Ratings:
    """Read Last.fm from a folder, with listening counts as ratings by `BINS` of `name`.

    The catalogue has the artists' names as titles, no years and no genres. Times are all 0.
    Raises DataError if a file is missing or damaged, an artist is unknown, or the size differs.
    The message names file and line.

    Parameters
    ----------
    name : "lastfm", "lastfm-user" or "lastfm-log"
    folder : folder with the unpacked files
    size : expected numbers of users, artists and ratings; None accepts any
    """
    artist_ids, names = _artists(folder / ARTISTS)
    path = folder / COUNTS
    header = "userID\tartistID\tweight"
    first, numbers = lines.read_numbers(path, FIELDS, separator="\t", header=header)
    users, artists, counts = numbers.astype(np.int64).T
    lines.check_distinct(path, first, users, artists, "has listened to artist")
    known = np.isin(artists, artist_ids)
    if not known.all():
        worst = int(np.argmin(known))
        raise lines.damaged(path, first + worst, f"artist {artists[worst]} is not in {ARTISTS}")
    ratings = from_triples(
        users,
        artists,
        BINS[name](users, counts),
        scale=(1.0, 5.0),
        name=name,
        item_ids=artist_ids,
        catalogue=titles_alone(names),
    )
    if size is not None:
        check_size(ratings, size, f"{COUNTS} or {ARTISTS} in {folder}")
    return ratings


def _artists(path: Path) -> tuple[Column, tuple[str, ...]]:
    """Read the artists; return the ids, ascending, and the names in the same order."""
    names: dict[int, str] = {}
    for line, fields in lines.read_fields(path, "utf-8", "\t", 4, header=HEADER):
        artist = lines.read_id(path, line, "artist", fields[0])
        if artist in names:
            raise lines.damaged(path, line, f"artist {artist} is listed a second time")
        names[artist] = fields[1].strip()
    if not names:
        raise DataError(f"{path} lists no artist: unpack the data set again")
    ids = sorted(names)
    return np.array(ids, dtype=np.int64), tuple(names[artist] for artist in ids)
