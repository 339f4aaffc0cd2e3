"""Estimates of costs by one call of each primitive, in place of calls for 40 ms."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

import pytest


def once(call: Callable[[], object]) -> float:
    start = perf_counter()
    call()
    return perf_counter() - start


@pytest.fixture(autouse=True)
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let estimates end soon: tests look at their counts, not at seconds of this machine."""
    monkeypatch.setattr("secagg.cli.estimates.mean_seconds", once)
