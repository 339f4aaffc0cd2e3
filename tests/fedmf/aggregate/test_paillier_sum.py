from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from fedmf.aggregate import PHASES, WARNINGS, PaillierSum, PlainSum, RoundAborted, SecAggSum
from fedmf.aggregate.trust import SharedClientKey
from fedmf.aggregate.vectors import Rows, Vectors
from fedmf.errors import SettingError
from paillier_keys import keypair
from paillier_parties import paillier, tables
from secagg.paillier.vectors import HEADER
from threshold_keys import dealing


@st.composite
def cohorts(draw):
    ids = draw(st.lists(st.integers(0, 2**40), min_size=5, max_size=9, unique=True))
    gone = draw(st.lists(st.sampled_from(ids), max_size=len(ids) // 3, unique=True))
    return ids, {user: draw(st.sampled_from(PHASES)) for user in gone}


@examples(15)
@given(cohort=cohorts(), m=st.integers(1, 20), clip=st.sampled_from([0.7, 16.0, 1000.0]))
@pytest.mark.parametrize("trust", WARNINGS)
def test_plain_shared_and_encrypted_sums_are_equal(trust, cohort, m, clip):
    """For any users that drop out, before any message."""
    users, dropouts = cohort
    coding = {"clip": clip, "fractional_bits": 12}
    plain = PlainSum(**coding)
    secure = SecAggSum(**coding, threshold=len(users) // 2 + 1)
    encrypted = paillier(trust, **coding)
    for counted in (False, True):
        vectors = tables(users, m, counted=counted)
        meant, shared, found = (
            getattr(aggregation, "count" if counted else "sum")(
                vectors, dropouts=dropouts, session=b"test"
            )
            for aggregation in (plain, secure, encrypted)
        )
        np.testing.assert_array_equal(found.integers, meant.integers)
        np.testing.assert_array_equal(found.sum, meant.sum)
        assert found.sum.dtype == np.float64
        assert found.survivors == shared.survivors == meant.survivors
        assert found.digest == shared.digest == meant.digest
        assert found.clipped == shared.clipped == meant.clipped


@pytest.mark.parametrize("trust", ["key holder", "threshold"])
def test_bytes_and_times_are_reported_per_party(trust):
    vectors = tables(range(5), 8)
    held = paillier(trust).sum(vectors, dropouts={2: "masked_input"})
    # 8 · 3 elements and the count in slots of 24 bits, 21 of which fit 511 bits
    assert held.bytes_up * 5 / 4 == HEADER.size + 2 * 1024 / 8
    assert held.bytes_down == 0
    assert min(held.client_seconds, held.server_seconds, held.key_holder_seconds) > 0
    shared = paillier("shared client key").sum(vectors, dropouts={2: "masked_input"})
    assert shared.bytes_up == shared.bytes_down == held.bytes_up
    assert min(shared.client_seconds, shared.server_seconds) > 0
    assert shared.key_holder_seconds == 0


def test_shared_key_sum_is_decrypted_by_each_sender(monkeypatch):
    read = SharedClientKey.decrypt

    def slow(self, data, packing, summands):
        return replace(read(self, data, packing, summands), user_seconds=1e9)

    monkeypatch.setattr(SharedClientKey, "decrypt", slow)
    dropouts = {1: "masked_input", 2: "unmasking"}
    found = paillier("shared client key").sum(tables(range(5), 2), dropouts=dropouts)
    assert 4e9 <= found.client_seconds < 4.1e9


@pytest.mark.parametrize("left", [0, 2, 3])
def test_sum_of_fewer_than_three_users_aborts(left):
    dropouts = dict.fromkeys(range(left, 6), "masked_input")
    aborts = pytest.raises(RoundAborted, match=f"{left} of the 6")
    with aborts if left < 3 else nullcontext():
        paillier("key holder").sum(tables(range(6), 4), dropouts=dropouts)


def test_key_is_generated_once_at_first_use(monkeypatch):
    made, reported = [], []

    def make(bits):
        made.append(bits)
        return keypair()

    monkeypatch.setattr("fedmf.aggregate.paillier.generate_keypair", make)
    aggregation = PaillierSum(trust="key holder", progress=lambda *what: reported.append(what))
    assert made == []
    for _ in range(2):
        aggregation.sum(tables(range(4), 4), dropouts={})
    assert made == [3072]
    assert reported[0] == ("making the key", 0, 1)
    made.clear()
    PaillierSum(trust="key holder", bits=2048).sum(tables(range(4), 4), dropouts={})
    assert made == [2048]


def test_threshold_key_is_dealt_once_to_all_trustees(monkeypatch):
    asked = []

    def deal(trustees, threshold, *, bits):
        asked.append((trustees, threshold, bits))
        return dealing(trustees, threshold)

    monkeypatch.setattr("fedmf.aggregate.paillier.deal", deal)
    aggregation = PaillierSum(trust="threshold", trustees=4, threshold=2, bits=2048)
    assert asked == []
    for _ in range(2):
        aggregation.sum(tables(range(4), 4), dropouts={})
    assert asked == [(4, 2, 2048)]


@pytest.mark.parametrize(
    "setting",
    [
        {"bits": 1024},
        {"bits": 2050},
        {"bits": "3072"},
        {"clip": 0.0},
        {"trustees": 3},
        {"threshold": 3},
        {"key": dealing(4, 3)[1]},
    ],
)
def test_settings_out_of_range_raise_in_the_constructor(setting):
    with pytest.raises(SettingError):
        PaillierSum(trust="key holder", **setting)


@pytest.mark.parametrize(
    "setting",
    [
        {},
        {"trustees": 3},
        {"trustees": 3, "threshold": 1},
        {"trustees": 5, "threshold": 6},
        {"trustees": 101, "threshold": 4},
        {"trustees": "3", "threshold": 2},
        {"trustees": 3, "threshold": "2"},
        {"trustees": 4, "threshold": 3, "key": dealing(4, 3)[1]},
        {"key": keypair()},
        {"key": (keypair(),)},
        {"key": dealing(4, 3)[1][:2]},
        {"key": ()},
        {"key": dealing(3, 1)[1]},
        {"key": (*dealing(4, 3)[1][:2], dealing(4, 3)[1][0])},
        {"key": (*dealing(4, 3)[1], dealing(4, 3)[1][3])},
        {"key": (*dealing(4, 3)[1][:3], dealing(4, 2)[1][3])},
    ],
)
def test_trustees_out_of_range_raise_in_the_constructor(setting):
    with pytest.raises(SettingError):
        PaillierSum(trust="threshold", **setting)


def test_sum_that_does_not_fit_the_key_raises():
    rows = Rows(np.array([0], dtype=np.int32), np.array([[np.inf]]), 1)
    infinite = Vectors(range(4), lambda _: rows, (1, 1))
    with pytest.raises(SettingError):
        paillier("key holder").sum(infinite, dropouts={})
    with pytest.raises(SettingError, match="session"):
        paillier("key holder").sum(tables(range(4), 4), dropouts={}, session=bytes(65))
