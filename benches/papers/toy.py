"""Figure 6.3 of Basu's thesis (2020): federated averaging of two workers on toy data."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

import secagg
from benches.papers.curves import draw_curves, numbered
from benches.papers.table import Picture, Results, Row, Run, Table, at_most

Floats = NDArray[np.float64]

WORKERS, POINTS = 2, 20  # points of each worker, for training and for the test
EPOCHS, STEPS, RATE = 10, 10, 0.01
NOISE = 0.1
ENCODING = secagg.FixedPoint(16.0, 16, rounding="nearest")
EPOCH = "epoch"
CLEAR, SECURE = "averaged in the clear", "averaged by secret sharing"


def _drawn(rng: np.random.Generator, worker: int) -> tuple[Floats, Floats]:
    """Draw points (x, 1) near the corners of a square whose first coordinate is the worker."""
    corners = np.column_stack((np.full(POINTS, worker), rng.integers(2, size=POINTS)))
    near = corners + rng.normal(scale=NOISE, size=corners.shape)
    return np.column_stack((near, np.ones(POINTS))), corners[:, 0].astype(np.float64)


def _squares(x: Floats, y: Floats, weights: Floats) -> float:
    return float(((y - x @ weights) ** 2).sum())


def _sum(vectors: dict[int, Floats], secure: bool) -> Floats:
    if secure:
        params = secagg.RoundParams(
            n_clients=WORKERS,
            threshold=WORKERS,
            length=3,
            encoding=ENCODING,
            allow_two_clients=True,  # each learns the other's weights, as from any mean of two
        )
        policy = secagg.ClientPolicy(min_clients=WORKERS, allow_two_clients=True)
        return np.asarray(secagg.simulate_round(vectors, params, policy=policy).sum, np.float64)
    integers = [ENCODING.encode_integers(vector)[0] for vector in vectors.values()]
    return ENCODING.decode_integers(np.sum(integers, axis=0))


def _averaged(secure: bool, run: Run) -> dict[str, float]:
    """Return the sum of squared errors of all workers, on their points and on unseen ones."""
    rng = np.random.default_rng(run.seed)
    train = [_drawn(rng, worker) for worker in range(WORKERS)]
    test = [_drawn(rng, worker) for worker in range(WORKERS)]
    weights, losses = rng.normal(size=3), list[float]()
    for _ in range(run.fewer(EPOCHS, least=3)):
        found = dict[int, Floats]()
        for worker, (x, y) in enumerate(train):
            own = weights.copy()
            for _ in range(STEPS):
                own += RATE * 2 * x.T @ (y - x @ own)
            found[worker] = own
        weights = _sum(found, secure) / WORKERS
        losses.append(sum(_squares(x, y, weights) for x, y in train))
    unseen = sum(_squares(x, y, weights) for x, y in test)
    guess = sum(((y - 0.5) ** 2).sum() for _, y in test)
    return numbered(EPOCH, losses) | {"unseen": unseen, "unseen, by ½": float(guess)}


def curves(results: Results) -> Picture:
    """Draw figure 6.3, the loss by epochs."""
    return draw_curves(
        results,
        {"6.3: two workers": [CLEAR, SECURE]},
        step=EPOCH,
        about="Figure 6.3: the sum of squared errors by epochs; the lines lie on each other.",
        x="epoch",
        y="loss",
    )


TABLE = Table(
    key="thesis-6.3",
    title="Basu 2020, figure 6.3: loss of two workers on toy data",
    metrics=("epoch 1", "epoch 2", "epoch 3", "epoch 10", "unseen", "unseen, by ½"),
    panels=(),
    rows=tuple(
        Row(
            name,
            "simulated",
            partial(_averaged, secure),
            target=at_most("epoch 3", 5.0),
        )
        for name, secure in ((CLEAR, False), (SECURE, True))
    ),
    note="In name only, as the thesis states neither its data nor the model. Here each of "
    f"two workers has {POINTS} points near two corners of a square, and predicts the first "
    f"coordinate by a linear model: {STEPS} local steps of rate {RATE} per epoch, then the "
    f"mean of the weights. *epoch n*: the sum of squared errors on all {WORKERS * POINTS} "
    "training points. *unseen*: on as many others, beside the sum for a constant of ½. Of two "
    "workers each learns the other's weights from the mean, secret sharing or not.",
    pictures=(curves,),
)
