"""Age, gender and occupation of the users of ml-100k and ml-1m, read on request.

In a deployment each row stays on the user's device, private like the ratings. Zip codes are
validated and skipped: nearly all differ, and no paper describes how to use them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fedmf.data.ratings import Ratings, seal
from fedmf.data.sets.folders import folder_of
from fedmf.data.sets.lines import damaged, read_lines
from fedmf.data.sets.sources import SOURCES, rows
from fedmf.errors import DataError

GENDERS = ("F", "M")  # as both data sets have them


@dataclass(frozen=True, eq=False)
class Profiles:
    """One profile per user, in the order of `fedmf.data.ratings.Ratings.user_ids`; read-only.

    Raises DataError if a dtype, shape or range is wrong.

    Parameters
    ----------
    ages
        int16, shape (n_users,), in years. In ml-1m the lowest age of the user's age group: 1
        for "under 18", 18, 25, 35, 45, 50 or 56.
    genders : int8, shape (n_users,): index in `GENDERS`, 0 for "F" and 1 for "M"
    occupations : int16, shape (n_users,): index in `occupation_names`
    occupation_names : names of all occupations, including occupations that no user has
    """

    ages: NDArray[np.int16]
    genders: NDArray[np.int8]
    occupations: NDArray[np.int16]
    occupation_names: tuple[str, ...]

    def __post_init__(self) -> None:
        seal(self, ages=np.int16, genders=np.int8, occupations=np.int16)
        shape = self.ages.shape
        if len(shape) != 1 or self.genders.shape != shape or self.occupations.shape != shape:
            raise DataError(
                f"profiles need one age, gender and occupation per user, not arrays of shapes "
                f"{shape}, {self.genders.shape} and {self.occupations.shape}"
            )
        for array, end in ((self.genders, 2), (self.occupations, len(self.occupation_names))):
            if ((array < 0) | (array >= end)).any():
                raise DataError(f"a gender or occupation is not a number from 0 to {end - 1}")

    def __len__(self) -> int:
        return self.ages.size


@dataclass(frozen=True)
class Form:
    """Format of a file of users; the pattern has groups id, age, gender and occupation."""

    file: str
    pattern: str
    expected: str
    occupations: tuple[str, ...]


FORMS = rows("profiles", Form)


def read_profiles(ratings: Ratings, root: Path | None = None) -> Profiles:
    """Read the users' profiles that come with a data set.

    Raises DataError if the data set comes without profiles, the file is missing or damaged, or
    the file and the ratings have different users. The message names file and line.

    Parameters
    ----------
    ratings : ratings of ml-100k or ml-1m from `fedmf.data.load`, or a part of them
    root : see `fedmf.data.load`
    """
    form = FORMS.get(ratings.name)
    if form is None:
        raise DataError(
            f"{ratings.name} has no profiles of its users: choose from {' and '.join(FORMS)}"
        )
    path = folder_of(SOURCES[ratings.name], root) / form.file
    place = {str(user): number for number, user in enumerate(ratings.user_ids.tolist())}
    column = {name: number for number, name in enumerate(form.occupations)}
    column |= {str(number): number for number in range(len(form.occupations))}  # in ml-1m
    table = np.full((ratings.n_users, 3), -1, dtype=np.int16)
    for line, text in enumerate(read_lines(path, "ascii"), start=1):
        match = re.fullmatch(form.pattern, text)
        if not match:
            raise damaged(path, line, f"expected {form.expected!r}, found {text[:60]!r}")
        user = place.get(match["id"], -1)
        if user < 0:
            raise damaged(path, line, f"user {match['id']} has no rating in {ratings.name}")
        if table[user, 0] >= 0:
            raise damaged(path, line, f"user {match['id']} is listed a second time")
        if match["occupation"] not in column:
            raise damaged(path, line, f"the occupation {match['occupation']!r} is unknown")
        gender = GENDERS.index(match["gender"])
        table[user] = int(match["age"]), gender, column[match["occupation"]]
    missing = ratings.user_ids[table[:, 0] < 0]
    if missing.size:
        raise DataError(
            f"{path.name} has {ratings.n_users - missing.size} of the {ratings.n_users} users: "
            f"user {missing[0]} is missing; unpack the data set again ({path})"
        )
    ages, genders, occupations = (np.ascontiguousarray(table[:, field]) for field in range(3))
    return Profiles(ages, genders.astype(np.int8), occupations, form.occupations)
