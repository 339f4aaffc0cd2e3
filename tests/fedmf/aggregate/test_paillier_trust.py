"""Trust models of Paillier sums: who can read what, the warnings, and what breaks each."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedmf.aggregate import WARNINGS, PaillierSum, PlainSum
from fedmf.errors import SettingError
from paillier_parties import paillier, tables
from secagg import Integers, Packing, RemoteProtocolError, TooFewSurvivors
from secagg.paillier import PrivateKey, PublicKey
from secagg.threshold import KeyShare
from secagg.threshold.combination import combine_parts


@pytest.fixture
def seen_by_server(monkeypatch):
    """View of a server that keeps everything: each user's message, and how to parse it."""
    seen = []
    load = PublicKey.load_vector

    def keeping(self, data, packing, summands=1):
        seen.append((data, packing))
        return load(self, data, packing, summands)

    monkeypatch.setattr(PublicKey, "load_vector", keeping)
    return seen


@pytest.mark.check(33)
def test_check33_trust_model_is_required():
    with pytest.raises(TypeError, match="trust"):
        PaillierSum()
    with pytest.raises(SettingError, match="'nobody'"):
        PaillierSum(trust="nobody")


@pytest.mark.check(33)
@pytest.mark.parametrize("trust", WARNINGS)
def test_check33_warnings_state_the_readers_of_each_vector(trust):
    aggregation = paillier(trust)
    assert aggregation.warning == WARNINGS[trust]
    assert "collude" in aggregation.warning
    assert "every" in aggregation.warning
    assert f'"{trust}"' in PaillierSum.__doc__


@pytest.mark.check(33)
def test_check33_shared_key_colluding_user_reads_a_vector(seen_by_server):
    """Under a shared key one colluding user reads another ones vector."""
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
def test_check33_threshold_one_trustee_too_few_reads_nothing(seen_by_server):
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
        with pytest.raises(TooFewSurvivors):
            key.combine_vector(vector, answers[:2])
        with pytest.raises(RemoteProtocolError) as caught:  # and by hand
            combine_parts([(one.index, one.values) for one in answers[:2]], key.delta)
        assert caught.value.check == "dealing"


@pytest.mark.check(33)
@pytest.mark.parametrize("trust", ["key holder", "threshold"])
@pytest.mark.parametrize("lie", ["header", "multiple"])
def test_check33_deviating_server_reads_one_vector(trust, lie):
    """The warnings give their reason: the count of a sum is the server's word.

    A key holder sees that the encrypted count is another than the header's; trustees do not.
    """
    parties = paillier(trust).parties
    packing = Packing(encoding=Integers(9), length=2, summands=4)
    vector = parties.encrypt(np.array([7, 2]), packing)
    sent = (replace(vector, added=4) if lie == "header" else vector * 4).to_bytes()
    if lie == "multiple":
        assert parties.decrypt(sent, packing, 4).total.sum.tolist() == [28, 8]
        return
    with pytest.raises(RemoteProtocolError) as caught:
        parties.decrypt(sent, packing, 4)
    assert caught.value.check == "summands"
    if trust == "threshold":  # too late: who combines has the plaintexts
        asked = parties.public_key.load_vector(sent, packing, 4).ciphertexts
        answers = [share.decrypt_partially(asked) for share in parties.shares]
        read = packing.unpack(parties.key.combine(asked, answers), parties.public_key.bits)
        assert read.tolist() == [7, 2, 1]


@pytest.mark.check(33)
def test_check33_trustees_are_asked_for_whole_sums_only(monkeypatch):
    """Trustees are only asked for sums of the whole round."""
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
    with pytest.raises(RemoteProtocolError) as caught:
        aggregation.parties.decrypt(single, packing, 4)
    assert caught.value.check == "summands"
    assert asked == [1, 2, 3]


@pytest.mark.check(33)
@pytest.mark.parametrize(
    ("trust", "encrypts_with"),
    [("shared client key", PrivateKey), ("key holder", PublicKey), ("threshold", PublicKey)],
)
def test_check33_users_have_the_private_key_only_if_shared(trust, encrypts_with, monkeypatch):
    """Users have the private key only where they share it."""
    used = []
    for kind in (PrivateKey, PublicKey):
        encrypt = kind.encrypt_vector

        def watched(self, vector, packing, *, encrypt=encrypt):
            used.append(type(self))
            return encrypt(self, vector, packing)

        monkeypatch.setattr(kind, "encrypt_vector", watched)
    paillier(trust).sum(tables(range(3), 2), dropouts={})
    assert used == [encrypts_with] * 3
