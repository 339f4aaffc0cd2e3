"""FedMF, the masks by themselves, and FedMMF: Table 4 of Yang et al. 2021."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from benches.papers.context import CONTEXT_ROWS, LASTFM_ROWS, ML10M_ROWS
from benches.papers.table import Below, Published, Row, Run, Table, Target
from benches.papers.training import SEEDS_0_AND_1_SEEN, judged, parted, trainer
from fedmf.aggregate import PlainSum
from fedmf.data.features import known_features
from fedmf.masks import FedMMF, FMMask, Mask, MeanMask, NNMask, RidgeMask
from fedmf.masks.recipes import Recipe, recipe
from fedmf.models import PRESETS, FedMF
from fedmf.models.presets import Preset

__all__ = ["TABLES"]

SYSTEMS = (
    *("FedMF", "LocalLR", "One-order FedMMF", "LocalFM", "Two-order FedMMF", "LocalNN"),
    "High-order FedMMF",
)
# Table 4 of the paper: RMSE and its spread, MAE and its spread, of each system.
PUBLISHED: Mapping[str, Mapping[str, Mapping[str, Published]]] = {
    data: {
        name: {"RMSE": Published(*row[:2]), "MAE": Published(*row[2:])}
        for name, row in zip(SYSTEMS, rows, strict=True)
    }
    for data, rows in {
        "ml-100k": (
            (0.9491, 0.0040, 0.7412, 0.0027),
            (1.0107, 0.0025, 0.8040, 0.0022),
            (0.9340, 0.0043, 0.7340, 0.0035),
            (1.0083, 0.0019, 0.8054, 0.0019),
            (0.9218, 0.0037, 0.7250, 0.0030),
            (1.0114, 0.0021, 0.8087, 0.0017),
            (0.9319, 0.0025, 0.7317, 0.0018),
        ),
        "ml-10m": (
            (0.7753, 0.0034, 0.5827, 0.0015),
            (0.8818, 0.0023, 0.6766, 0.0011),
            (0.7695, 0.0013, 0.5808, 0.0008),
            (0.8938, 0.0023, 0.6862, 0.0012),
            (0.7720, 0.0013, 0.5827, 0.0007),
            (0.8819, 0.0020, 0.6816, 0.0009),
            (0.7648, 0.0016, 0.5772, 0.0008),
        ),
        "lastfm": (
            (1.2235, 0.0068, 0.8780, 0.0047),
            (1.1081, 0.0099, 0.8163, 0.0085),
            (1.0886, 0.0109, 0.8066, 0.0092),
            (1.0845, 0.0130, 0.7988, 0.0035),
            (1.0842, 0.0090, 0.7964, 0.0031),
            (1.1007, 0.0068, 0.8007, 0.0123),
            (1.0860, 0.0055, 0.7933, 0.0070),
        ),
    }.items()
}

LOCAL = {"ridge": "LocalLR", "fm": "LocalFM", "nn": "LocalNN", "mean": "the user's mean"}
ORDER = {"ridge": "One-order", "fm": "Two-order", "nn": "High-order", "mean": "User-mean"}


def _fedmf(data: str, preset: Preset, run: Run) -> dict[str, float]:
    split = parted(data, run)
    return judged(trainer(preset, PlainSum(), run).fit(split.train).factors_, split.test)


def _local(data: str, mask: Mask, run: Run) -> dict[str, float]:
    split = parted(data, run)
    return judged(mask.fit(known_features(split.train), split.train, run.seed), split.test)


def _fedmmf(data: str, chosen: Recipe, run: Run) -> dict[str, float]:
    split = parted(data, run)
    model = FedMMF(chosen.mask, trainer(chosen.preset, PlainSum(), run), offset=chosen.offset)
    model.fit(split.train, features=known_features(split.train))
    return judged(model.model_, split.test)


def _fedmf_row(data: str, name: str, preset: Preset, target: Mapping[str, Target]) -> Row:
    paper = name == "paper"
    return Row(
        name="FedMF" if paper else f"FedMF, preset {name}",
        data=data,
        run=partial(_fedmf, data, preset),
        paper=PUBLISHED[data]["FedMF"] if paper else {},
        target=target,
    )


def _local_row(data: str, kind: str, mask: Mask) -> Row:
    return Row(
        name=LOCAL[kind],
        data=data,
        run=partial(_local, data, mask),
        paper=PUBLISHED[data].get(LOCAL[kind], {}),
        target={"RMSE": Target(at_most=1.010)} if data == "ml-100k" and kind != "mean" else {},
    )


def _fedmmf_row(
    data: str,
    kind: str,
    label: str,
    chosen: Recipe,
    target: Target | None = None,
    below: Below | None = None,
) -> Row:
    name = f"{ORDER[kind]} FedMMF"
    return Row(
        name=f"{name}, {label}" if label else name,
        data=data,
        run=partial(_fedmmf, data, chosen),
        paper={} if label else PUBLISHED[data].get(name, {}),
        target={"RMSE": target} if target else {},
        below={"RMSE": below} if below else {},
    )


def _about(centre: float, by: float) -> Target:
    return Target(at_least=round(centre - by, 4), at_most=round(centre + by, 4))


# Best alone on the grid of `fedmf.masks.recipes`, less than what makes the best mask; the
# NN's l2 is the lower end of its grid.
LOCAL_MASKS: Mapping[str, Mask] = {
    "ridge": RidgeMask(penalty=20.0),
    "fm": FMMask(l2=0.2),
    "nn": NNMask(l2=0.1),
}

# (reproduced, at least as good as)
GOALS = {
    "ridge": (_about(0.930, 0.008), Target(at_most=0.907)),
    "fm": (_about(0.922, 0.008), Target(at_most=0.909)),
    "nn": (_about(0.925, 0.008), Target(at_most=0.914)),
}


def _ml100k() -> tuple[Row, ...]:
    data = "ml-100k"
    tight = {"RMSE": _about(0.949, 0.006), "MAE": _about(0.741, 0.005)}
    rows = [
        _fedmf_row(data, "paper", PRESETS["paper"], tight),
        _fedmf_row(data, "tuned", PRESETS["tuned"], {"RMSE": Target(at_most=0.912)}),
    ]
    for kind, federated in zip(GOALS, CONTEXT_ROWS, strict=True):
        paper, tuned = recipe(kind, "paper"), recipe(kind, "tuned")
        rows += [
            _local_row(data, kind, LOCAL_MASKS[kind]),
            federated,
            _fedmmf_row(data, kind, "", paper, GOALS[kind][0], Below("FedMF", 0.012)),
            _fedmmf_row(data, kind, "tuned", tuned, GOALS[kind][1], Below(LOCAL[kind], 0.08)),
        ]
    return (
        *rows,
        _local_row(data, "mean", MeanMask()),
        _fedmmf_row(data, "mean", "tuned", recipe("mean", "tuned")),
    )


# Chosen on a tenth of the training ratings of Last.fm held out, means over seeds 0 and 1: rates
# of .0005 and .002, λ of .02, .05, .08, .1, .2, normalised steps with 3 and 20 raters at least.
# The steps of the paper leave alone what few have listened to, and that is most artists.
LASTFM = Preset(
    FedMF(k=20, reg=0.02, rate=0.0005, update="paper", start="neutral", spread=0.03),
    28,
    "Last.fm",
)
LASTFM_MASKS: Mapping[str, Mask] = {
    "ridge": RidgeMask(penalty=20.0),
    "fm": FMMask(l2=0.1),
    "nn": NNMask(l2=0.1),
    "mean": MeanMask(),
}


def _lastfm() -> tuple[Row, ...]:
    data = "lastfm"
    # by itself, from a start that no mask has corrected, FedMF wants more rounds
    alone = replace(LASTFM, rounds=90)
    rows = [
        _fedmf_row(data, "paper", PRESETS["paper"], {}),
        _fedmf_row(data, "tuned", alone, {}),
    ]
    for kind, mask in LASTFM_MASKS.items():
        target = Target(at_most=0.850) if kind == "mean" else None
        rows += [
            _local_row(data, kind, mask),
            _fedmmf_row(data, kind, "", Recipe(mask, True, LASTFM), target),
        ]
    return (*rows, *LASTFM_ROWS)


def _ml10m() -> tuple[Row, ...]:
    """Return the paper's ten rows, with what was chosen on smaller data sets."""
    data, name = "ml-10m", "large"
    rows = [_fedmf_row(data, name, PRESETS[name], {})]
    for kind, federated in zip(GOALS, ML10M_ROWS, strict=True):
        mask, chosen = LOCAL_MASKS[kind], recipe(kind, name)
        rows += [
            _local_row(data, kind, mask),
            federated,
            _fedmmf_row(data, kind, f"preset {name}", chosen),
        ]
    published = PUBLISHED[data]
    return tuple(
        replace(row, paper=published.get(row.name.partition(",")[0], row.paper), seeds=1)
        for row in rows
    )


