"""Tags that users gave to items in ml-10m, ml-latest-small and Last.fm, read on request.

`fedmf.data.features.tag_features` turns the tags into features.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fedmf.data.ratings import Ratings
from fedmf.data.sets.folders import folder_of
from fedmf.data.sets.lastfm import BINS
from fedmf.data.sets.lines import NUMBER, damaged, read_fields, read_id, read_numbers
from fedmf.data.sets.movielens import FORMATS
from fedmf.data.sets.sources import SOURCES
from fedmf.errors import DataError

TAGGED = ("ml-10m", "ml-latest-small", *BINS)  # the data sets that come with tags

# Assignment of a tag: the line, the user's id, the item's id, the tag.
Assignment = tuple[int, int, int, str]

Numbers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Tags:
    """Tags by users on items: three parallel columns, int64, shape (n_assignments,).

    Parameters
    ----------
    users, items
        Numbers of the user and the item in the data set's `fedmf.data.ratings.Ratings`.
    words : index of the tag in `vocabulary`
    n_users, n_items : numbers of all users and items of these ratings, with or without tags
    vocabulary : the different tags, in lower case, ascending
    """

    users: Numbers
    items: Numbers
    words: Numbers
    n_users: int
    n_items: int
    vocabulary: tuple[str, ...]

    def __len__(self) -> int:
        return self.words.size


def read_tags(ratings: Ratings, root: Path | None = None) -> Tags:
    """Read the tags that come with a data set.

    Tags that differ only in case or outer blanks are the same tag. Tags of unrated items are
    left out, and in ml-10m also the tags by users without ratings. Raises DataError if the data
    set comes without tags, a file is missing or damaged, or a user or item is unknown. The
    message names file and line.

    Parameters
    ----------
    ratings
        Ratings of ml-10m, ml-latest-small or Last.fm from `fedmf.data.load`, or a part of them.
    root : see `fedmf.data.load`
    """
    name = ratings.name
    items = dict(zip(ratings.item_ids.tolist(), range(ratings.n_items), strict=True))
    users = dict(zip(ratings.user_ids.tolist(), range(ratings.n_users), strict=True))
    if name in BINS:
        folder = folder_of(SOURCES["lastfm"], root)
        path = folder / "user_taggedartists.dat"
        # 390 tagged artists are in no other file
        assignments, listed = _read_lastfm(path, folder / "tags.dat"), None
    elif name in TAGGED:
        folder, form = folder_of(SOURCES[name], root), FORMATS[name]
        path = folder / ("tags.dat" if name == "ml-10m" else "tags.csv")
        assignments = _read_movielens(path)
        listed = frozenset(item for _, item, *_ in form.read_items(folder / form.items))
    else:
        raise DataError(f"{name} has no tags: choose from ml-10m, ml-latest-small and lastfm")
    # ml-10m has more user ids, 71,567, than users with ratings
    may_be_unknown = name == "ml-10m"
    rows: list[tuple[int, int, str]] = []
    for line, user, item, tag in assignments:
        if listed is not None and item not in listed:
            raise damaged(path, line, f"item {item} is not in {name}")
        if user not in users and not may_be_unknown:
            raise damaged(path, line, f"user {user} is not in {name}")
        if user in users and item in items:
            rows.append((users[user], items[item], tag.strip().casefold()))
    vocabulary = sorted({tag for _, _, tag in rows})
    place = dict(zip(vocabulary, range(len(vocabulary)), strict=True))
    table = np.array([(user, item, place[tag]) for user, item, tag in rows], dtype=np.int64)
    by_user, by_item, words = np.ascontiguousarray(table.reshape(-1, 3).T)
    return Tags(by_user, by_item, words, ratings.n_users, ratings.n_items, tuple(vocabulary))


def _read_lastfm(path: Path, words: Path) -> Iterator[Assignment]:
    """Yield the assignments of user_taggedartists.dat, with the words of tags.dat."""
    names: dict[int, str] = {}
    header = "tagID\ttagValue"
    for line, (number, name) in read_fields(words, "latin-1", "\t", 2, header=header, free=1):
        names[read_id(words, line, "tag", number)] = name
    fields = tuple((f"{name} id", NUMBER) for name in ("user", "artist", "tag"))
    fields += tuple((name, rb"[0-9]{1,4}") for name in ("day", "month", "year"))
    header = "userID\tartistID\ttagID\tday\tmonth\tyear"
    first, numbers = read_numbers(path, fields, separator="\t", header=header)
    for row, (user, artist, tag) in enumerate(numbers[:, :3].astype(np.int64).tolist()):
        if tag not in names:
            raise damaged(path, first + row, f"tag {tag} is not in {words.name}")
        yield first + row, user, artist, names[tag]


def _read_movielens(path: Path) -> Iterator[Assignment]:
    """Yield the assignments of tags.dat or tags.csv: user, item, tag and time, UTF-8."""
    header = "userId,movieId,tag,timestamp" if path.suffix == ".csv" else ""
    separator = "," if header else "::"  # a tag of tags.dat may contain "::"
    free = None if header else 2
    for line, fields in read_fields(path, "utf-8", separator, 4, header=header, free=free):
        user, item, tag, time = fields
        if not (time.isascii() and time.isdigit()):
            raise damaged(path, line, f"the time {time[:60]!r} is not a number as expected")
        yield line, read_id(path, line, "user", user), read_id(path, line, "item", item), tag
