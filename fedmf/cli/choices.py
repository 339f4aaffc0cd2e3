"""What the options of ``fedmf train`` stand for: the names, and the objects made of them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from fedmf.aggregate import WARNINGS, PaillierSum, PlainSum, SecAggSum, Trust
from fedmf.aggregate.aggregation import Progress
from fedmf.aggregate.paillier import FEWEST_TRUSTEES
from fedmf.data import Ratings, Split
from fedmf.data.splits import leave_last, official, random_split
from fedmf.errors import SettingError
from secagg.paillier.public_key import MAX_BITS, MIN_BITS
from secagg.threshold.key import MAX_TRUSTEES

__all__ = [
    "LAST",
    "REMEDIES",
    "TRUST",
    "MaskName",
    "ModelName",
    "SplitName",
    "SumName",
    "aggregation",
    "cohort",
    "split",
]

LAST = 3  # ratings per user in the test part of --split last


class ModelName(StrEnum):
    """The models that can be trained."""

    FEDMF = "fedmf"
    FEDMMF = "fedmmf"


class MaskName(StrEnum):
    """What FedMMF's users fit to their own ratings first."""

    RIDGE = "ridge"
    FM = "fm"
    NN = "nn"
    MEAN = "mean"


class SumName(StrEnum):
    """How the users' gradients are summed."""

    SECAGG = "secagg"
    PAILLIER = "paillier"
    PLAIN = "plain"


class SplitName(StrEnum):
    """How the ratings are parted."""

    RANDOM = "random"
    LAST = "last"
    U1 = "u1"
    U2 = "u2"
    U3 = "u3"
    U4 = "u4"
    U5 = "u5"


TRUST: Mapping[str, Trust] = {model.replace(" ", "-"): model for model in WARNINGS}
"""Who can decrypt, under names that a shell takes without quotes; see `PaillierSum`."""

OPTIONS: Mapping[SumName, frozenset[str]] = {
    SumName.SECAGG: frozenset({"neighbours", "threshold"}),
    SumName.PAILLIER: frozenset({"trust", "trustees", "threshold", "bits"}),
    SumName.PLAIN: frozenset(),
}

REMEDIES: Mapping[SumName, str] = {
    SumName.SECAGG: "lower --threshold or --dropout, or take more --neighbours",
    SumName.PAILLIER: "lower --dropout, or take a larger --cohort",
    SumName.PLAIN: "lower --dropout, or take a larger --cohort",
}
"""What helps where every round was aborted."""


def aggregation(
    name: SumName,
    *,
    neighbours: int | None = None,
    threshold: int | None = None,
    trust: str | None = None,
    trustees: int | None = None,
    bits: int | None = None,
    progress: Progress,
) -> PlainSum | SecAggSum | PaillierSum:
    """Return the aggregation of that name; the options that are None have their default.

    Raises
    ------
    SettingError
        If an option belongs to another aggregation, `trust` is missing or unknown, or the
        options do not go with it.
    """
    options = {
        "neighbours": neighbours,
        "threshold": threshold,
        "trust": trust,
        "trustees": trustees,
        "bits": bits,
    }
    given = {option: value for option, value in options.items() if value is not None}
    strange = [f"--{option}" for option in given if option not in OPTIONS[name]]
    if strange:
        raise SettingError(
            f"{', '.join(strange)} cannot go with --aggregation {name}: leave them out"
        )
    if name is SumName.PLAIN:
        return PlainSum()
    if name is SumName.SECAGG:
        return SecAggSum(
            neighbours="auto" if neighbours is None else neighbours or None,
            threshold=threshold,
            progress=progress,
        )
    model = _trust(trust)
    _check_trustees(model, trustees, threshold)
    bits = 3072 if bits is None else bits
    if not MIN_BITS <= bits <= MAX_BITS or bits % 64:
        raise SettingError(
            f"--bits {bits} must be a multiple of 64 from {MIN_BITS} to {MAX_BITS}"
        )
    return PaillierSum(
        trust=model, trustees=trustees, threshold=threshold, bits=bits, progress=progress
    )


def _trust(text: str | None) -> Trust:
    """Return the trust model, whether its words are joined by hyphens or spaces."""
    if text is None:
        models = "; ".join(f"{name}: {WARNINGS[model]}" for name, model in TRUST.items())
        raise SettingError(f"--aggregation paillier needs --trust, one of {models}")
    name = text.replace(" ", "-")
    if name not in TRUST:
        raise SettingError(f"--trust {text} is unknown; there are {', '.join(TRUST)}")
    return TRUST[name]


def _check_trustees(trust: Trust, trustees: int | None, threshold: int | None) -> None:
    """Refuse here what `PaillierSum` would refuse in the words of Python."""
    shown = " ".join(
        f"--{name} {value}"
        for name, value in (("trustees", trustees), ("threshold", threshold))
        if value is not None
    )
    if trust != "threshold":
        if shown:
            raise SettingError(
                f"{shown}: only --trust threshold has trustees; leave it out, or take that"
            )
    elif (
        trustees is None
        or threshold is None
        or not FEWEST_TRUSTEES <= threshold <= trustees <= MAX_TRUSTEES
    ):
        raise SettingError(
            f"{shown or '--trust threshold'}: give up to {MAX_TRUSTEES} trustees and a "
            f"threshold of at least {FEWEST_TRUSTEES} of them, or one could decrypt alone; "
            "such as --trustees 3 --threshold 2"
        )


def cohort(text: str | None) -> int | float | None:
    """Return the number or the fraction of users that a text says; raises SettingError."""
    if text is None:
        return None
    try:
        return float(text) if "." in text else int(text)
    except ValueError:
        raise SettingError(
            f"--cohort {text} must be a number of users such as 100, or a fraction such as 0.5"
        ) from None


def split(ratings: Ratings, name: SplitName, seed: int) -> Split:
    """Return the ratings parted as the name says; raises SettingError or DataError."""
    if name is SplitName.RANDOM:
        return random_split(ratings, seed=seed)
    if name is SplitName.LAST:
        return leave_last(ratings, LAST)
    return official(ratings, int(name.value[1]))
