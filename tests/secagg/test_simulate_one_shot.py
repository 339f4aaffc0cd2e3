from __future__ import annotations

import numpy as np
import pytest

from oneshot_parties import LENIENT, rejects
from secagg import (
    ClippingWarning,
    FixedPoint,
    Integers,
    ParameterError,
    TooFewSurvivors,
    simulate_one_shot,
)
from secagg.oneshot import Accumulator, HelperJournal, OneShotParams, OneShotPolicy
from secagg.simulate import one_shot, temporary_journals


def make_params(journals: list[HelperJournal], **changes: object) -> OneShotParams:
    settings: dict[str, object] = {
        "n_clients": 5,
        "length": 4,
        "encoding": FixedPoint(8.0, rounding="nearest"),
        "helpers": [journal.public for journal in journals],
        "threshold": 2,
        "min_clients": 3,
        "security": "semi-honest",
        "suite": "x25519",
        "session": b"simulation",
    }
    return OneShotParams(**(settings | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize("security", ["semi-honest", "active"])
def test_result_has_the_sum_and_its_costs(security: str) -> None:
    vectors = {u: np.full(4, u / 8) for u in (3, 5, 8, 13, 21)}
    shown = []
    with temporary_journals(3, "x25519") as journals:
        params = make_params(journals, security=security)
        result = simulate_one_shot(
            vectors,
            params,
            journals,
            absent=[8],
            progress=lambda *step: shown.append(step),
        )
    assert result.survivors == (3, 5, 13, 21)
    assert result.sum.tolist() == [42 / 8] * 4
    assert result.outvoted == ()
    assert result.client_seconds > 0 < result.server_seconds
    assert result.report_bytes == params.layout.report
    assert result.helper_seconds.keys() == {1, 2, 3}
    assert min(result.helper_seconds.values()) > 0
    for j in (1, 2, 3):
        assert result.helper_bytes_in[j] > 4 * params.layout.record(j)
        assert result.helper_bytes_out[j] > 2 * params.layout.packed
    assert shown == [("report", done, 4) for done in range(1, 5)]
    assert "4 survivors" in repr(result)


def test_reports_are_kept_only_until_helpers_have_checked_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    held, add = [], Accumulator.add

    def watched(self: Accumulator, report: bytes) -> bool:
        added = add(self, report)
        held.append(len(self._reports))
        return added

    monkeypatch.setattr(Accumulator, "add", watched)
    with temporary_journals(2, "x25519") as journals:
        params = make_params(journals)
        monkeypatch.setattr(one_shot, "HELD", 2 * params.layout.report)
        result = simulate_one_shot(np.ones((5, 4)), params, journals)
    assert held == [1, 2, 1, 2, 1]
    assert result.survivors == (0, 1, 2, 3, 4)
    assert result.sum.tolist() == [5.0] * 4


def test_helpers_without_a_journal_here_are_missing() -> None:
    with temporary_journals(3, "x25519") as journals:
        params = make_params(journals)
        result = simulate_one_shot(np.ones((3, 4)), params, [journals[2], journals[0]])
        assert result.integers.tolist() == [3 << 16] * 4
        assert result.helper_seconds.keys() == {1, 3}
        with pytest.raises(ParameterError, match="answers of 1 helper"):
            simulate_one_shot(
                {7: np.ones(4), 8: np.ones(4), 9: np.ones(4)}, params, journals[:1], batch=1
            )


def test_journals_remember_the_clients_of_earlier_batches() -> None:
    with temporary_journals(2, "x25519") as journals:
        params = make_params(journals)
        simulate_one_shot(np.ones((3, 4)), params, journals)
        rejects("spent", lambda: simulate_one_shot(np.ones((3, 4)), params, journals, batch=1))
        other = make_params(journals, session=b"another")
        assert simulate_one_shot(np.ones((3, 4)), other, journals).survivors == (0, 1, 2)
        path = journals[0].path
    assert not path.exists()


def test_weights_and_names() -> None:
    with temporary_journals(2, "x25519") as journals:
        params = make_params(journals, max_weight=5, encoding=Integers(9))
        vectors = {name: np.array([1, 2, 3, 4]) for name in "abcd"}
        weights = dict.fromkeys("abcd", 2)
        result = simulate_one_shot(vectors, params, journals, weights=weights, absent=["d"])
        assert result.weight == 6
        assert result.sum.tolist() == [6, 12, 18, 24]
        with pytest.raises(ParameterError, match=r"client a.*weight"):
            simulate_one_shot(vectors, params, journals, weights=weights | {"a": 6}, batch=1)
        with pytest.raises(ParameterError, match="absent"):
            simulate_one_shot(vectors, params, journals, weights=weights, absent=["e"])


def test_clipped_elements_of_the_reports_are_counted_in_one_warning() -> None:
    with temporary_journals(2, "x25519") as journals:
        params = make_params(journals)
        vectors = [np.array([0.0, 9.0, -9.0, 8.0])] * 4
        with pytest.warns(ClippingWarning, match=r"^6 of 12 elements") as caught:
            assert simulate_one_shot(vectors, params, journals, absent=[0]).clipped == 6
    assert [(w.category, w.filename) for w in caught] == [(ClippingWarning, __file__)]


def test_too_few_reports_and_the_clients_policy() -> None:
    with temporary_journals(2, "x25519") as journals:
        params = make_params(journals, min_clients=2)
        vectors = np.ones((3, 4))
        with pytest.raises(ParameterError, match="min_clients"):
            simulate_one_shot(vectors, params, journals)
        with pytest.raises(TooFewSurvivors):
            simulate_one_shot(vectors, params, journals, policy=LENIENT, absent=[0, 1])
        lenient = OneShotPolicy(min_clients=2, colluders=0)
        result = simulate_one_shot(vectors, params, journals, policy=lenient, absent=[0])
        assert result.survivors == (1, 2)


def test_number_of_helpers_is_validated() -> None:
    for helpers in (0, 17):
        with pytest.raises(ParameterError, match="helpers"), temporary_journals(helpers):
            pass
