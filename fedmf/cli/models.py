"""Models of the commands: a `Kind` for each model, and the loaders of model files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from fedmf.bayes import FedBPMF, Posterior
from fedmf.context import ContextTrainer, FedFM, FedLR, FedNN
from fedmf.data import Ratings, Split
from fedmf.data.features import known_features, user_features
from fedmf.data.sets.profiles import FORMS, read_profiles
from fedmf.data.sets.simulated import NAME as SIMULATED
from fedmf.data.sets.simulated import appeal
from fedmf.dp import DPFedMF
from fedmf.ease import DPEase, ItemWeights
from fedmf.ease.weights import KIND as ITEM_WEIGHTS
from fedmf.errors import SettingError
from fedmf.fcf import FCF, Adam, FederatedCF, Implicit, tuned, views
from fedmf.fcf.moments import VIEWS
from fedmf.masks import FedMMF, LocalHead
from fedmf.masks.recipes import Recipe
from fedmf.models import FedALS, preset
from fedmf.models.factors import Factors
from fedmf.models.factors_file import kind_of
from fedmf.models.recommender import Recommender
from fedmf.training import RoundRecord, Trainer, mae, ranking, rmse
from fedmf.training.measures import Popularity
from fedmf.training.schedule import Scheduled

Saved = Factors | Posterior | ItemWeights


@dataclass(frozen=True, kw_only=True)
class Order:
    """Training that a user asked for: options of the model, and options of every training.

    Parameters
    ----------
    common : aggregation, seed, cohort and dropout
    rounds : int, number of rounds
    given : options of the model that were given, such as k, reg, rate, epsilon and min_raters
    masked : recipe of FedMMF, or None
    report, progress : functions for finished rounds, see `Trainer` and `FCF`
    start : earlier model that the training continues, or None
    """

    common: Mapping[str, Any]
    rounds: int
    given: Mapping[str, Any] = field(default_factory=dict)
    masked: Recipe | None = None
    report: Callable[[Any], None] = lambda record: None
    progress: Callable[[str, int, int], None] = lambda what, done, of: None
    start: Saved | None = None

    def of(self, *names: str) -> dict[str, Any]:
        """Return the given options with these names."""
        return {name: self.given[name] for name in names if name in self.given}

    def watched(self, what: str, sums: int) -> list[Callable[[RoundRecord], None]]:
        """Return the callbacks of a model without errors in the history."""
        return [lambda record: self.progress(what, record.round, sums)]

    def learner(self, trainer: Any) -> Any:
        """Return the trainer, or FedMMF around the trainer if the order has a recipe."""
        masked = self.masked
        return trainer if masked is None else FedMMF(masked.mask, trainer, offset=masked.offset)

    @property
    def together(self) -> dict[str, Any]:
        """Options of every training, without the cohort."""
        return {name: one for name, one in self.common.items() if name != "cohort"}


@dataclass(frozen=True, kw_only=True)
class Kind:
    """Model of ``fedmf train``.

    Parameters
    ----------
    about : line for the help
    build : function from an order to the trainer
    takes : options of models that this model takes
    rounds : int, number of rounds by default
    ranks : True if the model learns from views and ranks items
    headed : True if the model has local heads without --head, too
    sums : settings of the aggregation that the model needs
    """

    about: str
    build: Callable[[Order], Scheduled]
    takes: frozenset[str]
    rounds: int
    ranks: bool = False
    headed: bool = False
    sums: Mapping[str, float | int] = field(default_factory=dict)

    def check(self, name: str, given: Mapping[str, object]) -> None:
        """Raise SettingError for an option that the model `name` does not take."""
        strange = [one for one in given if one not in self.takes]
        if strange:
            shown = ", ".join(
                f"--{one.replace('_', '-')}" + ("" if given[one] is True else f" {given[one]}")
                for one in strange
            )
            takers = [other for other, kind in KINDS.items() if set(strange) <= kind.takes]
            raise SettingError(
                f"{shown} cannot be combined with --model {name}: omit it, or choose --model "
                f"{' or '.join(takers) or 'fedmf'}"
            )


def _fedmf(order: Order) -> Scheduled:
    return _trainer(order, copy(FAST.model).set_params(**order.of(*FACTORS, "rate")))


def _trainer(order: Order, model: Any, **changed: Any) -> Scheduled:
    common = {**order.common, **changed}
    return Trainer(model, rounds=order.rounds, callbacks=[order.report], **common)


def _dpfedmf(order: Order) -> Scheduled:
    return DPFedMF(
        rounds=order.rounds,
        honest=_honest(order.common["dropout"]),
        callbacks=[order.report],
        **order.of("epsilon"),
        **order.together,
    )


def _honest(dropout: float) -> float:
    """Return the share of a cohort that alone adds enough noise, with a margin for dropouts."""
    return max(1 - 2 * dropout, FEWEST)


def _bpmf(order: Order) -> Scheduled:
    return FedBPMF(
        rounds=order.rounds,
        callbacks=[order.report],
        **order.of("k", "min_raters"),
        **order.common,
    )


def suited(trainer: object, n_items: int, rounds: int | None) -> str | None:
    """Give FedBPMF the rounds of a large catalogue, unless `rounds` is a number.

    Returns a line about the rounds, None for a catalogue that is not large.
    """
    if not isinstance(trainer, FedBPMF):
        return None
    plan = FedBPMF(k=trainer.k).plan(n_items)
    if plan.block == trainer.k:
        return None
    trainer.set_params(rounds=plan.rounds if rounds is None else rounds)
    return (
        f"{n_items:,} items: {trainer.rounds} rounds, each of {plan.block} of the {trainer.k} "
        "factors of every item"
    )


def _implicit(order: Order) -> Scheduled:
    made = tuned().set_params(**order.of("k", "reg"))
    system = FederatedCF(made, rounds=order.rounds, **order.of("min_raters"), **order.together)

    def report(record: RoundRecord) -> None:
        # a search trains clones, so that the system itself expects no sums
        order.progress("sums", record.round, getattr(system, "expected", record.round))

    system.callbacks = [report]
    return system


def _fcf(order: Order) -> Scheduled:
    return FCF(
        Implicit(**{"k": 32} | order.of("k", "reg")),
        optimiser=Adam(**order.of("rate")),
        rounds=order.rounds,
        steps=STEPS_OF_EPOCH,
        callbacks=order.watched("sums", order.rounds * STEPS_OF_EPOCH),
        **order.of("min_raters"),
        **order.together,
    )


def _dpease(order: Order) -> Scheduled:
    if order.rounds != EASE_SUMS:
        raise SettingError(
            f"--rounds {order.rounds} cannot be combined with --model dpease, which takes "
            f"{EASE_SUMS} sums at most: omit it"
        )
    honest = _honest(order.common["dropout"])
    return DPEase(honest=honest, **order.of("epsilon", "reg"), **order.together)


def _context(model: type[Any]) -> Callable[[Order], Scheduled]:
    return lambda order: ContextTrainer(
        model(**order.of("rate", "reg")),
        rounds=order.rounds,
        callbacks=order.watched(model.__name__, order.rounds),
        **order.common,
    )


DELTA = 1e-5
# least share of a cohort that alone adds enough noise, for any number of dropouts
FEWEST = 0.1

EASE_SUMS = 2
STEPS_OF_EPOCH = 10
FACTORS = ("k", "reg", "min_raters")
FAST = preset("fast")
STEPS = frozenset({*FACTORS, "rate", "cohort", "head"})
CONTEXT: dict[str, Any] = {"takes": frozenset({"rate", "reg", "cohort"}), "rounds": 200}

# fmt: off
ModelName = Literal["fedmf", "fedmmf", "fedals", "fedbpmf", "dpfedmf", "implicit", "fcf",
                    "dpease", "fedlr", "fedfm", "fednn"]
"""Names of ``--model``."""

KINDS: Mapping[ModelName, Kind] = {
    "fedmf": Kind(about="matrix factorisation", build=_fedmf, takes=STEPS | {"start"},
                  rounds=FAST.rounds),
    "fedmmf": Kind(about="the same with private masks", build=_fedmf, takes=STEPS | {"mask"},
                   rounds=FAST.rounds),
    "fedals": Kind(about="exact least squares, few rounds", rounds=10, sums={"clip": 64.0},
                   build=lambda order: _trainer(order, FedALS(**order.of(*FACTORS))),
                   takes=frozenset({*FACTORS, "cohort", "head", "start"})),
    "fedbpmf": Kind(about="Bayesian matrix factorisation", build=_bpmf, rounds=60,
                    sums={"fractional_bits": 10},
                    takes=frozenset({"k", "min_raters", "cohort", "start"})),
    "dpfedmf": Kind(about="item effects with differential privacy, and local heads", rounds=5,
                    build=_dpfedmf, takes=frozenset({"epsilon", "head"}), headed=True,
                    sums={"clip": 64.0}),
    "implicit": Kind(about="federated CF of views, which ranks", build=_implicit, rounds=10,
                     takes=frozenset({*FACTORS, "start"}), ranks=True, sums=VIEWS),
    "fcf": Kind(about="FCF of views, which ranks", build=_fcf, rounds=20,
                takes=frozenset({*FACTORS, "rate", "start"}), ranks=True,
                sums={"clip": 64.0, "fractional_bits": 24}),
    "dpease": Kind(about="EASE of views with differential privacy, which ranks", build=_dpease,
                   rounds=EASE_SUMS, takes=frozenset({"epsilon", "reg"}), ranks=True,
                   sums={"clip": 64.0}),
    "fedlr": Kind(about="linear model of features", build=_context(FedLR), **CONTEXT),
    "fedfm": Kind(about="factorisation machine of features", build=_context(FedFM), **CONTEXT),
    "fednn": Kind(about="neural network of features", build=_context(FedNN), **CONTEXT),
}
# fmt: on
"""Models by the name of ``--model``."""

LOADERS: Mapping[str, Callable[[Path], Saved]] = {
    "factors": Factors.load,
    "posterior": Posterior.load,
    ITEM_WEIGHTS: ItemWeights.load,
}
"""Loaders of model files, by the kind in the file; `factors_file.LOADERS` has the names."""


def load_model(path: Path) -> Saved:
    """Return the model in a file of any kind, or in the folder of a training.

    Raises ModelError as `Factors.load` does.
    """
    path = path / "model.fedmf" if path.is_dir() else path
    return LOADERS.get(kind_of(path), Factors.load)(path)


def fit(
    trainer: Scheduled, kind: Kind, parts: Split, order: Order, *, head: bool
) -> Recommender:
    """Train, and return the model that predicts."""
    learner = order.learner(trainer)
    given = {} if order.start is None else {"start": order.start}
    given |= features_of(learner, parts.train)
    train = views(parts.train) if kind.ranks else parts.train
    fitted: Any = learner.fit(train, parts.test, **given).model_
    return LocalHead().fit(fitted, train, known_features(train)) if head else fitted


def measured(
    trainer: Scheduled, kind: Kind, fitted: Recommender, parts: Split, *, head: bool
) -> dict[str, object]:
    """Return the measures on the test part that the history does not have, by name.

    Measures of the most popular items, and of the mean rating as a guess, are for comparison.
    Simulated ratings have measures of the true appeal, "best_possible", too.
    """
    simple, train = ranked(Popularity(parts.train), parts), parts.train
    found: dict[str, object] = {"ranking": ranked(fitted, parts), "popularity": simple}
    if isinstance(fitted, Factors) and fitted.ranks:
        found["reg"] = fitted.implicit.reg
    if train.name == SIMULATED:
        truth = Factors.of(*appeal(train.n_users, train.n_items), train)
        found["best_possible"] = ranked(truth, parts)
    if not kind.ranks:
        guess = np.full(parts.test.n_ratings, parts.train.values.mean())
        found["mean_rmse"] = rmse(parts.test.values, guess)
    if kind.ranks or (not head and any(one.test_rmse is not None for one in trainer.history_)):
        return found
    guesses, values = fitted.predict(parts.test.users, parts.test.items), parts.test.values
    prefix = "head_" if head else ""
    return found | {
        f"{prefix}rmse": rmse(values, guesses),
        f"{prefix}mae": mae(values, guesses),
    }


def ranked(fitted: Recommender, parts: Split) -> dict[str, float]:
    """Return the ranking measures of the first ten items, with all test items to be found."""
    found = asdict(ranking(fitted, parts.test, parts.train, min(10, fitted.n_items)))
    if not fitted.ranks:
        # the distance of scores from 1, which is no error of a rating
        del found["rmse"]
    return found


def features_of(learner: object, train: Ratings) -> dict[str, Any]:
    """Return the features that a learner takes in `fit`, by the name of the argument.

    Features of the users are None if the data set has no profiles.
    """
    if isinstance(learner, FedMMF):
        return {"features": known_features(train)}
    if not isinstance(learner, ContextTrainer):
        return {}
    users = user_features(read_profiles(train)) if train.name in FORMS else None
    return {"items": known_features(train), "users": users}
