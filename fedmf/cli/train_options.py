"""Options of ``fedmf train``, with help texts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from fedmf.cli import choices
from fedmf.cli.choices import LAST, MaskName, SplitName, SumName
from fedmf.cli.manners import flag, option
from fedmf.cli.models import DELTA, KINDS, ModelName

Model = Annotated[
    ModelName | None,
    option(
        "The model to train. "
        + "; ".join(f"{name}: {kind.about}" for name, kind in KINDS.items())
        + ".",
        "fedbpmf",
    ),
]
Mask = Annotated[
    MaskName | None,
    option(
        "fedmmf: the model that each user fits first, to genres and year (Last.fm: to tags). A "
        "model with nn is not written to --out.",
        "ridge",
    ),
]
Head = Annotated[
    bool,
    flag("--head", "Correct the finished model on each user's own ratings, as dpfedmf always."),
]
Aggregation = Annotated[
    SumName,
    option(
        "The sum of the gradients: by secret sharing, by one message and helpers, by "
        "homomorphic encryption, or in the clear."
    ),
]
Neighbours = Annotated[
    int | None,
    option(
        "secagg: the number of neighbours of each user, even, or 0 for all users.",
        "all up to 100 users, else the fewest that suit the cohort",
    ),
]
Threshold = Annotated[
    int | None,
    option(
        "secagg: the number of shares that recover a user's masks. one-shot: the number of "
        "helpers that open a sum. paillier: the number of trustees that decrypt together.",
        "secagg: what suits the cohort; one-shot: 2",
    ),
]
Suite = Annotated[
    str | None,
    option(
        "secagg: hybrid, which a later quantum computer does not open, or x25519, with smaller "
        "messages.",
        "hybrid where its bytes stay below a vector's",
    ),
]
Helpers = Annotated[int | None, option("one-shot: the number of helpers.", "3")]
Trust = Annotated[
    str | None,
    option(
        "paillier: the trust model, required: "
        f"{', '.join(choices.TRUST)}. Its warning is printed.",
        False,
    ),
]
Trustees = Annotated[int | None, option("paillier, --trust threshold: the number of trustees.")]
Bits = Annotated[int | None, option("paillier: the length of the key in bits.", "3072")]
Cohort = Annotated[
    str | None,
    option(
        "The users of a round: a number such as 100, or a fraction such as 0.5.", "all users"
    ),
]
Dropout = Annotated[
    float | None, option("The probability that a user drops out of a round.", "0")
]
Rounds = Annotated[int | None, option("The number of rounds.", "the model's")]
Seed = Annotated[int | None, option("The seed of the split and of the training.", "0")]
SplitOption = Annotated[
    SplitName | None,
    option(
        f"The test part: 20 % at random, each user's last {LAST} ratings, the last 20 % of all "
        "by time, or an official fold of ml-100k.",
        "random",
    ),
]
Factors = Annotated[
    int | None, option("k, the number of factors.", "the model's", "--factors", "-k")
]
Reg = Annotated[float | None, option("λ, the regularisation per rating.", "the model's")]
Rate = Annotated[float | None, option("γ, the learning rate.", "the model's")]
MinRaters = Annotated[
    int | None,
    option(
        "The fewest raters of a trained item; a sum over one user hides nothing.",
        "the model's",
    ),
]
Epsilon = Annotated[
    float | None,
    option(
        f"dpfedmf, dpease: ε for all ratings of a user, with δ = {DELTA:g}, against a server "
        "of secure sums that follows the protocol. Noise is drawn from the operating system, "
        "not from --seed.",
        "8",
    ),
]
Start = Annotated[
    Path | None,
    option(
        "The file or folder of an earlier training to continue, with the same model and "
        "settings unless others are given; users and items are matched by id. --data has all "
        "ratings, the old and the new."
    ),
]
Force = Annotated[
    bool, flag("--force", "Let a model that is worse than --start replace the start in --out.")
]
Out = Annotated[
    Path | None,
    option("The folder for model.fedmf, ranking.fedmf, history.json and curve.svg."),
]
NoRanking = Annotated[
    bool,
    flag(
        "--no-ranking",
        "Leave out ranking.fedmf, a small model of implicit feedback, of all users, that --out "
        "trains beside a model of ratings; fedmf recommend ranks by ranking.fedmf.",
    ),
]
