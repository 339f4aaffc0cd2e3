"""`Factors`, the trained model, which predicts, recommends, and can be saved and loaded."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedmf import _fast
from fedmf.data import Features, Ratings
from fedmf.data.internal import to_public
from fedmf.data.ratings import Ids
from fedmf.errors import ModelError
from fedmf.models import additions
from fedmf.models.additions import ImplicitSettings
from fedmf.models.export import Exportable, Format, export
from fedmf.models.factors_file import FACTORS, SEEN, Form, read_tables, write_tables
from fedmf.models.recommender import Floats, all_users, numbers, one_user, pairs, rated
from fedmf.settings import Positive, check

TABLES: Form = {
    "user_factors": (np.float64,),
    "item_factors": (np.float64,),
    **SEEN,
    "scale": (np.float64,),
    "ranks": (np.bool_,),
    "implicit": (np.float64,),
    "centre": (np.float64,),
}
PLAIN = ImplicitSettings()
ADDED = {  # the values in files of version 1
    "scale": np.zeros(0),
    "ranks": np.array(False),
    "implicit": np.array(PLAIN),
    "centre": np.zeros(0),
}
PER_RATING = 0.12  # λ of a new user's row, as in the preset `fast`


@dataclass(frozen=True, eq=False)
class Factors(Exportable):
    """Item and user factors, and the items that each user rated.

    In a deployment the server has only Q, and each user has their p_u and ratings. A simulation
    has all of these data, and so has a saved file: protect that file like the ratings. Raises
    ModelError if the shapes do not match, or the factors are not real numbers.

    Parameters
    ----------
    user_factors
        P, real numbers (converted to float64), shape (n_users, k), k ≥ 1. Row u is p_u of the
        FedMMF paper's eq. 1.
    item_factors
        Q, real numbers (converted to float64), shape (n_items, k). Row i is q_i.
    seen_indptr, seen_items
        int64, shape (n_users + 1,), and int32: the items that each user rated in training, in
        the layout of ``indptr`` and ``items`` of `Ratings`.
    user_ids, item_ids : int64 or text, the data set's own ids
    scale
        Public scale (low, high) of the ratings. Predictions are mapped to the public scale from
        the internal scale of the training, 1 to 5. None for no mapping.
    ranks
        True if the predictions rank the items, as on implicit feedback, and are no ratings.
    implicit : λ, α and ν of the training, which `fold_in` uses if `ranks` is True
    centre
        x̄, which a training on implicit feedback shrank X to: float64, shape (k,), or (0,) for 0
    """

    user_factors: Floats
    item_factors: Floats
    seen_indptr: NDArray[np.int64]
    seen_items: NDArray[np.int32]
    user_ids: Ids
    item_ids: Ids
    scale: tuple[float, float] | None = None
    ranks: bool = False
    implicit: ImplicitSettings = PLAIN
    centre: Floats = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        for name in ("user_factors", "item_factors"):
            object.__setattr__(self, name, _table(getattr(self, name)))
        if self.scale is not None and not -math.inf < self.scale[0] < self.scale[1] < math.inf:
            raise ModelError(
                f"scale = {self.scale!r} must be the lowest and the highest possible rating"
            )
        (n_users, k), (n_items, k_items) = self.user_factors.shape, self.item_factors.shape
        if (
            k != k_items
            or not k
            or self.centre.shape not in ((k,), (0,))
            or self.user_ids.shape != (n_users,)
            or self.item_ids.shape != (n_items,)
            or not self._seen_fits()
        ):
            raise ModelError(
                f"the model's tables do not fit together: {n_users} users of {k} factors, "
                f"{n_items} items of {k_items}, {self.user_ids.size} user ids, "
                f"{self.item_ids.size} item ids, {self.seen_items.size} rated items"
            )

    @classmethod
    def of(
        cls,
        user_factors: Floats,
        item_factors: Floats,
        ratings: Ratings,
        *,
        scale: tuple[float, float] | None = None,
        ranks: bool = False,
        implicit: ImplicitSettings = PLAIN,
        centre: Floats | None = None,
    ) -> Factors:
        """Return factors with the items and ids of `ratings`; ModelError if shapes differ."""
        return cls(
            user_factors,
            item_factors,
            scale=scale,
            ranks=ranks,
            implicit=implicit,
            centre=np.zeros(0) if centre is None else centre,
            **all_users(ratings),
        )

    @property
    def k(self) -> int:
        """Number of latent factors."""
        return int(self.item_factors.shape[1])

    def predict(self, users: ArrayLike, items: ArrayLike) -> Floats:
        """Return r̂_ui = q_i · p_u (eq. 1), on the public scale; see `Recommender.predict`."""
        rows, columns = pairs(users, items, self.n_users, self.n_items)
        flat = np.empty(rows.size)
        _fast.predict(
            self.user_factors, self.item_factors, rows.reshape(-1), columns.reshape(-1), flat
        )
        found = flat.reshape(rows.shape)
        return found if self.scale is None else to_public(found, self.scale)

    def predict_all(self, users: ArrayLike) -> Floats:
        """Return r̂ of all items for some users; see `Recommender.predict_all`."""
        p = self.user_factors[numbers("user", users, self.n_users).reshape(-1)]
        q = self.item_factors.T.copy()  # contiguous columns
        # Added from first to last, as in `predict`: a matrix product may round items with equal
        # factors differently, and ties must be broken by item number.
        found = p[:, :1] * q[0]
        for factor in range(1, self.k):
            found += p[:, factor : factor + 1] * q[factor]
        return found if self.scale is None else to_public(found, self.scale)

    def contributions(self, user: int, item: int, values: ArrayLike | None = None) -> Floats:
        """Return the contribution of each of the user's own ratings to r̂ of an item.

        On implicit feedback the sum is r̂ without the part of x̄, as X is exact for Y (Hu, Koren
        and Volinsky 2008, section 5, eq. 7). The sum differs slightly after `with_items`, which
        leaves X unchanged, or for items that `FCF` left out. For a model of ratings the sum is
        the change of r̂ that the ratings cause in `fold_in`. See `Recommender.contributions`.
        """
        row, column = pairs([user], [item], self.n_users, self.n_items)
        rated_items = self.seen(int(row[0]))
        if values is None and not self.ranks:
            raise ModelError(
                "a model of ratings does not keep them: pass values=ratings.of_user(user)[1]"
            )
        given = np.ones(rated_items.size) if values is None else np.asarray(values)
        if given.shape != rated_items.shape or given.dtype.kind not in "iuf":
            raise ModelError(
                f"values = {values!r} must be one number for each of the {rated_items.size} "
                "items that the user rated"
            )
        own, to = given.astype(np.float64), int(column[0])
        if self.ranks:
            return additions.implicit_parts(
                self.item_factors, rated_items, own, self.implicit, to
            )
        return additions.rating_parts(self, rated_items, own, PER_RATING, to)

    def fold_in(
        self,
        items: ArrayLike,
        ratings: ArrayLike,
        *,
        reg: float | None = None,
        alpha: float | None = None,
    ) -> Factors:
        """Return the factors of a new user, number 0, found from their own ratings.

        Nothing is sent, and no other row changes. The user's row is shrunk to the mean of the
        users, which a deployment sums securely; without ratings the row is that mean. After
        `Implicit` without ``centred`` the row is shrunk to 0, and scores without ratings are 0.

        Parameters
        ----------
        items : ids of the rated items, distinct, shape (n,)
        ratings : numbers within the scale, shape (n,); for implicit feedback 1 for a view
        reg
            λ > 0: per rating, .12 by default; for implicit feedback (``ranks``) the training's
            λ by default.
        alpha : float, α > 0, for implicit feedback alone; the training's α by default

        Raises
        ------
        ModelError
            If an item is unknown or occurs twice, or a rating is outside the scale.
        SettingError
            If `reg` or `alpha` is not positive.
        """
        check(Positive | None, reg=reg, alpha=alpha)
        rows, values = rated(items, ratings, self.item_ids, self.scale)
        if self.ranks:
            old = self.implicit
            settings = old._replace(reg=reg or old.reg, alpha=alpha or old.alpha)
            centre = self.centre if self.centre.size else np.zeros(self.k)
            row = additions.implicit_row(self.item_factors, centre, rows, values, settings)
        else:
            row = additions.rating_row(self, rows, values, PER_RATING if reg is None else reg)
        return replace(self, user_factors=row[None], **one_user(rows))

    def with_items(
        self, ids: ArrayLike, features: Features, known: Features, *, penalty: float = 20.0
    ) -> Factors:
        """Return the factors with new items; the new rows follow from the items' features.

        A ridge regression links the features of the items that were rated in training to
        their rows of Q. So add new items before `fold_in`, which forgets that training.

        Parameters
        ----------
        ids : ids of the new items, shape (n,), of the type of `item_ids`
        features : features with a row per new item
        known : features with a row per item of the model, and the same columns
        penalty : float, ridge penalty, > 0

        Raises
        ------
        ModelError
            If an id is known or occurs twice, the features do not fit, or the model has one
            user, as after `fold_in`.
        SettingError
            If `penalty` is not positive, or an argument is not `Features`.
        """
        check(Positive, penalty=penalty)
        additions.check_columns(features, known, self.n_items)
        together = additions.new_ids(self.item_ids, ids, len(features))
        if self.n_users == 1:
            raise ModelError(
                "a model of one user does not know which items were rated in training: call "
                "with_items before fold_in"
            )
        was_rated = np.unique(self.seen_items)
        of_rated = Features(known.matrix[was_rated], known.names)
        rows = additions.linked_rows(self.item_factors[was_rated], of_rated, features, penalty)
        q = np.concatenate((self.item_factors, rows))
        return replace(self, item_factors=q, item_ids=together)

    def export(self, path: str | os.PathLike[str], form: Format = "npz") -> Path:
        """Write factors and ids for other programs; see `fedmf.models.export`."""
        return export(self, path, form)

    def __repr__(self) -> str:
        return f"<Factors: {self.n_users} users, {self.n_items} items, k = {self.k}>"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the factors to `path`; a concurrent reader sees the old file or the new file.

        Raises ModelError if the file cannot be written, as in a folder that does not exist.
        """
        tables = {name: getattr(self, name) for name in TABLES}
        tables["scale"] = np.array(self.scale or (), dtype=np.float64)
        tables["implicit"] = np.array(self.implicit, dtype=np.float64)
        write_tables(path, FACTORS, tables)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Factors:
        """Read a file that `save` wrote.

        Raises ModelError if the file is missing, damaged, not a model, of another version, or
        with inconsistent tables. The message names the reason.
        """
        tables = read_tables(path, FACTORS, TABLES, ADDED)
        ends, ranks, how = (tables.pop(name) for name in ("scale", "ranks", "implicit"))
        sound = how.shape == (3,) and np.isfinite(how).all() and (how[:2] > 0).all()
        if ends.shape not in ((0,), (2,)) or ranks.shape or not sound:
            raise ModelError(
                f"the scale {ends}, the mark for rankings {ranks} or the settings {how} of the "
                f"model {path} are wrong: train the model again"
            )
        scale = (float(ends[0]), float(ends[1])) if ends.size else None
        implicit = ImplicitSettings(*how.tolist())
        factors = cls(**tables, scale=scale, ranks=bool(ranks), implicit=implicit)
        for name in ("user_factors", "item_factors", "centre"):
            if not np.isfinite(getattr(factors, name)).all():
                raise ModelError(
                    f"{name} of the model {path} has NaN or infinity: train the model again"
                )
        factors._check_seen(path)
        return factors


def _table(factors: ArrayLike) -> Floats:
    """Convert factors to the layout of the kernels, float64 row by row; raises ModelError."""
    table = np.asarray(factors)
    if table.ndim != 2 or table.dtype.kind not in "fiu":
        raise ModelError(
            "the factors must be two tables of real numbers, one row per user and per item"
        )
    return np.ascontiguousarray(table, dtype=np.float64)