METRICS = ("RMSE", "MAE")
NOTE = (
    "80/20 split per rating, errors unclipped; sums are the fixed-point integers that the "
    "secure sum gives. The paper states neither hyper-parameters nor bins: "
)

TABLES = (
    Table(
        key="fedmmf-4",
        title="FedMMF, Yang et al. 2021, Table 4: MovieLens 100K",
        metrics=METRICS,
        rows=_ml100k(),
        note=NOTE + "the rows without an addition stand for its own, FedMF with the setting "
        "that comes to its RMSE; all others were chosen on validation ratings. "
        + SEEDS_0_AND_1_SEEN
        + " FedMMF's tuned masks are penalised more than is best for the mask alone: what they "
        "do not fit, the factors do. The l2 of the tuned two- and high-order masks are the "
        "largest that were tried.",
    ),
    Table(
        key="fedmmf-4-lastfm",
        title="FedMMF, Yang et al. 2021, Table 4: Last.fm",
        metrics=METRICS,
        rows=_lastfm(),
        note="80/20 split per rating, errors unclipped, PlainSum. Not a reproduction: the "
        "paper does not tell its bins. Ratings are fifths of all listening counts here, so "
        "that a user's mean predicts most of a rating; masks see 20 components of the artists' "
        "tags, and FedMMF trains with the offset on settings chosen on validation ratings. "
        + SEEDS_0_AND_1_SEEN
        + " FedLR, FedFM and FedNN have the settings of MovieLens 100K. From a start "
        "around zero FedMF predicts 0 where it knows nothing: its figure depends on when it is "
        "stopped.",
    ),
    Table(
        key="fedmmf-4-ml-10m",
        title="FedMMF, Yang et al. 2021, Table 4: MovieLens 10M",
        metrics=METRICS,
        rows=_ml10m(),
        note=NOTE + "all is as it was chosen elsewhere, masks and federated context models on "
        "MovieLens 100K, the factors (preset large) on MovieLens 1M. Features are genres and "
        "year, without the tags that the paper adds, and nothing of the users. As smaller sets "
        "go, a run takes a minute (LocalLR) to half an hour (FedFM, FedNN) of one core a row, "
        "about two hours in all.",
    ),
)
