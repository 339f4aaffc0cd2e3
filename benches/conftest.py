"""Fixtures that time a task in two ways: by this library, and by plain code.

pytest-benchmark shows both in one group. Compare only times within one run, as clocks, caches
and other processes differ between runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from secagg import set_threads
from secagg.kit.timing import machine

Call = Callable[[], object]
Check = Callable[[Any, Any], None]


class Versus(NamedTuple):
    """Timer of a task in one of two ways, "secagg" or "plain"; every test runs with both."""

    benchmark: BenchmarkFixture
    way: str

    def __call__(
        self, group: str, ours: Call, plain: Call, check: Check = np.testing.assert_array_equal
    ) -> None:
        """Time one of the calls, and check that both give the same result."""
        self.benchmark.group, self.benchmark.name = group, self.way
        if self.way == "secagg":
            check(self.benchmark(ours), plain())
        else:
            check(ours(), self.benchmark(plain))


@pytest.fixture(params=["secagg", "plain"])
def versus(request: pytest.FixtureRequest, benchmark: BenchmarkFixture) -> Versus:
    return Versus(benchmark, request.param)


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Let secagg use one thread."""
    set_threads(1)
    yield
    set_threads(None)


def pytest_benchmark_generate_machine_info() -> dict[str, str]:
    """Return facts of the machine, for ``--benchmark-json``."""
    return machine()


def pytest_report_header() -> str:
    """Return facts of the machine in a line, for the header of pytest."""
    return ", ".join(f"{name} {value}" for name, value in machine().items())
