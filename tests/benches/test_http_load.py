"""The load run of HTTP sessions, on a small one: all faults, and checks that can fail."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benches.http_load.driver import HELPERS, check_statuses, check_sum, drive
from benches.http_load.load import DROPS, GARBAGE, STEPS, Load
from benches.http_load.report import document, text
from effort import pure_repeats

SMALL = Load(
    kind="round",
    clients=10,
    processes=2,
    length=50,
    rounds=3,
    suite="hybrid",
    drop_out=0.25,
    garbage=0.15,
    kills=2,
    silent_every=3,
    deadline=4.0,
    until=1e12,
    seed=1,
)
FULL = replace(
    SMALL,
    clients=1000,
    processes=20,
    length=10_000,
    rounds=50,
    drop_out=0.1,
    garbage=0.01,
    silent_every=25,
    deadline=30.0,
)


def run(load: Load, folder: Path) -> dict:
    figures = document(load, asyncio.run(drive(load, folder)))
    assert figures["rounds"] >= load.rounds
    assert len(figures["kills"]) == load.kills
    assert figures["members"]["pairs"] > 0
    assert set(figures["phases"]) == set(load.steps)
    assert "every sum exact" in text(figures)
    return figures


@pure_repeats
@pytest.mark.large
def test_small_run_survives_all_faults(ram_path):
    counts = run(SMALL, ram_path)["members"]
    assert any(f"fault {kind}" in counts for kind in DROPS)
    assert any(f"fault {kind}" in counts for kind in GARBAGE)


@pytest.mark.slow
def test_small_run_of_one_shot_sums_survives_a_dead_helper(ram_path):
    run(replace(SMALL, kind="semi-honest", kills=1), ram_path)


@pytest.mark.slow
def test_small_run_of_one_shot_sums_survives_a_lying_helper(ram_path):
    events = run(replace(SMALL, kind="active", kills=1), ram_path)["events"]
    assert {name[:15] for name in events if "helper" in name} == {"helper 4 failed"}


@pytest.mark.slow
@pytest.mark.parametrize("kind", HELPERS)
def test_thousand_clients_in_fifty_rounds(ram_path, kind):
    assert run(replace(FULL, kind=kind), ram_path)["growth"] <= 0.05


def test_a_wrong_sum_is_found(tmp_path):
    survivors = (0, 1, 2, 4, 5, 7)
    right = SMALL.sum(2, survivors)
    np.savez(tmp_path / "sum-2.npz", integers=right, survivors=survivors)
    check_sum(SMALL, tmp_path, 2)
    for wrong in (right + (np.arange(right.size) == 49), SMALL.sum(1, survivors)):
        np.savez(tmp_path / "sum-2.npz", integers=wrong, survivors=survivors)
        with pytest.raises(AssertionError):
            check_sum(SMALL, tmp_path, 2)
    few = survivors[:5]
    np.savez(tmp_path / "sum-2.npz", integers=SMALL.sum(2, few), survivors=few)
    with pytest.raises(AssertionError):
        check_sum(SMALL, tmp_path, 2)


@pytest.mark.parametrize("name", ["status 500", "unequal 204 409"])
def test_a_failing_server_is_found(name):
    check_statuses(Counter({"status 503": 1, "pairs": 2}))
    with pytest.raises(AssertionError):
        check_statuses(Counter({name: 1}))


def test_faults_are_as_many_as_stated_and_of_all_kinds():
    faults = [FULL.fault(number, u) for number in range(50) for u in range(1000)]
    counts = Counter(fault.kind for fault in faults if fault is not None)
    dropped = sum(counts[kind] for kind in DROPS)
    assert abs(dropped / 50_000 - 0.1) < 0.01
    assert abs(sum(counts[kind] for kind in GARBAGE) / 50_000 - 0.01) < 0.003
    assert counts.keys() == {*DROPS, *GARBAGE}
    assert {fault.step for fault in faults if fault is not None} == set(STEPS)
