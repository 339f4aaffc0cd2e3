import hashlib
import struct
from dataclasses import replace

import numpy as np
import pytest

from fedmf.aggregate import PHASES, FloatSum, OneShotSum, PlainSum, RoundAborted, SecAggSum
from fedmf.aggregate.vectors import Rows, Vectors
from fedmf.errors import SettingError
from secagg.protocol.suggestion import hybrid_bytes

M, K = 6, 2


def gradients(users, *, big=()):
    """Return a table of a few rows for each user, drawn from the user's id."""

    def table(user):
        rng = np.random.default_rng(user)
        rows = np.sort(rng.choice(M, user % 5, replace=False)).astype(np.int32)
        values = rng.normal(scale=3, size=(rows.size, K))
        if user in big:
            values[0] = (100.0, -100.0)
        return Rows(rows, values, M)

    return Vectors(users, table, (M, K))


def indicators(users):
    def table(user):
        rows = np.arange(user % (M + 1), dtype=np.int32)
        return Rows(rows, np.ones((rows.size, 1), dtype=np.int64), M)

    return Vectors(users, table, (M, 1))


def test_plain_sum_adds_each_users_rounded_integers():
    """Each user's own rounding, not that of the sum: .3 · 4 = 1.2 rounds to 1, thrice."""
    rows = Rows(np.array([1], dtype=np.int32), np.array([[0.3, -9.0]]), 2)
    vectors = Vectors([4, 7, 9], lambda _: rows, (2, 2))
    found = PlainSum(clip=8.0, fractional_bits=2).sum(vectors, dropouts={})
    assert found.integers.tolist() == [0, 0, 3, -96]
    assert found.sum.tolist() == [0.0, 0.0, 0.75, -24.0]
    assert found.clipped == 3
    assert found.survivors == (4, 7, 9)


def test_digest_covers_integers_and_survivors():
    found = PlainSum().count(indicators([1, 2, 300]), dropouts={})
    assert found.integers.tolist() == [3, 2, 1, 1, 1, 1]  # 300 % 7 = 6
    content = struct.pack("<6q3q", 3, 2, 1, 1, 1, 1, 1, 2, 300)
    assert found.digest == hashlib.sha256(content).hexdigest()
    assert found.digest != PlainSum().count(indicators([1, 2, 300, 7]), dropouts={}).digest


def test_tables_are_computed_once_for_senders_only():
    asked = []
    vectors = gradients(range(12))

    def counting(user):
        asked.append(user)
        return vectors[user]

    counted = Vectors(range(12), counting, (M, K))
    PlainSum().sum(counted, dropouts={3: "masked_input"})
    plain, asked = asked, []
    SecAggSum().sum(counted, dropouts={3: "masked_input"})
    assert plain == sorted(asked) == [u for u in range(12) if u != 3]
    with pytest.raises(KeyError):
        vectors[12]


SCHEDULES = [
    {},
    *({5: phase} for phase in PHASES),
    {1: "advertise_keys", 4: "share_keys", 9: "masked_input", 11: "unmasking"},
]


@pytest.mark.parametrize(
    "private",
    [
        SecAggSum(threshold=7),
        SecAggSum(neighbours=8, threshold=5),
        OneShotSum(helpers=2),
        OneShotSum(),
        OneShotSum(helpers=5, threshold=3),
    ],
    ids=repr,
)
@pytest.mark.parametrize("dropouts", SCHEDULES)
def test_plain_and_private_sums_are_equal(dropouts, private):
    """In the real protocols, for any users that drop out, before any message."""
    secure, plain = replace(private), PlainSum()
    ids = [u * u + 1 for u in range(12)]
    leaving = {ids[u]: phase for u, phase in dropouts.items()}
    vectors = gradients(ids, big=(ids[6],))
    meant = plain.sum(vectors, dropouts=leaving)
    found = secure.sum(vectors, dropouts=leaving, session=b"test sum")
    stay = [u for u in ids if leaving.get(u) in (None, "unmasking")]
    assert found.survivors == meant.survivors == tuple(stay)
    np.testing.assert_array_equal(found.integers, meant.integers)
    np.testing.assert_array_equal(found.sum, meant.sum)
    assert found.digest == meant.digest
    assert found.clipped == meant.clipped == 2
    counted = secure.count(indicators(ids), dropouts=leaving, session=b"test count")
    assert counted.digest == plain.count(indicators(ids), dropouts=leaving).digest


