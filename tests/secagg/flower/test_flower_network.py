"""Real processes on loopback: a SuperLink, SuperNodes, and the faults of a network."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from flower_net import APP, Network

sys.path.insert(0, str(APP))
from sums.known import mean, planned, update

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
        # in the second round five of the eight nodes are left, fewer than the default takes
        run = network.begin(faults=faults, rounds=2, threshold=5)
        network.wait(network.mark("hangs 0").exists)
        network.kill("node0")
        network.wait(network.mark("paused").exists)
        network.kill("node1")
        network.mark("go").touch()
        assert network.finish(run) == "finished:completed", network.server_log(run)
        assert_step(network, 1, [1, 2, 4, 5, 6, 7])
        assert_step(network, 2, [3, 5, 6, 7])
        said = network.server_log(run)
        assert "RuntimeError" not in said  # zeros of weight 0 are a reply like any other
        assert "patient 4711" not in said


def test_run_below_the_threshold_fails_and_opens_nothing():
    with Network(5) as network:
        run = network.begin(faults="1:0:die 1:1:die 1:2:die", rounds=1)
        assert network.finish(run) == "finished:failed"
        assert "TooFewSurvivors" in network.server_log(run)
        assert not network.mark("1.npy").exists()
        assert not network.mark("closed").exists()


def test_active_variant_with_a_killed_node():
    with Network(5, active=True) as network:
        run = network.begin(faults="1:0:die", rounds=1, security="active")
        assert network.finish(run) == "finished:completed", network.server_log(run)
        assert_step(network, 1, range(1, 5))


def test_one_shot_rounds_of_eight_nodes_with_served_helpers():
    with Network(8, helpers=3) as network:
        faults = "1:0:replay 2:2:die 3:1:garbage"
        run = network.begin(faults=faults, one_shot=True)
        network.wait(network.mark("1.npy").exists)
        network.kill("helper1")  # two of three are enough, wherever the second round is
        assert network.finish(run) == "finished:completed", network.server_log(run)
        for number, gone in ((1, []), (2, [2]), (3, [1])):
            assert_step(network, number, [node for node in range(8) if node not in gone])
        (replayed,) = network.folder.glob("replayed *")
        assert replayed.name == "replayed secagg: RemoteProtocolError"
        assert "is left out" in network.server_log(run)


def test_budgets_of_nodes_outlive_a_run_with_noise():
    pytest.importorskip("dp_accounting")
    with Network(5, own="secagg-epsilon=20.0 secagg-delta=1e-5") as network:
        run = network.begin(rounds=1, epsilon=20.0)
        assert network.finish(run) == "finished:completed", network.server_log(run)
        exact = np.mean([update(node, 1, LENGTH) for node in range(5)], axis=0)
        found = np.std(network.model(1) - exact)
        assert found == pytest.approx(planned(LENGTH, 20.0).error(), rel=0.15)
        for epsilon in (
            20.0,
            0.0,
        ):  # the budget is spent, and a sum without noise never has room
            run = network.begin(rounds=1, epsilon=epsilon)
            assert network.finish(run) == "finished:failed"
            assert "BudgetSpent" in network.server_log(run)


@pytest.fixture
def tls(tmp_path: Path) -> Path:
    """A folder with certificates of the SuperLink, and keys of four nodes and an impostor."""
    trustme = pytest.importorskip("trustme")
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.crt")
    issued = authority.issue_cert("127.0.0.1")
    issued.private_key_pem.write_to_path(tmp_path / "link.key")
    issued.cert_chain_pems[0].write_to_path(tmp_path / "link.crt")
    for number in range(5):
        key = ec.generate_private_key(ec.SECP384R1())
        private = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
        public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
        (tmp_path / f"{number}").write_bytes(private)
        (tmp_path / f"{number}.pub").write_bytes(public)
    return tmp_path


def test_nodes_with_registered_keys_over_tls(tls: Path) -> None:
    certificates = ("--ssl-ca-certfile", "ca.crt", "--ssl-certfile", "link.crt")
    link = (*certificates, "--ssl-keyfile", "link.key", "--enable-supernode-auth")
    network = Network(
        4,
        link=[str(tls / word) if "." in word else word for word in link],
        node=lambda number: (
            *("--root-certificates", str(tls / "ca.crt")),
            *("--auth-supernode-private-key", str(tls / f"{number}")),
        ),
        federation=f'root-certificates = "{tls / "ca.crt"}"',
        registered=[tls / f"{number}.pub" for number in range(4)],
    )
    with network:
        network.start_node(4)
        network.wait(lambda: "Failed to activate SuperNode" in network.log("node4"))
        run = network.begin(rounds=1)
        assert network.finish(run) == "finished:completed", network.server_log(run)
        assert_step(network, 1, range(4))


@pytest.mark.skipif(find_spec("ray") is None, reason="ray")
def test_simulation_with_ray():
    with Network(0, link=("--insecure", "--simulation")) as network:
        federation = "num-supernodes=8 client-resources-num-cpus=1"
        run = network.begin(federation=federation, rounds=2)
        assert network.finish(run) == "finished:completed", network.server_log(run)
        for number in (1, 2):
            assert_step(network, number, range(8))
