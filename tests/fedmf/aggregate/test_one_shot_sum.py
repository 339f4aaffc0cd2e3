"""One-shot sums: the integers of the plain sum, whoever stays away, in every model."""

import pytest
from test_aggregate import K, M, gradients

from benches.papers.simulated_views import simulate_views
from fedmf import OneShotSum, RoundAborted
from fedmf.data.sets.simulated import simulate
from fedmf.errors import SettingError
from secagg.oneshot.params import MAX_HELPERS

RATINGS, VIEWS = simulate(16, 20, 160, seed=1), simulate_views(20, 32, seed=1)


def test_costs_are_reported_per_user():
    vectors = gradients(range(12))
    found = OneShotSum().sum(vectors, dropouts={1: "share_keys", 2: "unmasking"})
    assert found.bytes_up > M * K * 4 * 11 / 12
    assert found.bytes_down == 0
    assert min(found.client_seconds, found.server_seconds, found.key_holder_seconds) > 0
    small = OneShotSum(helpers=2).sum(vectors, dropouts={1: "share_keys"})
    assert small.bytes_up < found.bytes_up


@pytest.mark.parametrize("users", [2, 3, 4])
def test_sum_of_fewer_than_three_users_aborts(users):
    leaving = dict.fromkeys(range(max(0, users - 2)), "masked_input")
    with pytest.raises(RoundAborted, match="2 reports"):
        OneShotSum().sum(gradients(range(users)), dropouts=leaving)


@pytest.mark.parametrize(
    "settings",
    [
        {"helpers": 1},
        {"helpers": MAX_HELPERS + 1},
        {"threshold": 1},
        {"helpers": 3, "threshold": 4},
        {"helpers": 16, "threshold": 8},  # 11,440 seeds
    ],
)
def test_settings_out_of_range_are_rejected(settings):
    with pytest.raises(SettingError):
        OneShotSum(**settings)
