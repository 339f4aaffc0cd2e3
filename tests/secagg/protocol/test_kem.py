"""ML-KEM-768 by `cryptography`, as suite hybrid uses it; see also the vectors."""

from __future__ import annotations

import copy
import os
import pickle
import sys

import pytest
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import mlkem

from harness import make_params
from rosters import with_coefficient
from secagg import Client, ClientPolicy, LocalProtocolError, ParameterError, Server
from secagg.protocol import kem

SEED = bytes(range(64))


def test_check07_keys_with_reduced_coefficients_alone_are_valid() -> None:
    """FIPS 203, 7.2: any other encoding of a key would be a second name of it."""
    public = kem.KemPair(SEED).public
    assert kem.is_valid(public)
    for at in (0, 1, 255, 256, 767):
        assert kem.is_valid(with_coefficient(public, at, 3328))
        for value in (3329, 3330, 4095):
            wrong = with_coefficient(public, at, value)
            assert not kem.is_valid(wrong)
            with pytest.raises(ValueError):  # noqa: PT011
                kem.encapsulate(wrong)
    for wrong in (b"", public[:-1], public + b"\0"):
        assert not kem.is_valid(wrong)


def test_pair_opens_what_was_encapsulated_to_it() -> None:
    pair = kem.KemPair(SEED)
    secret, ciphertext = kem.encapsulate(pair.public)
    assert (len(secret), len(ciphertext)) == (32, kem.CIPHERTEXT_BYTES)
    assert pair.decapsulate(ciphertext) == secret
    flipped = bytes([ciphertext[0] ^ 1]) + ciphertext[1:]
    assert pair.decapsulate(flipped) != secret
    assert kem.KemPair(os.urandom(64)).decapsulate(ciphertext) != secret
    assert kem.encapsulate(pair.public) != (secret, ciphertext)


def test_check29_pair_is_not_printed_pickled_or_copied() -> None:
    pair = kem.KemPair(SEED)
    assert pair.seed == SEED
    assert SEED[:8].hex() not in repr(pair)
    assert copy.deepcopy(pair) is pair
    with pytest.raises(LocalProtocolError):
        pickle.dumps(pair)


class _Unsupported:
    """The class of a build with OpenSSL below 3.5."""

    @staticmethod
    def from_seed_bytes(_: bytes) -> None:
        raise UnsupportedAlgorithm("ML-KEM is not supported")


def test_without_ml_kem_hybrid_rounds_are_an_error_and_others_are_not(monkeypatch):
    """Not at the parameters, which a server plans and a judge reads."""
    hybrid, other = make_params(suite="hybrid"), make_params(suite="x25519")
    kem.require.cache_clear()
    monkeypatch.setattr(mlkem, "MLKEM768PrivateKey", _Unsupported)
    policy = ClientPolicy(corrupt=0)
    with pytest.raises(ParameterError, match="hybrid"):
        Client(1, hybrid, policy=policy)
    with pytest.raises(ParameterError, match="hybrid"):
        Server(hybrid)
    with pytest.raises(ParameterError):
        kem.is_valid(bytes(kem.KEY_BYTES))  # neither valid nor invalid
    assert Client(1, other, policy=policy).advertise_keys()
    monkeypatch.undo()
    assert Client(1, hybrid, policy=policy).advertise_keys()


def test_cryptography_below_48_is_the_same_error(monkeypatch):
    """It has no module of ML-KEM at all."""
    kem.require.cache_clear()
    monkeypatch.setitem(sys.modules, mlkem.__name__, None)
    with pytest.raises(ParameterError):
        kem.KemPair(bytes(kem.SEED_BYTES))
    monkeypatch.undo()
    kem.require()
