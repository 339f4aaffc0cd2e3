"""FCF, against eq. 11 and 12 by hand, against CF, and under secure sums."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benches.papers.simulated_views import simulate_views
from fedmf.aggregate import FloatSum
from fedmf.errors import DataError, ModelError, SettingError
from fedmf.fcf import CF, FCF, FederatedCF, Implicit
from fedmf.fcf.confidence import solve
from fedmf.fcf.fcf import gradients
from fedmf.training import Adam, Descent


def test_gradients_of_every_item_are_those_of_eq_11():
    ratings = simulate_views(5, 32, seed=3)
    model = Implicit(k=3, alpha=1.5)
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(5, 3)), rng.normal(size=(32, 3))
    seen = ratings.of_user(2)[0]
    wanted = np.array(
        [
            (2.5 if item in seen else 1.0) * ((item in seen) - x[2] @ y[item]) * x[2]
            for item in range(32)
        ]
    )
    found = gradients(x, y, model.confidence(ratings), [0, 2, 4])
    np.testing.assert_allclose(found[1].T, wanted, rtol=0, atol=1e-12)
    alone = gradients(x, y, model.confidence(ratings), [2])
    assert alone[0].tobytes() == found[1].tobytes()  # the integers must not depend on a block


def test_server_step_follows_eq_12():
    """Its gradient is that of the cost J of eq. 5, found here by differences."""
    ratings = simulate_views(6, 32, seed=1)
    model = Implicit(k=2, alpha=2.0, reg=0.5)
    fcf = FCF(model, FloatSum(), optimiser=Descent(rate=1e-3), rounds=1, steps=1, min_raters=1)
    (step,) = fcf.iterate(ratings)
    x, y = step.user_factors, model.start(ratings, 0)
    seen = np.zeros((6, 32))
    seen[ratings.users, ratings.items] = 1

    def cost(y):
        return ((1 + 2.0 * seen) * (seen - x @ y.T) ** 2).sum() + 0.5 * (y**2).sum()

    for item, factor in ((0, 0), (7, 1), (31, 0)):
        nudge = np.zeros_like(y)
        nudge[item, factor] = 1e-5
        slope = (cost(y + nudge) - cost(y - nudge)) / 2e-5
        moved = (y - step.item_factors)[item, factor]
        assert moved == pytest.approx(1e-3 * slope, rel=1e-6)


def test_adam_has_the_powers_that_the_paper_omits():
    """Gradients 3 and −1 with γ .1, β .5 and .9, written out after Kingma and Ba."""
    move = Adam(rate=0.1, beta1=0.5, beta2=0.9, epsilon=1e-8).fresh()
    first = move(np.array([3.0]))
    second = move(np.array([-1.0]))
    assert first[0] == pytest.approx(0.1)  # whatever its size: m̂ = g, v̂ = g²
    m, v = 0.5 * 1.5 + 0.5 * -1.0, 0.9 * 0.9 + 0.1 * 1.0
    assert second[0] == pytest.approx(0.1 * (m / 0.75) / (v / 0.19) ** 0.5)


def test_optimiser_is_reset_at_each_epoch_unless_disabled():
    ratings = simulate_views(30, 32, seed=0)
    paths = [
        [step.item_factors for step in FCF(rounds=2, steps=3, reset=reset).iterate(ratings)]
        for reset in (True, False)
    ]
    same = [np.array_equal(*pair) for pair in zip(*paths, strict=True)]
    assert same == [True, True, True, False, False, False]
    # Adam's first step is γ in every element; that of a second epoch only after a reset.
    moved = [np.abs(path[3] - path[2]) for path in paths]
    assert moved[0] == pytest.approx(0.2, abs=1e-5)
    assert moved[1] != pytest.approx(0.2, abs=1e-5)


def test_users_are_updated_once_in_an_epoch():
    ratings = simulate_views(30, 32, seed=0)
    steps = list(FCF(rounds=2, steps=3).iterate(ratings))
    assert [(step.epoch, step.step) for step in steps] == [
        (1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (2, 3),
    ]  # fmt: skip
    assert all(step.user_factors is steps[0].user_factors for step in steps[:3])
    assert not np.array_equal(steps[0].user_factors, steps[3].user_factors)


def test_divergence_and_clipping_raise_with_remedies():
    ratings = simulate_views(100, 40, seed=0)
    with pytest.raises(SettingError, match="clip"):
        FCF(optimiser=Descent(rate=5.0), rounds=1).fit(ratings)
    with np.errstate(all="ignore"), pytest.raises(SettingError):
        FCF(aggregation=FloatSum(), optimiser=Descent(rate=5.0), rounds=1, steps=500).fit(
            ratings
        )


def test_divergence_in_the_last_step_raises():
    """Y is finite, and YᵀY is not."""
    with np.errstate(all="ignore"), pytest.raises(SettingError):
        FCF(optimiser=Descent(rate=1e200), rounds=1, steps=1).fit(simulate_views(100, 40))


def test_users_solve_once_more_at_the_end():
    ratings = simulate_views(30, 32, seed=0)
    model = Implicit(k=3)
    found = FCF(model, rounds=2, steps=3).fit(ratings).model_
    rated = model.confidence(ratings).by_users
    wanted = solve(found.item_factors, rated, model.reg)
    np.testing.assert_array_equal(found.user_factors, wanted)


@pytest.mark.parametrize("system", [CF, FCF, FederatedCF])
def test_interrupted_refit_keeps_no_older_data(system):
    """A refit that ends before an epoch leaves nothing of the data before."""
    model = system(rounds=1).fit(simulate_views(30, 32, seed=0))
    assert model.predict([0], [0]).shape == (1,)
    other = simulate_views(30, 32, seed=1)
    other = replace(other, scale=(-1.0, 1.0), values=np.full(other.n_ratings, -1.0))
    with pytest.raises(DataError):
        model.fit(other)
    with pytest.raises(ModelError):
        model.predict([0], [0])
