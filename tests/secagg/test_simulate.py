from __future__ import annotations

import copy
import gc
import pickle
import tracemalloc
from collections.abc import Iterator, Mapping

import numpy as np
import pytest

from harness import ReplayedEntropy, make_params
from secagg import (
    Client,
    ClippingWarning,
    FixedPoint,
    Integers,
    ParameterError,
    RoundParams,
    Server,
    SimulatedSession,
    TooFewSurvivors,
    simulate_round,
)
from secagg.simulate import DROPOUT_PHASES
from secagg.simulate import session as simulated
from secagg.testing import InsecureReplayedEntropy, toy_policy


def test_result_has_the_sum_and_its_costs() -> None:
    params = make_params(5, length=1000)
    vectors = {u: np.full(1000, u / 8) for u in (3, 5, 8, 13, 21)}
    result = simulate_round(vectors, params, dropouts={8: "masked_input"})
    assert result.survivors == (3, 5, 13, 21)
    assert result.sum.tolist() == [42 / 8] * 1000
    assert result.mean.tolist() == [42 / 32] * 1000
    assert result.weight is None
    assert result.client_seconds > 0 < result.server_seconds
    assert result.bytes_up.keys() == result.bytes_down.keys() == vectors.keys()
    assert result.bytes_up[3] > 4000 > result.bytes_up[8]


def test_clipped_elements_are_counted_over_the_survivors_in_one_warning() -> None:
    vectors = [np.array([0.0, 9.0, -9.0, 8.0])] * 4
    params = make_params(4)
    with pytest.warns(ClippingWarning, match=r"^8 of 16 elements .*suggest") as caught:
        assert simulate_round(vectors, params).clipped == 8
    assert [(w.category, w.filename) for w in caught] == [(ClippingWarning, __file__)]
    with pytest.warns(ClippingWarning, match="^6 of 12 "):
        assert simulate_round(vectors, params, dropouts={0: "share_keys"}).clipped == 6
    strict = make_params(4, encoding=FixedPoint(8.0, beyond_clip="refuse"))
    with pytest.raises(ParameterError, match="2 elements"):
        simulate_round(vectors, strict)


def test_check18_clients_dropping_out_in_every_phase() -> None:
    params = make_params(12, 7, encoding=Integers(max=100))
    vectors = [np.full(4, 1 << (u % 6)) for u in range(12)]
    dropouts = dict(enumerate(DROPOUT_PHASES))
    result = simulate_round(vectors, params, dropouts=dropouts)
    assert result.survivors == tuple(range(3, 12))
    assert result.sum.tolist() == [sum(1 << (u % 6) for u in range(3, 12))] * 4
    with pytest.raises(TooFewSurvivors):
        simulate_round(vectors, params, dropouts=dropouts | {5: "unmasking", 6: "unmasking"})


@pytest.mark.parametrize(
    ("dropouts", "named"),
    [({9: "unmasking"}, "dropouts .*client 9"), ({0: "lunch"}, "client 0 .*'lunch'")],
)
def test_impossible_dropouts_are_rejected(dropouts: dict[int, str], named: str) -> None:
    with pytest.raises(ParameterError, match=named):
        simulate_round([np.zeros(4)] * 5, make_params(5), dropouts=dropouts)


def test_progress_is_reported_after_each_client() -> None:
    seen: list[tuple[str, int, int]] = []
    simulate_round(
        [np.zeros(4)] * 4,
        make_params(4),
        dropouts={3: "unmasking"},
        progress=lambda *step: seen.append(step),
    )
    assert seen == [
        *(("advertise_keys", i, 4) for i in (1, 2, 3, 4)),
        *(("share_keys", i, 4) for i in (1, 2, 3, 4)),
        *(("masked_input", i, 4) for i in (1, 2, 3, 4)),
        *(("unmasking", i, 3) for i in (1, 2, 3)),
    ]


class MadeOnDemand(Mapping[int, np.ndarray]):
    """Vectors that exist only while they are masked."""

    def __init__(self, n: int, length: int) -> None:
        self.n, self.length = n, length

    def __getitem__(self, u: int) -> np.ndarray:
        return np.full(self.length, float(u % 3))

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.n))

    def __len__(self) -> int:
        return self.n


def peak_memory(n: int, length: int) -> int:
    params = RoundParams(
        n_clients=n,
        threshold=n // 2 + 1,
        length=length,
        encoding=FixedPoint(4.0, rounding="nearest"),
    )
    gc.collect()
    tracemalloc.start()
    try:
        result = simulate_round(MadeOnDemand(n, length), params)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert result.sum.tolist() == [float(sum(u % 3 for u in range(n)))] * length
    return peak


@pytest.mark.large
def test_memory_grows_with_clients_plus_elements_not_times() -> None:
    """Three times as many inputs of 800 kB need no further memory."""
    length = 200_000
    peak_memory(30, 8)  # allocations of the first call
    growth = peak_memory(30, length) - peak_memory(10, length)
    assert growth < 4 * length, f"{growth / (4 * length):.1f} more masked inputs at the peak"


def test_default_entropy_is_the_operating_systems() -> None:
    """Two equal clients never draw the same keys."""
    params = make_params(3)
    assert Client(0, params).advertise_keys() != Client(0, params).advertise_keys()
    same = [Client(0, params, entropy=ReplayedEntropy(1)).advertise_keys() for _ in range(2)]
    assert same[0] == same[1]


@pytest.mark.parametrize(
    ("vectors", "weights", "named"),
    [
        ([np.zeros(4)] * 3, [1, 2], "client 2 .*weight"),
        ([np.zeros(4)] * 3, [1, 2, 3, 4], "4 weights .*3 vectors"),
        ([np.zeros(4), np.zeros(4), np.zeros(5)], [1, 2, 3], "client 2: .* 5 .* 4$"),
        ({0: np.zeros(4), b"1": np.zeros(4)}, None, "client id .*b'1'"),
        ({0: np.zeros(4), -1: np.zeros(4)}, None, "client id is -1"),
    ],
)
def test_ids_and_weights_must_fit_the_vectors(vectors, weights, named: str) -> None:
    with pytest.raises(ParameterError, match=named):
        simulate_round(vectors, make_params(3, max_weight=5), weights=weights)


def test_numpy_numbers_are_accepted() -> None:
    one = np.int64(1)
    params = RoundParams(
        n_clients=3 * one,
        threshold=2 * one,
        length=4 * one,
        encoding=FixedPoint(np.float32(8)),
        max_weight=5 * one,
    )
    vectors = {u: np.ones(4) for u in np.arange(3)}
    result = simulate_round(vectors, params, weights=np.array([1, 2, 3]))
    assert (result.weight, result.sum.tolist()) == (6, [6.0] * 4)
    assert type(params.n_clients) is int


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
