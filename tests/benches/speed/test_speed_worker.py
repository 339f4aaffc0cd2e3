"""Worker processes: their protocol, and the errors of cases."""

from __future__ import annotations

import json
import os
from collections.abc import Callable

import pytest

from benches.speed import releases, worker
from benches.speed.clock import timed
from benches.speed.releases import PRESENT
from benches.speed.runner import Absent, Worker
from secagg import _fast, _threads
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


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="pins to cores")
def test_case_is_pinned_to_as_many_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, int]] = []

    def measure() -> float:
        seen.append((len(os.sched_getaffinity(0)), _threads.threads()))
        return 1.0

    monkeypatch.setattr(worker, "_case", lambda name: lambda: measure)
    before = os.sched_getaffinity(0)
    list(worker.answers([request("any", 1)]))
    assert seen == [(1, 1)]
    assert os.sched_getaffinity(0) == before
    assert _threads.threads() == len(before)


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
    with Worker(PRESENT, "portable") as one:
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


def test_missing_package_is_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    with Worker(PRESENT, "portable") as one:
        monkeypatch.setattr(one, "_answer", lambda: {"missing": "flint"})
        with pytest.raises(Absent):
            one.ask("present.shares_in_flint", {}, 1)


def test_unknown_commit_is_an_error(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(releases, "BUILDS", tmp_path)
    with pytest.raises(SecAggError):
        releases.folder("0" * 40)


def test_short_call_is_repeated_and_divided() -> None:
    calls: list[int] = []
    seconds = timed(lambda: calls.append(1), units=2)()
    assert len(calls) > 1
    assert 0 < seconds * 2 * len(calls) < 10
