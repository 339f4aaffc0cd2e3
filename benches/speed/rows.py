"""Rows of the table of ratios: cases of this library, their rivals, and the least ratios."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from benches.speed.releases import BEFORE, PRESENT, RELEASE_04

Arguments = Mapping[str, object]


@dataclass(frozen=True)
class Rival:
    """Other way to do the task of a row, on one core.

    Attributes
    ----------
    label : str
    case : str
        Function of a module of this package, "module.function".
    least : tuple of float
        Required ratios of its time to that of the row, for each number of the row's cores.
    code : str
        Commit, or `releases.PRESENT`.
    tier : str or None
        Tier of its kernels; None for that of the row, or the nearest that the commit has.
    runs : int or None
        Most repetitions; None for as many as the row's. A single one has none to warm up.
    arguments : mapping
        Arguments that replace those of the row.
    """

    label: str
    case: str
    least: tuple[float, ...] = ()
    code: str = PRESENT
    tier: str | None = None
    runs: int | None = None
    arguments: Arguments = field(default_factory=dict)


@dataclass(frozen=True)
class Row:
    """Task with its rivals.

    Attributes
    ----------
    name, what : str
        Name for ``--row``, and description in the table.
    case : str
        Function of a module of this package, "module.function".
    arguments, quick : mapping
        Arguments of the case, and those of a trial.
    rivals : tuple of Rival
    cores : tuple of int
        Numbers of cores for which this library is measured.
    most : float or None
        Required upper bound of the seconds on one core.
    runs : int or None
        Most repetitions. A single one has none to warm up.
    """

    name: str
    what: str
    case: str
    arguments: Arguments
    quick: Arguments
    rivals: tuple[Rival, ...]
    cores: tuple[int, ...] = (1,)
    most: float | None = None
    runs: int | None = None


BOTH = (1, 2)
OBVIOUS = "cryptography, numpy"
PYTHON = "Python integers, Horner"
_HUNDRED = {"n": 100, "threshold": 67, "length": 100_000, "dropped": 10}
_THOUSAND = {"n": 1000, "threshold": 667, "length": 100_000, "dropped": 300}
_FEW = {"n": 12, "threshold": 8, "length": 500, "dropped": 2}
_KEYS = {"keys": 100, "length": 100_000, "bits": 32}
_FEW_KEYS = {"keys": 3, "length": 500, "bits": 32}

ROWS = (
    Row(
        "masks",
        "mask kernel: 100 keys, 1,000,000 32-bit words",
        "cases.masks",
        {**_KEYS, "length": 1_000_000},
        _FEW_KEYS,
        (Rival("tier aesni", "cases.masks", (1.9, 3.2), tier="aesni"),),
        BOTH,
    ),
    Row(
        "masking",
        "a client's masks: k = 100, d = 100,000, 32 bits",
        "cases.masks",
        _KEYS,
        _FEW_KEYS,
        (
            Rival(OBVIOUS, "obvious.masks", (4, 7)),
            Rival("Flower's masks, 64-bit words", "flower.masks"),
        ),
        BOTH,
    ),
    Row(
        "masking-64",
        "the same with 64-bit words",
        "cases.masks",
        {**_KEYS, "bits": 64},
        {**_FEW_KEYS, "bits": 64},
        (Rival(OBVIOUS, "obvious.masks", (4, 7)),),
        BOTH,
    ),
    Row(
        "x25519",
        "X25519 in bulk: one scalar, 700 points",
        "present.x25519",
        {"points": 700},
        {"points": 3},
        (Rival("loop over cryptography", "obvious.x25519", (3.8,)),),
    ),
    Row(
        "client-100",
        "a client's round: n = 100, d = 100,000",
        "cases.client",
        _HUNDRED,
        _FEW,
        (
            Rival(f"{OBVIOUS}, Python integers, no checks", "obvious.client"),
            Rival("release 0.4", "cases.client", code=RELEASE_04),
        ),
        BOTH,
    ),
    Row(
        "server-100",
        "the server: n = 100, d = 100,000, 10 % drop out",
        "cases.server",
        _HUNDRED,
        _FEW,
        (
            Rival(f"{OBVIOUS}, Python integers, no checks", "obvious.server"),
            Rival("release 0.4", "cases.server", code=RELEASE_04),
            Rival("Flower's SecAgg+", "flower.server", (1000,), runs=1),
        ),
        BOTH,
    ),
    Row(
        "server-1000",
        "the server: n = 1,000, d = 100,000, 30 % drop out",
        "cases.server",
        _THOUSAND,
        _FEW,
        (Rival("release 0.4", "cases.server", (4, 7), code=RELEASE_04, runs=3),),
        BOTH,
    ),
    Row(
        "session",
        "a client's later rounds of a session: k = 60, d = 33,640",
        "sessions.client",
        {"n": 100, "neighbours": 60, "length": 33_640, "later": True},
        {"n": 12, "neighbours": 6, "length": 500, "later": True},
        (Rival("its first round", "sessions.client", (1.5,), arguments={"later": False}),),
    ),
    Row(
        "ml-100k",
        "943 clients of MovieLens 100K, 60 neighbours: a sum by `SecAggSum`, later rounds",
        "cases.later_rounds",
        # the default of release 0.4; today's has more neighbours
        {"users": 943, "items": 1682, "ratings": 100_000, "neighbours": 60},
        {"users": 12, "items": 20, "ratings": 120, "neighbours": None},
        (Rival("release 0.4", "cases.later_rounds", (2,), code=RELEASE_04, runs=3),),
        runs=3,
    ),
    Row(
        "shares-62",
        "sharing an integer, 667 of 1,000, prime of 62 bits",
        "present.shares",
        {"n": 1000, "threshold": 667, "bits": 62},
        {"n": 12, "threshold": 8, "bits": 62},
        (
            Rival(PYTHON, "present.shares_in_python", (50,)),
            Rival("python-flint", "present.shares_in_flint"),
        ),
    ),
    Row(
        "shares-127",
        "the same, prime of 127 bits",
        "present.shares",
        {"n": 1000, "threshold": 667, "bits": 127},
        {"n": 12, "threshold": 8, "bits": 127},
        (Rival(PYTHON, "present.shares_in_python"),),
    ),
    Row(
        "shares-bytes",
        "sharing 32 bytes, 51 of 100",
        "present.shares_of_bytes",
        {"n": 100, "threshold": 51},
        {"n": 12, "threshold": 8},
        (Rival("Flower's sharing", "flower.shares_of_bytes"),),
    ),
    *(
        Row(
            f"one-shot-{suite}",
            f"a client of a one-shot sum: d = 100,000, 2 of 2 helpers, {suite}",
            "cases.one_shot",
            {"length": 100_000, "clients": 100, "suite": suite},
            {"length": 500, "clients": 12, "suite": suite},
            (Rival("before the tiers with VAES", "cases.one_shot", (1.4,), code=BEFORE),),
        )
        for suite in ("x25519", "hybrid")
    ),
    *(
        Row(
            f"paillier-{bits}",
            f"Paillier encryption with the public key, {bits} bits, per float",
            "present.encryption",
            {"bits": bits},
            {"bits": 2048},
            (Rival("phe", "present.encryption_by_phe", (least,)),),
            BOTH,
        )
        for bits, least in ((2048, 10_000), (3072, 15_000))
    ),
    Row(
        "logistic",
        "logistic regression: 20 columns, 100,000 records, 8 sites",
        "studies.logistic",
        {"columns": 20, "records": 100_000, "sites": 8},
        {"columns": 2, "records": 400, "sites": 4},
        (Rival("statsmodels, pooled records", "studies.logistic_pooled", (0.34,)),),
    ),
    *(
        Row(
            name,
            f"`{statement}`, beyond numpy",
            "cases.imports",
            {"statement": statement},
            {"statement": statement},
            (Rival("release 0.4", "cases.imports", code=RELEASE_04),),
            most=most,
        )
        for name, statement, most in (
            ("import", "import secagg", 0.08),
            ("import-round", "from secagg import Client, Server, simulate_round", None),
        )
    ),
)
