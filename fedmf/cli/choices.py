"""Options of ``fedmf train``: the names, and the objects made of the options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from fedmf.aggregate import WARNINGS, OneShotSum, PaillierSum, PlainSum, SecAggSum, Trust
from fedmf.aggregate.aggregation import Progress
from fedmf.bayes import Posterior
from fedmf.data import Ratings, Split
from fedmf.data.splits import leave_last, official, random_split, time_split
from fedmf.ease import ItemWeights
from fedmf.errors import ModelError, SettingError
from fedmf.masks.combined import Combined
from fedmf.masks.recipes import Recipe, recipe
from fedmf.models import Factors
from fedmf.models.recommender import Recommender
from secagg.paillier.gmp import gmpy2

Model = Factors | Combined

LAST = 3  # ratings per user in the test part of --split last


MaskName = Literal["ridge", "fm", "nn", "mean"]
"""Names of FedMMF's masks, which users fit to their own ratings before the training."""

SumName = Literal["secagg", "one-shot", "paillier", "plain"]
"""Names of the aggregations that sum the users' gradients."""

SplitName = Literal["random", "last", "time", "u1", "u2", "u3", "u4", "u5"]
"""Names of the splits of the ratings into training and test part."""

TRUST: Mapping[str, Trust] = {model.replace(" ", "-"): model for model in WARNINGS}
"""Trust models of `PaillierSum`, under names that a shell takes without quotes."""

OPTIONS: Mapping[SumName, frozenset[str]] = {
    "secagg": frozenset({"neighbours", "threshold", "suite"}),
    "one-shot": frozenset({"helpers", "threshold"}),
    "paillier": frozenset({"trust", "trustees", "threshold", "bits"}),
    "plain": frozenset(),
}

OF_SUMS = ("neighbours", "threshold", "suite", "helpers", "trust", "trustees", "bits")
"""All options of `OPTIONS`, in the order of the help."""

REMEDIES: Mapping[SumName, str] = {
    **dict.fromkeys(OPTIONS, "lower --dropout or raise --cohort"),
    "secagg": "lower --threshold or --dropout, or raise --neighbours",
}
"""Remedies in the message for a training in which every round was aborted."""


def aggregation(
    name: SumName, options: Mapping[str, Any], progress: Progress
) -> PlainSum | SecAggSum | OneShotSum | PaillierSum:
    """Return the aggregation of that name, with options of `OPTIONS`; None gives the default.

    Raises SettingError if a required option is missing, an option belongs to another
    aggregation, or a value is out of range. Raises MissingExtra if a package is missing.
    """
    given = {option: value for option, value in options.items() if value is not None}
    strange = [f"--{option}" for option in given if option not in OPTIONS[name]]
    if strange:
        raise SettingError(
            f"{', '.join(strange)} cannot be combined with --aggregation {name}: omit it"
        )
    if name == "plain":
        return PlainSum()
    if name == "secagg":
        neighbours = given.pop("neighbours", "auto")
        return SecAggSum(neighbours=neighbours or None, progress=progress, **given)
    if name == "one-shot":
        return OneShotSum(progress=progress, **given)
    trust = _trust(given.pop("trust", None))
    summing = PaillierSum(trust=trust, progress=progress, **given)
    # raises MissingExtra now, not after the data are read
    gmpy2.version()
    return summing


def _trust(text: str | None) -> Trust:
    """Return the trust model of a name with hyphens or spaces; raises SettingError."""
    if text is None:
        models = "; ".join(f"{name}: {WARNINGS[model]}" for name, model in TRUST.items())
        raise SettingError(f"--aggregation paillier needs --trust, one of {models}")
    name = text.replace(" ", "-")
    if name not in TRUST:
        raise SettingError(f"--trust {text} is unknown: choose from {', '.join(TRUST)}")
    return TRUST[name]


def cohort(text: str | None) -> int | float | None:
    """Parse --cohort: an int is a number of users, a float a fraction; raises SettingError."""
    if text is None:
        return None
    try:
        return float(text) if "." in text else int(text)
    except ValueError:
        raise SettingError(
            f"--cohort {text} must be a number of users such as 100, or a fraction such as 0.5"
        ) from None


def split(ratings: Ratings, name: SplitName, seed: int) -> Split:
    """Split the ratings by the method of that name; raises SettingError or DataError."""
    if name == "random":
        return random_split(ratings, seed=seed)
    if name == "time":
        return time_split(ratings)
    if name == "last":
        return leave_last(ratings, LAST)
    return official(ratings, int(name[1]))


def masked(model: str, mask: MaskName | None) -> Recipe | None:
    """Return the recipe of FedMMF, or None for another model."""
    return recipe(mask or "ridge", "fast") if model == "fedmmf" else None


def as_saved(model: Recommender) -> Factors | Posterior | ItemWeights | None:
    """Return the model to save; None for a model without a form for files (`NNMask`)."""
    if isinstance(model, Factors | Posterior | ItemWeights):
        return model
    try:
        return model.factors() if isinstance(model, Combined) else None
    except ModelError:
        return None
