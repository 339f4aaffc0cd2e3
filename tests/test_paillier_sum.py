from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedmf import FedMF, Trainer
from fedmf.aggregate import PHASES, WARNINGS, PaillierSum, PlainSum, RoundAborted, SecAggSum
from fedmf.errors import SettingError
from fedmf.simulated import simulate
from fedmf.splits import random_split
from fedmf.trust import SharedClientKey, Trustees
from fedmf.vectors import Rows, Vectors
from paillier_keys import keypair
from secagg import Integers, Packing, ParameterError, RemoteProtocolError, TooFewSurvivors
from secagg.combination import combine_parts
from secagg.encrypted import HEADER
from secagg.paillier import PrivateKey, PublicKey
from secagg.threshold import KeyShare, ThresholdKey
from threshold_keys import claim, dealing

K = 3


def paillier(trust, **more):
    """Return a sum under a small key that is the same in every run."""
    key = dealing(4, 3)[1] if trust == "threshold" else keypair()
    return PaillierSum(trust=trust, key=key, **more)


def tables(users, m, *, counted=False):
    """Return a table of some rows for each user, drawn from the user's id."""

    def table(user):
        rng = np.random.default_rng((user, m))
        rows = np.flatnonzero(rng.random(m) < 0.6).astype(np.int32)
        if counted:
            return Rows(rows, np.ones((rows.size, 1), dtype=np.int64), m)
        return Rows(rows, rng.normal(scale=6, size=(rows.size, K)), m)

    return Vectors(users, table, (m, 1 if counted else K))


