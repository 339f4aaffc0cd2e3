"""Features of items and users as numbers: genres, year, tags, age, gender and occupation."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedmf.data.ratings import Ratings
from fedmf.data.sets.lastfm import BINS
from fedmf.data.sets.profiles import Profiles
from fedmf.data.sets.tags import Tags, read_tags
from fedmf.errors import DataError, SettingError
from secagg.errors import needing


@dataclass(frozen=True, eq=False, init=False)
class Features:
    """One row of numbers per item (or per user); read-only.

    Raises DataError if the shapes do not match, a number is not finite, or a name is no string.

    Parameters
    ----------
    matrix : finite numbers or flags, shape (n, d); converted to float64
    names : one name per column, such as "genre:Drama", "year" or "tag:0"; converted to a tuple
    """

    matrix: NDArray[np.float64]
    names: tuple[str, ...]

    def __init__(self, matrix: ArrayLike, names: Iterable[str]) -> None:
        no_list = isinstance(names, str) or not isinstance(names, Iterable)
        columns = () if no_list else tuple(names)
        if no_list or not all(isinstance(name, str) for name in columns):
            raise DataError(f"names = {names!r} must be a list of strings, one per column")
        try:
            given = np.asarray(matrix)
            if given.dtype.kind not in "biufO":
                raise TypeError(given.dtype)
            numbers = np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            raise DataError(
                "features must be an array of numbers, a row per item and a column per name"
            ) from None
        if numbers.ndim != 2 or numbers.shape[1] != len(columns):
            raise DataError(
                f"{len(columns)} names do not fit a matrix of shape {numbers.shape}; it must "
                "have one column per name"
            )
        if not np.isfinite(numbers).all():
            row, column = np.argwhere(~np.isfinite(numbers))[0]
            raise DataError(
                f"features must be finite numbers, but {columns[column]!r} of row {row} is "
                f"{numbers[row, column]}"
            )
        view = numbers.view()
        view.flags.writeable = False
        object.__setattr__(self, "matrix", view)
        object.__setattr__(self, "names", tuple(str(name) for name in columns))

    def __len__(self) -> int:
        return len(self.matrix)

    def beside(self, other: Features) -> Features:
        """Return the columns of both; raises DataError if `other` has more or fewer rows."""
        if len(self) != len(other):
            raise DataError(
                f"features of {len(self)} rows and of {len(other)} differ: pass the same rows"
            )
        return Features(np.hstack((self.matrix, other.matrix)), self.names + other.names)


def check_are_features(**values: object) -> None:
    """Validate that arguments are `Features`; raises SettingError."""
    for name, value in values.items():
        if not isinstance(value, Features):
            raise SettingError(
                f"{name} must be Features, not {type(value).__name__}: pass "
                "Features(array, names)"
            )


def check_rows(features: Features, ratings: Ratings) -> None:
    """Validate features of the items of `ratings`.

    Raises SettingError if the argument is not `Features`, and DataError unless there is exactly
    a row per item.
    """
    check_are_features(features=features)
    if len(features) != ratings.n_items:
        raise DataError(
            f"features of {len(features)} items do not fit ratings of {ratings.n_items}: pass "
            "features of the same data set"
        )


def item_features(ratings: Ratings, *, year: bool = True) -> Features:
    """Return the items' public genres and year (Yang et al. 2021, table 1, "item attributes").

    Parameters
    ----------
    ratings : ratings with the genres and years in the catalogue
    year
        True to add the year of release, standardised to mean 0 and standard deviation 1 over
        the items of known year; an unknown year is 0. If no year is known, there is no column.

    Returns
    -------
    Features
        ``matrix`` of shape (n_items, d). The columns are "genre:<name>" in the order of
        ``catalogue.genre_names``, 0 or 1, and then "year".
    """
    catalogue = ratings.catalogue
    matrix = catalogue.genres.astype(np.float64)
    names = tuple(f"genre:{name}" for name in catalogue.genre_names)
    known = catalogue.years > 0
    if not year or not known.any():
        return Features(matrix, names)
    years = catalogue.years[known].astype(np.float64)
    # equal years have the deviation 0, which must not divide
    column = np.zeros((len(catalogue), 1))
    column[known, 0] = (years - years.mean()) / (years.std() or 1.0)
    return Features(np.hstack((matrix, column)), (*names, "year"))


def known_features(ratings: Ratings) -> Features:
    """Return the usual features of a data set's items: tags for Last.fm, else genres and year.

    Parameters
    ----------
    ratings
        Ratings from `fedmf.data.load`, or a part of them. Tags are read from the data set's
        files.

    Raises
    ------
    DataError, MissingExtra
        For Last.fm only; see `read_tags` and `tag_features`.
    """
    return tag_features(read_tags(ratings)) if ratings.name in BINS else item_features(ratings)


def user_features(profiles: Profiles) -> Features:
    """Return the users' age, gender and occupation; a user's row needs no other user's data.

    Returns
    -------
    Features
        ``matrix`` of shape (n_users, 2 + number of occupations). The columns are "age" in
        centuries, "gender:F" and "occupation:<name>", the latter 0 or 1.
    """
    n_users = len(profiles)
    occupations = np.zeros((n_users, len(profiles.occupation_names)))
    occupations[np.arange(n_users), profiles.occupations] = 1.0
    age = profiles.ages / 100  # not standardised: no user knows the mean of private ages
    woman = (profiles.genders == 0).astype(np.float64)
    return Features(
        np.column_stack((age, woman, occupations)),
        ("age", "gender:F", *(f"occupation:{name}" for name in profiles.occupation_names)),
    )


def tag_features(
    tags: Tags, components: int = 20, *, of: Literal["items", "users"] = "items"
) -> Features:
    """Return principal components of TF-IDF weights of tags (Yang et al. 2021, section 5.1).

    The tags of an item, or of a user, are a document. A document's weights are
    tf · (ln((1 + n) / (1 + df)) + 1), scaled to length 1; the n documents include documents
    without tags. An item's tags are public; a user's tags are as private as the ratings. The
    same tags give the same features, including signs, up to rounding. Raises SettingError if
    `components` is out of range, and MissingExtra if scikit-learn is not installed.

    Parameters
    ----------
    tags : tags from `read_tags`
    components
        d, the number of components, ≥ 1 and less than the number of documents and of different
        tags. The paper does not give d.
    of : "items" for a row per item, "users" for a row per user

    Returns
    -------
    Features
        ``matrix`` of shape (n_items, d) or (n_users, d), each column of mean 0, the widest
        first; the names are "tag:0", "tag:1", ….
    """
    rows, n_rows = (tags.items, tags.n_items) if of == "items" else (tags.users, tags.n_users)
    most = min(n_rows, len(tags.vocabulary)) - 1
    if not 1 <= components <= most:
        raise SettingError(
            f"components = {components} must be 1 to {most}, fewer than the {n_rows} {of} and "
            f"the {len(tags.vocabulary)} tags"
        )
    with needing("tag_features", "scipy scikit-learn", "scipy", "sklearn"):
        from scipy.sparse import csr_array
        from sklearn.decomposition import PCA
        from sklearn.feature_extraction.text import TfidfTransformer
    shape = (n_rows, len(tags.vocabulary))
    counts = csr_array((np.ones(len(tags)), (rows, tags.words)), shape=shape)
    weights = TfidfTransformer().fit_transform(counts)
    # arpack keeps the matrix sparse (dense it has 170 million elements) and starts at random.
    parts = PCA(components, svd_solver="arpack", random_state=0).fit_transform(weights)
    names = tuple(f"tag:{number}" for number in range(components))
    return Features(np.ascontiguousarray(parts, dtype=np.float64), names)