def test_costs_are_reported_per_user():
    vectors = gradients(range(12))
    plain = PlainSum().sum(vectors, dropouts={})
    assert plain.bytes_up == M * K * 25 / 8  # 12 times 2^20, and a sign
    assert plain.bytes_down == 0
    secure = SecAggSum().sum(vectors, dropouts={}, session=b"costs")
    assert secure.bytes_up > plain.bytes_up
    assert SecAggSum().params(12, M * K, SecAggSum().encoding, b"").ring.bits == 25
    assert secure.bytes_down > 0
    for found in (plain, secure):
        assert found.client_seconds > 0
        assert found.server_seconds > 0


def test_sum_of_too_few_survivors_aborts():
    leaving = dict.fromkeys(range(6), "masked_input")
    with pytest.raises(RoundAborted, match="masked_input"):
        SecAggSum().sum(gradients(range(12)), dropouts=leaving, session=b"few")
    for clear in (PlainSum(), FloatSum()):
        with pytest.raises(RoundAborted, match="12"):
            clear.sum(gradients(range(12)), dropouts=dict.fromkeys(range(12), "share_keys"))


@pytest.mark.parametrize(
    ("n", "settings", "neighbours", "threshold"),
    [
        (12, {}, None, 9),
        (100, {}, None, 70),
        (101, {}, 34, 22),
        (943, {}, 74, 45),
        (943, {"neighbours": None}, None, 661),
        (943, {"neighbours": 60}, 60, 43),
        (943, {"neighbours": 60, "threshold": 31}, 60, 31),
    ],
)
def test_neighbours_and_threshold_follow_the_rule(n, settings, neighbours, threshold):
    secure = SecAggSum(**settings)
    params = secure.params(n, 10, secure.encoding, b"")
    assert (params.neighbours, params.threshold) == (neighbours, threshold)


def test_suite_is_decided_as_at_all_doors():
    secure = SecAggSum(clip=1.0, fractional_bits=10)
    length = 5000
    found = [
        one.params(12, length, secure.encoding, b"")
        for one in (secure, SecAggSum(suite="x25519"), SecAggSum(suite="hybrid"))
    ]
    assert [one.suite for one in found] == ["x25519", "x25519", "hybrid"]
    assert 15 * length / 8 < hybrid_bytes(12) < 4 * length  # 15 bits are enough for the sum
    with pytest.raises(SettingError):
        SecAggSum(suite="mlkem")


@pytest.mark.parametrize(
    "settings", [{"neighbours": 7}, {"neighbours": 12}, {"threshold": 6}, {"threshold": 13}]
)
def test_settings_that_do_not_fit_the_cohort_raise(settings):
    with pytest.raises(SettingError):
        SecAggSum(**settings).sum(gradients(range(12)), dropouts={}, session=b"refused")
    with pytest.raises(SettingError):
        SecAggSum(neighbours="all")


def test_sum_of_infinite_gradients_raises():
    rows = Rows(np.array([0], dtype=np.int32), np.array([[np.inf]]), 1)
    for aggregation in (PlainSum(), SecAggSum(), FloatSum()):
        with pytest.raises(SettingError):
            aggregation.sum(Vectors(range(4), lambda _: rows, (1, 1)), dropouts={})


def test_float_sum_neither_rounds_nor_clips():
    vectors = gradients(range(20), big={4, 9})
    found = FloatSum().sum(vectors, dropouts={3: "share_keys", 5: "unmasking"})
    stay = [user for user in range(20) if user != 3]
    np.testing.assert_allclose(found.sum, sum(vectors[user].dense() for user in stay))
    assert found.survivors == tuple(stay)
    assert found.clipped == 0
    assert found.digest != FloatSum().sum(vectors, dropouts={}).digest
    counts = [
        a.count(indicators(range(9)), dropouts={}).digest for a in (FloatSum(), PlainSum())
    ]
    assert counts[0] == counts[1]


def test_sums_of_one_object_are_rounds_of_one_session():
    secure, other = SecAggSum(), SecAggSum()
    for session in (b"first", b"second"):
        found = secure.sum(gradients(range(8)), dropouts={}, session=session)
        plain = PlainSum().sum(gradients(range(8)), dropouts={}, session=session)
        assert found.digest == plain.digest
    keys = secure._session._keys
    assert sorted(keys) == list(range(8))
    assert {key.peers for key in keys.values()} == {7}
    other.sum(gradients(range(8)), dropouts={}, session=b"third")
    assert all(other._session._keys[u].pair.seed != keys[u].pair.seed for u in keys)
    assert secure == other