@st.composite
def cohorts(draw):
    ids = draw(st.lists(st.integers(0, 2**40), min_size=5, max_size=9, unique=True))
    gone = draw(st.lists(st.sampled_from(ids), max_size=len(ids) // 3, unique=True))
    return ids, {user: draw(st.sampled_from(PHASES)) for user in gone}


@settings(max_examples=15)
@given(cohort=cohorts(), m=st.integers(1, 20), clip=st.sampled_from([0.7, 16.0, 1000.0]))
@pytest.mark.parametrize("trust", WARNINGS)
def test_plain_secret_sharing_and_encrypted_sums_are_the_same_integers(trust, cohort, m, clip):
    """Whoever vanishes, and before whichever message."""
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


def test_each_table_is_computed_once_and_none_for_who_sends_nothing():
    asked = []
    vectors = tables(range(6), 4)

    def counting(user):
        asked.append(user)
        return vectors[user]

    dropouts = {1: "share_keys", 2: "masked_input", 4: "unmasking"}
    counted = Vectors(range(6), counting, (4, K))
    assert paillier("key holder").sum(counted, dropouts=dropouts).survivors == (0, 3, 4, 5)
    assert asked == [0, 3, 4, 5]


@pytest.mark.parametrize("trust", WARNINGS)
def test_a_training_is_the_same_under_encryption(trust):
    split = random_split(simulate(24, 30, 400, seed=5), seed=1)
    runs = [
        Trainer(FedMF(k=K), aggregation, rounds=3, seed=8, cohort=14, dropout=0.2).fit(
            split.train, split.test
        )
        for aggregation in (PlainSum(), paillier(trust))
    ]
    plain, encrypted = (run.history_ for run in runs)
    for name in ("digest", "count_digest", "survivors", "test_rmse", "clipped", "aborted"):
        assert [getattr(r, name) for r in encrypted] == [getattr(r, name) for r in plain]
    assert len({record.digest for record in plain}) == 3
    assert all(r.key_holder_seconds == 0 for r in plain)
    holds = trust != "shared client key"
    assert all((r.key_holder_seconds > 0) == holds for r in encrypted)


@pytest.mark.parametrize("trust", ["key holder", "threshold"])
def test_what_is_sent_is_counted_and_who_decrypts_is_timed(trust):
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


def test_each_user_who_sent_decrypts_a_sum_under_a_shared_key(monkeypatch):
    read = SharedClientKey.decrypt

    def slow(self, data, packing, summands):
        return replace(read(self, data, packing, summands), user_seconds=1e9)

    monkeypatch.setattr(SharedClientKey, "decrypt", slow)
    dropouts = {1: "masked_input", 2: "unmasking"}
    found = paillier("shared client key").sum(tables(range(5), 2), dropouts=dropouts)
    assert 4e9 <= found.client_seconds < 4.1e9


def test_combining_what_trustees_answer_is_the_servers_time(monkeypatch):
    read = Trustees.decrypt

    def slow(self, data, packing, summands):
        found = read(self, data, packing, summands)
        assert min(found.server_seconds, found.key_holder_seconds) > 0
        assert found.user_seconds == 0
        return replace(found, server_seconds=1e9)

    monkeypatch.setattr(Trustees, "decrypt", slow)
    found = paillier("threshold").sum(tables(range(5), 2), dropouts={})
    assert 1e9 < found.server_seconds < 1.1e9


@pytest.mark.parametrize("left", [0, 2])
def test_fewer_than_three_make_no_sum(left):
    dropouts = dict.fromkeys(range(left, 6), "masked_input")
    with pytest.raises(RoundAborted, match=f"{left} of the 6 users of the cohort are left"):
        paillier("key holder").sum(tables(range(6), 4), dropouts=dropouts)


def test_three_do():
    dropouts = dict.fromkeys(range(3, 6), "masked_input")
    found = paillier("key holder").sum(tables(range(6), 4), dropouts=dropouts)
    assert found.survivors == (0, 1, 2)


def test_progress_is_told():
    told = []
    aggregation = paillier("key holder", progress=lambda *what: told.append(what))
    aggregation.sum(tables(range(4), 4), dropouts={3: "masked_input"})
    assert told == [*(("encrypting", done, 3) for done in range(3)), ("decrypting", 0, 1)]


def test_a_key_is_made_once_and_only_when_it_is_needed(monkeypatch):
    made, told = [], []

    def make(bits):
        made.append(bits)
        return keypair()

    monkeypatch.setattr("fedmf.paillier_sum.generate_keypair", make)
    aggregation = PaillierSum(trust="key holder", progress=lambda *what: told.append(what))
    assert made == []
    for _ in range(2):
        aggregation.sum(tables(range(4), 4), dropouts={})
    assert made == [3072]
    assert told[0] == ("making the key", 0, 1)
    made.clear()
    PaillierSum(trust="key holder", bits=2048).sum(tables(range(4), 4), dropouts={})
    assert made == [2048]


def test_a_threshold_key_is_dealt_once_to_so_many_trustees(monkeypatch):
    asked = []

    def deal(trustees, threshold, *, bits):
        asked.append((trustees, threshold, bits))
        return dealing(trustees, threshold)

    monkeypatch.setattr("fedmf.paillier_sum.deal", deal)
    aggregation = PaillierSum(trust="threshold", trustees=4, threshold=2, bits=2048)
    assert asked == []
    for _ in range(2):
        aggregation.sum(tables(range(4), 4), dropouts={})
    assert asked == [(4, 2, 2048)]


@pytest.mark.check(33)
def test_check33_the_trust_model_has_to_be_named():
    with pytest.raises(TypeError, match="trust"):
        PaillierSum()
    with pytest.raises(SettingError, match="'nobody' must be one of 'shared client key', 'key"):
        PaillierSum(trust="nobody")


@pytest.mark.check(33)
@pytest.mark.parametrize("trust", WARNINGS)
def test_check33_each_trust_model_says_who_reads_every_vector(trust):
    aggregation = paillier(trust)
    assert aggregation.warning == WARNINGS[trust]
    assert "collude" in aggregation.warning
    assert "every" in aggregation.warning
    assert f'"{trust}"' in PaillierSum.__doc__


@pytest.fixture
def seen_by_server(monkeypatch):
    """What a server that keeps everything has: each user's message, and how to parse it."""
    seen = []
    load = PublicKey.load_vector

    def keeping(self, data, packing, summands=1):
        seen.append((data, packing))
        return load(self, data, packing, summands)

    monkeypatch.setattr(PublicKey, "load_vector", keeping)
    return seen


@pytest.mark.check(33)
def test_check33_under_a_shared_key_one_colluding_user_reads_another_ones_vector(
    seen_by_server,
):
    vectors = tables(range(5), 4)
    aggregation = paillier("shared client key")
    aggregation.sum(vectors, dropouts={}, session=b"1")
    victim, packing = seen_by_server[3]
    key = aggregation.parties.private_key  # any user's: they all have the same
    read = key.decrypt_vector(key.public_key.load_vector(victim, packing))
    np.testing.assert_array_equal(
        read.integers, PlainSum().encoding.encode_integers(vectors[3].dense())[0]
    )


@pytest.mark.check(33)
def test_check33_under_a_threshold_one_trustee_too_few_reads_nothing(seen_by_server):
    """Neither of a vector nor of the sum, with all that the server was sent besides."""
    vectors = tables(range(5), 4)
    aggregation = paillier("threshold")
    total = aggregation.sum(vectors, dropouts={}, session=b"1")
    meant = {3: PlainSum().encoding.encode_integers(vectors[3].dense())[0], 5: total.integers}
    shares, key = aggregation.parties.shares, aggregation.parties.key
    for position in (3, 5):  # a user's message, and after the five of them the sum
        data, packing = seen_by_server[position]
        vector = key.public_key.load_vector(data, packing, summands=None)
        answers = [share.decrypt_partially(vector.ciphertexts) for share in shares]
        read = key.combine_vector(vector, answers[1:])
        np.testing.assert_array_equal(read.integers, meant[position])
        with pytest.raises(TooFewSurvivors, match="2 partial decryptions; it takes 3"):
            key.combine_vector(vector, answers[:2])
        with pytest.raises(RemoteProtocolError, match="dealing"):  # and by hand
            combine_parts([(one.index, one.values) for one in answers[:2]], key.delta)


def test_shares_that_were_stored_with_a_key_each_are_of_one_key():
    key, shares = dealing(4, 3)
    stored = tuple(
        KeyShare.from_bytes(
            share.to_bytes(), ThresholdKey.from_bytes(key.to_bytes(), allow_insecure=True)
        )
        for share in shares
    )
    aggregation = PaillierSum(trust="threshold", key=stored)
    assert aggregation.sum(tables(range(3), 2), dropouts={}).survivors == (0, 1, 2)


@pytest.mark.check(33)
@pytest.mark.parametrize("trust", ["key holder", "threshold"])
@pytest.mark.parametrize("lie", ["header", "multiple"])
def test_check33_a_server_that_deviates_reads_one_vector_as_if_it_were_the_sum(trust, lie):
    """What the warnings say, and why: the count of a sum is the server's word.

    A key holder sees that the encrypted count is another than the header's; trustees do not.
    """
    parties = paillier(trust).parties
    packing = Packing(encoding=Integers(9), length=2, summands=4)
    vector = parties.encrypt(np.array([7, 2]), packing)
    told = (replace(vector, added=4) if lie == "header" else vector * 4).to_bytes()
    if lie == "multiple":
        assert parties.decrypt(told, packing, 4).total.sum.tolist() == [28, 8]
        return
    with pytest.raises(RemoteProtocolError, match="the encrypted count"):
        parties.decrypt(told, packing, 4)
    if trust == "threshold":  # too late: who combines has the plaintexts
        asked = parties.public_key.load_vector(told, packing, 4).ciphertexts
        answers = [share.decrypt_partially(asked) for share in parties.shares]
        read = packing.unpack(parties.key.combine(asked, answers), parties.public_key.bits)
        assert read.tolist() == [7, 2, 1]


@pytest.mark.check(33)
@pytest.mark.parametrize("trust", ["key holder", "threshold"])
def test_check33_the_warning_says_what_the_server_is_trusted_with(trust):
    assert "as long as the server follows the protocol" in WARNINGS[trust]


@pytest.mark.check(33)
def test_check33_trustees_are_only_asked_for_sums_of_the_whole_round(monkeypatch):
    asked = []
    decrypt = KeyShare.decrypt_partially

    def watched(self, ciphertexts):
        asked.append(self.index)
        return decrypt(self, ciphertexts)

    monkeypatch.setattr(KeyShare, "decrypt_partially", watched)
    aggregation = paillier("threshold")
    aggregation.sum(tables(range(4), 4), dropouts={})
    assert asked == [1, 2, 3]
    packing = Packing(encoding=Integers(1), length=2, summands=4)
    single = aggregation.parties.encrypt(np.array([1, 0]), packing).to_bytes()
    with pytest.raises(RemoteProtocolError, match="summands: the sum of 1 vectors"):
        aggregation.parties.decrypt(single, packing, 4)
    assert asked == [1, 2, 3]


def test_a_wrong_answer_of_a_trustee_is_refused_by_its_number(monkeypatch):
    answer = KeyShare.decrypt_partially

    def lying(self, ciphertexts):
        if self.index != 2:
            return answer(self, ciphertexts)
        return claim(self, ciphertexts, [4] * len(ciphertexts))

    monkeypatch.setattr(KeyShare, "decrypt_partially", lying)
    with pytest.raises(RemoteProtocolError) as refused:
        paillier("threshold").sum(tables(range(4), 4), dropouts={})
    assert (refused.value.sender, refused.value.check) == (2, "proof")


@pytest.mark.check(33)
@pytest.mark.parametrize(
    ("trust", "encrypts_with"),
    [("shared client key", PrivateKey), ("key holder", PublicKey), ("threshold", PublicKey)],
)
def test_check33_users_have_the_private_key_only_where_they_share_it(
    trust, encrypts_with, monkeypatch
):
    used = []
    for kind in (PrivateKey, PublicKey):
        encrypt = kind.encrypt_vector

        def watched(self, vector, packing, *, encrypt=encrypt):
            used.append(type(self))
            return encrypt(self, vector, packing)

        monkeypatch.setattr(kind, "encrypt_vector", watched)
    paillier(trust).sum(tables(range(3), 2), dropouts={})
    assert used == [encrypts_with] * 3


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"bits": 1024}, "bits = 1024 must be from 2048.*generate_insecure_keypair"),
        ({"bits": 2050}, "multiple of 64"),
        ({"bits": "3072"}, "bits = '3072'"),
        ({"clip": 0.0}, "clip"),
        ({"trustees": 3}, "trustees = 3 and threshold = None are for trust = 'threshold'"),
        ({"threshold": 3}, "leave them out"),
        ({"key": dealing(4, 3)[1]}, "key must be a PrivateKey, not tuple"),
    ],
)
def test_impossible_settings_are_refused_at_once(setting, message):
    with pytest.raises(SettingError, match=message):
        PaillierSum(trust="key holder", **setting)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({}, "trustees = None and threshold = None: trust = 'threshold' needs"),
        ({"trustees": 3}, "such as trustees = 3 and threshold = 2"),
        ({"trustees": 3, "threshold": 1}, "or one could decrypt alone"),
        (
            {"trustees": 5, "threshold": 6},
            "threshold = 6 is more than trustees = 5.*lower the threshold to 5 or less",
        ),
        ({"trustees": 101, "threshold": 4}, "up to 100 trustees"),
        ({"trustees": "3", "threshold": 2}, "trustees = '3'"),
        ({"trustees": 3, "threshold": "2"}, "threshold = '2'"),
        ({"trustees": 4, "threshold": 3, "key": dealing(4, 3)[1]}, "without a key"),
        ({"key": keypair()}, "a tuple of KeyShare"),
        ({"key": (keypair(),)}, "a tuple of KeyShare"),
        ({"key": dealing(4, 3)[1][:2]}, "2 shares of the key: give as many as it takes"),
        ({"key": ()}, "0 shares"),
        ({"key": dealing(3, 1)[1]}, "at least 2, or one could alone"),
        ({"key": (*dealing(4, 3)[1][:2], dealing(4, 3)[1][0])}, "trustees 1, 2, 1: give each"),
        ({"key": (*dealing(4, 3)[1], dealing(4, 3)[1][3])}, "give each one once"),
        ({"key": (*dealing(4, 3)[1][:3], dealing(4, 2)[1][3])}, "of several keys"),
    ],
)
def test_impossible_trustees_are_refused_at_once(setting, message):
    with pytest.raises(SettingError, match=message):
        PaillierSum(trust="threshold", **setting)


def test_what_does_not_fit_the_sum_is_refused_as_a_setting():
    rows = Rows(np.array([0], dtype=np.int32), np.array([[np.inf]]), 1)
    infinite = Vectors(range(4), lambda _: rows, (1, 1))
    with pytest.raises(SettingError, match="NaN or infinite"):
        paillier("key holder").sum(infinite, dropouts={})
    with pytest.raises(SettingError, match="session") as refused:
        paillier("key holder").sum(tables(range(4), 4), dropouts={}, session=bytes(65))
    assert isinstance(refused.value.__cause__, ParameterError)
