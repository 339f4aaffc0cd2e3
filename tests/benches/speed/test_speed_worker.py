"""Worker processes: their protocol, and the errors of cases."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Callable

import pytest

import secagg
from benches.speed import clock, releases, worker
from benches.speed.releases import PRESENT
from benches.speed.runner import Worker
from secagg import _fast
from secagg.errors import SecAggError

MASKS = {"keys": 2, "length": 10, "bits": 32}


def request(case: str, threads: int = 1, **arguments: object) -> str:
    return json.dumps({"case": case, "arguments": arguments, "threads": threads})


def test_case_is_prepared_once_for_its_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []

    def case(size: int) -> Callable[[], float]:
        made.append(size)
        return lambda: size / 4

    monkeypatch.setattr(worker, "_case", lambda name: case)
    sizes = (1, 2, 1, 1)
    found = list(worker.answers(request("any", size=size) for size in sizes))
    assert found == [{"seconds": size / 4} for size in sizes]
    assert made == [1, 2]


def test_case_is_pinned_to_as_many_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    did: list[object] = []
    monkeypatch.setattr(worker, "_CORES", [3, 5, 8])
    monkeypatch.setattr(os, "sched_setaffinity", lambda pid, cores: did.append(cores), False)
    monkeypatch.setattr(secagg, "set_threads", did.append)
    monkeypatch.setattr(worker, "_case", lambda name: lambda: lambda: float(len(did)))
    assert list(worker.answers([request("any", 2)])) == [{"seconds": 2}]
    assert did == [[3, 5], 2, [3, 5, 8], None]


@pytest.mark.parametrize(
    ("error", "answer"),
    [
        (ModuleNotFoundError("x", name="flint"), {"missing": "flint"}),
        (ModuleNotFoundError("gone", name="secagg.oneshot"), None),
        (ValueError("too\nlong"), {"error": "ValueError: too long"}),
    ],
)
def test_error_of_a_case_is_answered(
    error: Exception, answer: dict[str, str] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def case() -> Callable[[], float]:
        raise error

    monkeypatch.setattr(worker, "_case", lambda name: case)
    first, second = worker.answers([request("any"), request("any")])
    assert first == second
    assert "missing" in first if answer and "missing" in answer else "error" in first
    assert answer is None or first == answer


def test_process_runs_cases_of_this_code() -> None:
    with Worker(PRESENT, _fast.TIER) as one:
        assert one.ask("cases.masks", MASKS, 1) > 0
        assert one.ask("obvious.masks", MASKS, 1) > 0
        with pytest.raises(SecAggError, match="AttributeError"):
            one.ask("cases.nothing", {}, 1)


def test_process_with_another_tier_is_rejected() -> None:
    with pytest.raises(SecAggError):
        Worker(PRESENT, "no tier")


def test_process_of_other_code_is_rejected(
    tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(releases, "folder", lambda code: tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(releases.ROOT))
    with pytest.raises(SecAggError):
        Worker("0123456", _fast.TIER)


def test_short_call_is_repeated_and_divided(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = (0.4 * clock.LEAST * tick for tick in itertools.count())
    monkeypatch.setattr(clock, "perf_counter", lambda: next(ticks))
    calls: list[int] = []
    seconds = clock.timed(lambda: calls.append(1), units=3)()
    assert len(calls) == 2  # at 0.4 and 0.8 of the least
    assert seconds == pytest.approx(1.2 * clock.LEAST / 2 / 3)
