"""Options of ``fedmf train``, with help texts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedmf.cli import choices
from fedmf.cli.choices import LAST, MaskName, ModelName, SplitName, SumName
from fedmf.cli.models import DELTA, KINDS
from fedmf.models import PRESETS

Model = Annotated[
    ModelName | None,
    typer.Option(
        help="The model to train. "
        + "; ".join(f"{name}: {kind.about}" for name, kind in KINDS.items())
        + ".",
        show_default="fedbpmf",
    ),
]
Mask = Annotated[
    MaskName | None,
    typer.Option(
        help="fedmmf: the model that each user fits first, to genres and year (Last.fm: to "
        "tags). A model with nn is not written to --out.",
        show_default="ridge",
    ),
]
Head = Annotated[
    bool,
    typer.Option(
        "--head",
        metavar="",
        help="Correct the finished model on each user's own ratings.",
    ),
]
PresetOption = Annotated[
    str | None,
    typer.Option(
        "--preset",
        help="fedmf, fedmmf: the hyper-parameters: "
        + "; ".join(f"{name}: {one.about}" for name, one in PRESETS.items())
        + ".",
        show_default="fast",
    ),
]
Aggregation = Annotated[
    SumName,
    typer.Option(
        help="The sum of the gradients: by secret sharing, by one message and helpers, by "
        "homomorphic encryption, or in the clear."
    ),
]
Neighbours = Annotated[
    int | None,
    typer.Option(
        help="secagg: the number of neighbours of each user, even, or 0 for all users.",
        show_default="all up to 100 users, else 60",
    ),
]
Threshold = Annotated[
    int | None,
    typer.Option(
        help="secagg: the number of shares that recover a user's masks. one-shot: the "
        "number of helpers that open a sum. paillier: the number of trustees that decrypt "
        "together.",
        show_default="secagg: two thirds; one-shot: 2",
    ),
]
Helpers = Annotated[
    int | None,
    typer.Option(help="one-shot: the number of helpers.", show_default="3"),
]
Trust = Annotated[
    str | None,
    typer.Option(
        help="paillier: the trust model, required: "
        f"{', '.join(choices.TRUST)}. Its warning is printed.",
        show_default=False,
    ),
]
Trustees = Annotated[
    int | None,
    typer.Option(help="paillier, --trust threshold: the number of trustees."),
]
Bits = Annotated[
    int | None,
    typer.Option(help="paillier: the length of the key in bits.", show_default="3072"),
]
Cohort = Annotated[
    str | None,
    typer.Option(
        help="The users of a round: a number such as 100, or a fraction such as 0.5.",
        show_default="all users",
    ),
]
Dropout = Annotated[
    float | None,
    typer.Option(help="The probability that a user drops out of a round.", show_default="0"),
]
Rounds = Annotated[
    int | None, typer.Option(help="The number of rounds.", show_default="the model's")
]
Seed = Annotated[
    int | None,
    typer.Option(help="The seed of the split and of the training.", show_default="0"),
]
SplitOption = Annotated[
    SplitName | None,
    typer.Option(
        help="The test part: 20 % at random, the last 20 % of all by time, each user's "
        f"last {LAST} ratings, or an official fold of ml-100k.",
        show_default="random",
    ),
]
Factors = Annotated[
    int | None,
    typer.Option(
        "--factors", "-k", help="k, the number of factors.", show_default="the preset's"
    ),
]
Reg = Annotated[
    float | None,
    typer.Option(help="λ, the regularisation per rating.", show_default="the preset's"),
]
Rate = Annotated[
    float | None, typer.Option(help="γ, the learning rate.", show_default="the preset's")
]
MinRaters = Annotated[
    int | None,
    typer.Option(
        help="The fewest raters of a trained item; a sum over one user hides nothing.",
        show_default="the preset's",
    ),
]
Epsilon = Annotated[
    float | None,
    typer.Option(
        help=f"dpfedmf, dpease: ε for all ratings of a user together, with δ = {DELTA:g}. "
        "Noise is drawn from the operating system, not from --seed.",
        show_default="dpease: 8",
    ),
]
Start = Annotated[
    Path | None,
    typer.Option(
        help="The file or folder of an earlier training to continue, with the same model and "
        "settings unless others are given; users and items are matched by id. --data has all "
        "ratings, the old and the new."
    ),
]
Force = Annotated[
    bool,
    typer.Option(
        "--force",
        metavar="",
        help="Let a model that is worse than --start replace the start in --out.",
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(help="The folder for model.fedmf, ranking.fedmf, history.json and curve.svg."),
]
NoRanking = Annotated[
    bool,
    typer.Option(
        "--no-ranking",
        metavar="",
        help="Leave out ranking.fedmf, a small model of implicit feedback, of all users, "
        "that --out trains beside a model of ratings; fedmf recommend ranks by ranking.fedmf.",
    ),
]
