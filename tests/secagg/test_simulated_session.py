"""Sessions of simulated rounds: clients keep sealing keys, the server keeps its graph."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from harness import make_params
from secagg import ParameterError, Server, SimulatedSession, simulate_round
from secagg.simulate import session as simulated
from secagg.testing import InsecureReplayedEntropy, toy_policy

PARAMS = make_params(12, neighbours=4, length=3)
VECTORS = {u: np.full(3, u / 4) for u in range(12)}


def summed(session: SimulatedSession | None, **more: object) -> list[float]:
    result = simulate_round(VECTORS, PARAMS, policy=toy_policy(PARAMS), session=session, **more)
    return result.sum.tolist()


def test_session_gives_the_sums_of_rounds_apart() -> None:
    session = SimulatedSession()
    for dropouts in ({}, {3: "masked_input"}, {4: "unmasking"}):
        assert summed(session, dropouts=dropouts) == summed(None, dropouts=dropouts)


def test_clients_have_keys_of_their_own_and_later_rounds_their_graph() -> None:
    session = SimulatedSession()
    summed(session)
    summed(session)
    assert {key.peers for key in session._keys.values()} == {4}
    secrets = [set(dict(key._agreed).values()) for key in session._keys.values()]
    assert len(secrets) == 12
    seeds = {key.pair.seed for key in session._keys.values()}
    assert len(seeds) == 12


def test_copy_of_a_session_begins_anew() -> None:
    session = SimulatedSession()
    summed(session)
    for copied in (copy.deepcopy(session), pickle.loads(pickle.dumps(session))):  # noqa: S301
        assert not copied._keys
        assert copied.begin(PARAMS) != session.begin(PARAMS)


def test_round_too_large_for_one_memory_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    session = SimulatedSession()
    monkeypatch.setattr(simulated, "_PAIRS", 12 * 5 - 1)
    assert session.begin(PARAMS) is None
    assert session.sealing_key(1, PARAMS) is None
    monkeypatch.setattr(simulated, "_PAIRS", 12 * 5)
    assert session.begin(PARAMS) is not None
    assert session.sealing_key(1, PARAMS) is session.sealing_key(1, PARAMS)


def test_session_of_changing_cohorts_forgets_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulated, "_PAIRS", 150)
    session, most = SimulatedSession(), 0
    for first in range(0, 120, 12):  # other clients in each round
        vectors = {first + u: vector for u, vector in VECTORS.items()}
        result = simulate_round(vectors, PARAMS, policy=toy_policy(PARAMS), session=session)
        assert len(result.survivors) == 12
        most = max(most, sum(key.peers for key in session._keys.values()))
    assert 12 * 4 < most <= 150


def test_session_of_another_type_is_rejected() -> None:
    with pytest.raises(ParameterError):
        summed(b"session")  # type: ignore[arg-type]


def test_server_orders_its_graph_by_the_given_seed() -> None:
    def used(seed: bytes | None) -> bytes:
        server = Server(PARAMS, graph_seed=seed, entropy=InsecureReplayedEntropy(1))
        return server._stage._seed

    assert used(bytes(32)) == bytes(32)
    assert used(None) != bytes(32)
    for wrong in (b"", bytes(31), bytes(33)):
        with pytest.raises(ParameterError):
            Server(PARAMS, graph_seed=wrong)
