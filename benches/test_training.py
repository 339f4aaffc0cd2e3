"""The rounds of training under pytest-benchmark; otherwise that compiled and plain agree."""

from __future__ import annotations

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benches.training import MODELS, TWINS, plain_round
from fedmf.data.sets.simulated import simulate


@pytest.mark.parametrize("name", MODELS)
def test_a_round(benchmark: BenchmarkFixture, name: str) -> None:
    ratings = simulate(60, 80, 2000)
    q = benchmark(plain_round, MODELS[name], ratings)
    np.testing.assert_array_equal(q, plain_round(MODELS[name], ratings, TWINS))
