"""Interface of all estimators, which have settings and learn a recommender by `fit`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import wraps
from types import MappingProxyType
from typing import Any, ClassVar, Self
from warnings import warn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedmf.errors import ModelError, SettingError
from fedmf.models.recommender import Floats, Recommender
from fedmf.settings import Settings


class Estimator(Recommender, Settings):
    """Recommender that learns by `fit`; names of fitted attributes end in underscores."""

    model_: Recommender
    _former: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """Present names of settings and attributes by former names, which go with 1.1."""

    def __init_subclass__(cls) -> None:
        """Let the constructor take former names of settings, with a warning."""
        if (present := vars(cls).get("__init__")) is not None:

            @wraps(present)
            def init(self: Estimator, *parts: object, **settings: object) -> None:
                present(self, *parts, **self._renamed(settings))

            cls.__init__ = init  # type: ignore[assignment, method-assign]

    def __getattr__(self, name: str) -> Any:
        """Return an attribute under the former name, with a warning."""
        if (now := self._former.get(name, "")) in vars(self):
            self._renamed({name: None})  # warns
            return vars(self)[now]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __setattr__(self, name: str, value: object) -> None:
        """Set an attribute; a former name sets the present name, with a warning."""
        present = self._renamed({name: value}) if name in self._former else {name: value}
        for now, given in present.items():
            super().__setattr__(now, given)

    def set_params(self, **params: object) -> Self:
        """Change settings in place; see `Settings.set_params`."""
        return super().set_params(**self._renamed(params))

    def _renamed(self, settings: dict[str, object]) -> dict[str, object]:
        """Return settings under their present names, with a warning for each former name."""
        found: dict[str, object] = {}
        for name, value in settings.items():
            if name in self._former:
                text = f"{type(self).__name__}.{name} is now {self._former[name]}"
                warn(f"{text}; the old name goes with 1.1", DeprecationWarning, stacklevel=3)
            now = self._former.get(name, name)
            found[now] = (FormerProgress(value),) if name == "progress" else value
        return found

    @property
    def n_users(self) -> int:
        """Number of users; ModelError before `fit`."""
        return self._fitted().n_users

    @property
    def n_items(self) -> int:
        """Number of items, m; ModelError before `fit`."""
        return self._fitted().n_items

    @property
    def scale(self) -> tuple[float, float] | None:
        """Public scale of the predictions, or None; ModelError before `fit`."""
        return self._fitted().scale

    @property
    def ranks(self) -> bool:
        """True if the model was trained to rank items; ModelError before `fit`."""
        return self._fitted().ranks

    def seen(self, user: int) -> NDArray[np.integer]:
        """Return the items that a user rated in training; ModelError before `fit`."""
        return self._fitted().seen(user)

    def predict(self, users: ArrayLike, items: ArrayLike) -> Floats:
        """Return r̂_ui of each pair; see `Recommender.predict`."""
        return self._fitted().predict(users, items)

    def predict_all(self, users: ArrayLike) -> Floats:
        """Return r̂ of all items for some users; see `Recommender.predict_all`."""
        return self._fitted().predict_all(users)

    def contributions(self, user: int, item: int, values: ArrayLike | None = None) -> Floats:
        """Return the contributions of a user's ratings; see `Recommender.contributions`."""
        return self._fitted().contributions(user, item, values)

    def _forget(self) -> None:
        """Delete the fitted attributes, before a new `fit`."""
        for name in [name for name in vars(self) if name.endswith("_")]:
            del vars(self)[name]

    def _fitted(self) -> Recommender:
        if "model_" not in vars(self):
            raise ModelError("the model is not trained yet: call fit first")
        return self.model_


class FormerProgress:
    """Former function `progress`, as a callback that also takes the number of all rounds."""

    def __init__(self, progress: Any) -> None:
        self._progress = progress

    def __call__(self, record: Any, rounds: int = 0) -> None:
        """Report a finished round."""
        self._progress("rounds", record.round, rounds)


def not_continued(estimator: Estimator, start: object) -> None:
    """Raise SettingError for a start of an estimator that begins every training anew."""
    if start is not None:
        raise SettingError(
            f"{type(estimator).__name__} does not continue a training: leave start out"
        )
