"""ε of noisy sums, against sums over the discrete distribution without dp-accounting."""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Iterator

import numpy as np
import pytest

from oneshot_parties import Parties, parties
from secagg import FixedPoint, Integers, MissingExtra, ParameterError
from secagg.oneshot import Noise
from secagg.privacy import epsilon

pytest.importorskip("dp_accounting")


@pytest.fixture(scope="module")
def two() -> Iterator[Parties]:
    with parties() as made:
        yield made


def logs(sigma: float, far: int) -> np.ndarray:
    """Return log probabilities of the noise from −far to far."""
    y = np.arange(-far, far + 1)
    found = -(y.astype(float) ** 2) / (2 * sigma**2)
    return found - np.logaddexp.reduce(found)


def hockey_stick(sigma: float, shift: tuple[int, ...], eps: float) -> float:
    """Return δ: Σ_y max(0, P(y) − e^ε P(y − shift)) over all y but a part of e^-100."""
    far = math.ceil(15 * sigma) + max(shift)
    first, second = np.zeros(1), np.zeros(1)
    for move in shift:
        each = logs(sigma, far + move)
        here, moved = each[move : each.size - move], each[: each.size - 2 * move]
        first = np.add.outer(first, here).ravel()
        second = np.add.outer(second, moved).ravel()
    return float(np.maximum(0, np.exp(first) - np.exp(eps + second)).sum())


def exact_epsilon(sigma: float, shift: tuple[int, ...], delta: float) -> float:
    low, high = 0.0, 100.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (
            (middle, high) if hockey_stick(sigma, shift, middle) > delta else (low, middle)
        )
    return high


@pytest.mark.parametrize("delta", [1e-3, 1e-9])
@pytest.mark.parametrize(
    ("sigma", "shift"),
    [(1, (1,)), (4, (3,)), (0.5, (1,)), (1.5, (2, 2))],
)
def test_epsilon_against_the_exact_sum(
    two: Parties, sigma: float, shift: tuple[int, ...], delta: float
) -> None:
    """A valid bound, within a third of the exact ε but for the coarse noise of σ = 1/2."""
    params = two.make_params(length=len(shift), encoding=Integers(shift[0]), noise=Noise(sigma))
    found = epsilon(params, delta)
    assert hockey_stick(sigma, shift, found) <= delta
    exact = exact_epsilon(sigma, shift, delta)
    assert exact <= found < (1.34 if sigma >= 1 else 1.5) * exact


@pytest.mark.parametrize("weight", [None, 3])
@pytest.mark.parametrize("encoding", [Integers(1), Integers(2), FixedPoint(1.0, 1)])
def test_sensitivity_is_the_largest_distance_of_two_reports(
    two: Parties, encoding: object, weight: int | None
) -> None:
    params = two.make_params(
        length=2, encoding=encoding, max_weight=weight, noise=Noise(30), modulus_bits=40
    )
    largest = params.encoding.max_encoded
    low = -largest if params.encoding.signed else 0
    reports = [
        np.array([*(w * x for x in vector), w if weight else 0])
        for vector in itertools.product(range(low, largest + 1), repeat=2)
        for w in range((weight or 1) + 1)
        if weight or w
    ]
    square = max(int(((a - b) ** 2).sum()) for a in reports for b in reports)
    stated = epsilon(params, 1e-6, sensitivity=math.sqrt(square))
    assert epsilon(params, 1e-6) == pytest.approx(stated, rel=1e-12)


def test_one_seed_counts_whatever_the_threshold() -> None:
    found = []
    for helpers, threshold in ((2, 2), (5, 3), (1, 1)):
        with parties(helpers, threshold, noise=Noise(50)) as made:
            found.append(epsilon(made.params, 1e-6))
    assert len(set(found)) == 1


@pytest.mark.parametrize(
    ("delta", "sensitivity"),
    [
        *((delta, None) for delta in (0.0, 1.0, -1e-6, math.nan, "1e-6", None, 1)),
        *((1e-6, sensitivity) for sensitivity in (0, -1.0, math.nan, math.inf, "1")),
    ],
)
def test_out_of_range_raises(two: Parties, delta: object, sensitivity: object) -> None:
    with pytest.raises(ParameterError):
        epsilon(two.make_params(noise=Noise(5)), delta, sensitivity=sensitivity)  # type: ignore[arg-type]
    with pytest.raises(ParameterError):
        epsilon(two.params, 1e-6)  # without noise


def test_without_dp_accounting(two: Parties, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    with pytest.raises(MissingExtra) as caught:
        epsilon(two.make_params(noise=Noise(5)), 1e-6)
    assert caught.value.name == "dp_accounting"
