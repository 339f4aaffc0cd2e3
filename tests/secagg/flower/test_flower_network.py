"""Real processes on loopback: a SuperLink, SuperNodes, and the faults of a network."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

from flower_net import APP, Network

sys.path.insert(0, str(APP))
from sums.known import mean

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not Path("/proc").is_dir(), reason="/proc")]

LENGTH = 1000
ERROR = 2**-16 + 1e-6


def assert_step(network: Network, number: int, partitions: Iterable[int]) -> None:
    """Assert that a round added the mean of these nodes' updates."""
    step = network.model(number).astype(float) - network.model(number - 1)
    np.testing.assert_allclose(step, mean(partitions, number, LENGTH), rtol=0, atol=ERROR)


def test_three_rounds_of_eight_nodes():
    with Network(8) as network:
        run = network.begin(faults="2:0:replay 3:1:garbage")
        assert network.finish(run) == "finished:completed", network.server_log(run)
        for number, gone in ((1, []), (2, []), (3, [1])):
            assert_step(network, number, [node for node in range(8) if node not in gone])
        (replayed,) = network.folder.glob("replayed *")
        assert replayed.name == "replayed secagg: VaultError"


def test_processes_are_killed_around_the_masked_input():
    with Network(8) as network:
        faults = "1:0:hang 1:3:late 1:pause 2:2:die 2:4:raise"
        run = network.begin(faults=faults, rounds=2)
        network.wait(network.mark("hangs 0").exists)
        network.kill("node0")
        network.wait(network.mark("paused").exists)
        network.kill("node1")
        network.mark("go").touch()
        assert network.finish(run) == "finished:completed", network.server_log(run)
        assert_step(network, 1, [1, 2, 4, 5, 6, 7])
        assert_step(network, 2, [3, 5, 6, 7])
        said = network.server_log(run)
        assert "secagg: RuntimeError" in said
        assert "patient 4711" not in said


def test_run_below_the_threshold_fails_and_opens_nothing():
    with Network(5) as network:
        run = network.begin(faults="1:0:raise 1:1:raise 1:2:raise", rounds=1)
        assert network.finish(run) == "finished:failed"
        assert "TooFewSurvivors" in network.server_log(run)
        assert not network.mark("1.npy").exists()
        assert not network.mark("closed").exists()


def test_every_process_is_ended():
    with Network(2) as network:
        assert len(network.left()) >= 3
    assert not network.left()
