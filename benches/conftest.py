"""Ratios by pytest-benchmark: each work is a group of two, this library's way and a plain one.

Only ratios within one run mean anything: clocks, caches and neighbours differ between runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from secagg.bench.timing import machine

Call = Callable[[], object]
Check = Callable[[Any, Any], None]


class Versus(NamedTuple):
    """One of two ways to do the same, to be timed; every test runs with both."""

    benchmark: BenchmarkFixture
    way: str

    def __call__(
        self, group: str, ours: Call, plain: Call, check: Check = np.testing.assert_array_equal
    ) -> None:
        """Time one of the calls, and check the results of both."""
        self.benchmark.group, self.benchmark.name = group, self.way
        if self.way == "secagg":
            check(self.benchmark(ours), plain())
        else:
            check(ours(), self.benchmark(plain))


@pytest.fixture(params=["secagg", "plain"])
def versus(request: pytest.FixtureRequest, benchmark: BenchmarkFixture) -> Versus:
    return Versus(benchmark, request.param)


def pytest_benchmark_generate_machine_info() -> dict[str, str]:
    """Return the machine for ``--benchmark-json``."""
    return machine()


def pytest_report_header() -> str:
    """Return the machine in a line."""
    return ", ".join(f"{name} {value}" for name, value in machine().items())
