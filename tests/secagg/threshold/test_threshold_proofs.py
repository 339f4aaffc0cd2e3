"""Proofs of equal exponents: true statements have one, others do not."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import replace

import gmpy2
import numpy as np
import pytest
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from paillier_keys import Stream
from secagg.paillier.modular import Modulus
from secagg.threshold import proofs
from secagg.threshold.proofs import Statement, proof_bytes
from threshold_keys import SAFE

P, Q = (gmpy2.mpz(p) for p in SAFE[:2])
N2 = (P * Q) ** 2
ORDER = P * Q * (P // 2) * (Q // 2)
MODULUS = Modulus(N2)
V = gmpy2.powmod(5, 2, N2)
X = 3**300
X_BITS = 512


def statement_of(count: int, x: int = X) -> Statement:
    """Return a true statement about powers by x."""
    inputs = [gmpy2.powmod(7 + j, 11, N2) for j in range(count)]
    outputs = [gmpy2.powmod(c, 2 * x, N2) for c in inputs]
    image = int(gmpy2.powmod(V, x, N2))
    pack = MODULUS.pack
    return Statement(MODULUS, int(V), image, pack(inputs), pack(outputs), b"context")


def with_outputs(statement: Statement, outputs: list[int]) -> Statement:
    return replace(statement, outputs=MODULUS.pack(x % N2 for x in outputs))


@pytest.mark.parametrize("count", [0, 1, 2, 3, 8, 33, 70])
@pytest.mark.parametrize("context", [b"", b"context"])
def test_proof_is_that_of_the_document(count: int, context: bytes) -> None:
    """docs/paillier.md, §5: hashes, nonce and response, without the code under test."""
    statement = replace(statement_of(count), context=context)
    proof = statement.prove(X, X_BITS, Stream("nonce"))
    width = (N2.bit_length() + 7) // 8

    def hashed(label: bytes, *parts: bytes) -> bytes:
        return hashlib.sha256(label + b"".join(parts)).digest()

    def elements(*values: int) -> bytes:
        return b"".join(int(value).to_bytes(width, "little") for value in values)

    inputs, outputs = (MODULUS.unpack(x) for x in (statement.inputs, statement.outputs))
    parts = (context, elements(*inputs), elements(*outputs))
    lengths = [len(part).to_bytes(8, "little") for part in parts]
    public = elements(statement.base, statement.image)
    label = b"secagg equality statement v1"
    seed = hashed(label, *lengths, context, public, *parts[1:])
    u, label = 1, b"secagg equality coefficient v1"
    for j, c in enumerate(inputs):
        hash_j = hashed(label, seed, j.to_bytes(8, "little"))
        a = int.from_bytes(hash_j[:16], "little") if j else 1
        u = u * gmpy2.powmod(c, 4 * a, N2) % N2
    secret = int(X).to_bytes(X_BITS // 8, "little")
    key = hmac.digest(secret, Stream("nonce")(32), "sha256")
    info = hashed(b"secagg equality nonce v1", seed) + bytes(8)
    size = (X_BITS + 256) // 8
    r = int.from_bytes(HKDFExpand(SHA256(), size, info).derive(key), "little")
    commitments = elements(gmpy2.powmod(u, r, N2), gmpy2.powmod(statement.base, r, N2))
    e = hashed(b"secagg equality challenge v1", seed, commitments)[:16]
    z = r + int.from_bytes(e, "little") * X
    assert proof == e + z.to_bytes(size + 1, "little")
    assert len(proof) == proof_bytes(X_BITS)
    assert statement.holds(proof)


@pytest.mark.parametrize("count", [1, 5])
def test_proof_is_valid_for_its_statement_only(count: int) -> None:
    statement = statement_of(count)
    proof = statement.prove(X, X_BITS, Stream("nonce"))
    inputs, outputs = (MODULUS.unpack(x) for x in (statement.inputs, statement.outputs))
    for other in (
        replace(statement, context=b"contexs"),
        replace(statement, context=b"context\x00"),
        replace(statement, base=int(V * V % N2)),
        replace(statement, image=statement.image + 1),
        replace(statement, image=int(-statement.image % N2)),
        replace(statement, inputs=MODULUS.pack([-inputs[0] % N2, *inputs[1:]])),
        with_outputs(statement, [-outputs[0], *outputs[1:]]),
        replace(statement, inputs=statement.outputs, outputs=statement.inputs),
        statement_of(count + 1),
    ):
        assert not other.holds(proof)


def test_statement_of_a_proof_is_unambiguous() -> None:
    """The same bytes, cut in another place, are another statement."""
    statement = statement_of(3)
    rows = [*statement.inputs, *statement.outputs]
    cuts = [
        replace(statement, inputs=np.stack(rows[:i]), outputs=np.stack(rows[i:]))
        for i in (1, 2, 3)
    ]
    assert len({cut._seed() for cut in cuts}) == 3


@examples(60)
@given(st.integers(0, 8 * proof_bytes(X_BITS) - 1))
def test_no_bit_of_a_proof_can_be_changed(bit: int) -> None:
    statement = statement_of(2)
    proof = bytearray(statement.prove(X, X_BITS, Stream("nonce")))
    proof[bit // 8] ^= 1 << bit % 8
    assert not statement.holds(bytes(proof))


def test_other_exponents_prove_nothing() -> None:
    """Neither a wrong x, nor values of which only some, or none, have the exponent x."""
    statement = statement_of(3)
    assert not statement.holds(statement.prove(X + 1, X_BITS, Stream("nonce")))
    honest = MODULUS.unpack(statement.outputs)
    inputs = MODULUS.unpack(statement.inputs)
    for outputs in (
        [honest[0] * 4, *honest[1:]],
        [*honest[:2], honest[2] * 4],
        [gmpy2.powmod(c, 2 * X + 2, N2) for c in inputs],
        [honest[1], honest[0], honest[2]],
    ):
        for nonce in range(8):
            false = with_outputs(statement, outputs)
            assert not false.holds(false.prove(X, X_BITS, Stream(f"nonce {nonce}")))


def test_values_cannot_be_fitted_to_known_coefficients() -> None:
    """Were a_j not hashed from the outputs, these would cancel: δ^a_1 · (δ^−a_0)... = 1."""
    statement = statement_of(3)
    coefficients = proofs._coefficients(statement._seed(), 3)
    delta, honest = gmpy2.mpz(4), MODULUS.unpack(statement.outputs)
    cancelling = [
        honest[0],
        honest[1] * gmpy2.powmod(delta, coefficients[2], N2),
        honest[2] * gmpy2.powmod(delta, -coefficients[1], N2),
    ]
    false = with_outputs(statement, cancelling)
    product = gmpy2.mpz(1)
    for x, y, a in zip(honest, cancelling, coefficients, strict=True):
        product = product * gmpy2.powmod(y * gmpy2.invert(x, N2), a, N2) % N2
    assert product == 1
    assert not false.holds(false.prove(X, X_BITS, Stream("nonce")))


def test_output_cannot_be_chosen_after_the_challenge() -> None:
    """A prover who knows the order could prove anything if e hashed the commitments alone."""
    statement = statement_of(1)
    c = MODULUS.unpack(statement.inputs)[0]
    r, other = 12345, 67890
    commitments = [gmpy2.powmod(c**4, other, N2), gmpy2.powmod(V, r, N2)]
    challenge = statement._challenge(statement._seed(), MODULUS.pack(commitments))
    e = int.from_bytes(challenge, "little")
    z = r + e * X
    y = (z - other) * gmpy2.invert(e, ORDER) % ORDER
    false = with_outputs(statement, [gmpy2.powmod(c, 2 * y, N2)])
    d = MODULUS.unpack(false.outputs)[0]
    assert commitments[0] == gmpy2.powmod(c**4, z, N2) * gmpy2.powmod(d**2, -e, N2) % N2
    proof = challenge + z.to_bytes(proof_bytes(X_BITS) - 16, "little")
    assert not false.holds(proof)


@pytest.mark.parametrize("hashed", [0, 1])
def test_no_commitment_can_be_chosen_after_the_challenge(hashed: int) -> None:
    """A prover who knows an exponent could prove anything if e hashed one commitment only."""
    y, r = X + 1, 12345
    statement = statement_of(1)
    c = MODULUS.unpack(statement.inputs)[0]
    false = with_outputs(statement, [gmpy2.powmod(c, 2 * y, N2)])
    commitments = [gmpy2.mpz(1), gmpy2.mpz(1)]
    commitments[hashed] = gmpy2.powmod((c**4, V)[hashed], r, N2)
    challenge = false._challenge(false._seed(), MODULUS.pack(commitments))
    z = r + int.from_bytes(challenge, "little") * (y, X)[hashed]
    proof = challenge + z.to_bytes(proof_bytes(X_BITS) - 16, "little")
    assert not false.holds(proof)


def nonce_of(proof: bytes, x: int = X) -> int:
    """Return r = z − e x, for a verifier who knows x."""
    return int.from_bytes(proof[16:], "little") - int.from_bytes(proof[:16], "little") * x


def test_nonce_is_fresh_and_hides_the_exponent(monkeypatch: pytest.MonkeyPatch) -> None:
    """r has 128 bits more than e x, so that z = r + e x reveals nothing of x."""
    statement, stream = statement_of(2), Stream("nonces")
    made = [statement.prove(X, X_BITS, stream) for _ in range(20)]
    assert len({proof[:16] for proof in made}) == 20
    nonces = [nonce_of(proof) for proof in made]
    assert max(r.bit_length() for r in nonces) in range(X_BITS + 250, X_BITS + 257)
    x = (1 << X_BITS) - 1
    monkeypatch.setattr(proofs, "Hedged", lambda *_: lambda size: b"\xff" * size)
    largest = statement_of(1, x).prove(x, X_BITS, stream)
    assert len(largest) == len(made[0]) == proof_bytes(X_BITS)


def test_check45_repeated_entropy_proves_two_batches_with_two_nonces() -> None:
    """With one r for both, z - z' = (e - e') x would reveal the share x."""
    made = [statement_of(n).prove(X, X_BITS, Stream("repeated")) for n in (1, 2)]
    (e, z), (f, y) = (
        (int.from_bytes(proof[:16], "little"), int.from_bytes(proof[16:], "little"))
        for proof in made
    )
    assert e != f
    assert divmod(z - y, e - f) != (X, 0)
    assert nonce_of(made[0]) != nonce_of(made[1])
    assert made[0] == statement_of(1).prove(X, X_BITS, Stream("repeated"))


def test_check45_known_entropy_does_not_give_the_nonce() -> None:
    """Without the share, the entropy and the statement do not determine r."""
    shares = [X, X + 1]
    made = [statement_of(1, x).prove(x, X_BITS, lambda size: bytes(size)) for x in shares]
    same = replace(statement_of(1), context=b"context")
    again = [same.prove(x, X_BITS, lambda size: bytes(size)) for x in shares]
    assert len({nonce_of(p, x) for p, x in zip(made + again, shares * 2, strict=True)}) == 3


@examples(25)
@given(st.integers(0, 80), st.integers())
def test_product_of_powers_equals_single_powers(count: int, seed: int) -> None:
    values = [gmpy2.powmod(3 + j, 5 + seed % 97, N2) for j in range(count)]
    exponents = proofs._coefficients(Stream(str(seed))(32), count)
    expected = gmpy2.mpz(1)
    for x, a in zip(values, exponents, strict=True):
        expected = expected * gmpy2.powmod(x, a, N2) % N2
    assert proofs._product_of_powers(values, exponents, N2) == expected


def test_coefficients_are_long_different_and_of_the_statement() -> None:
    coefficients = proofs._coefficients(b"seed", 200)
    assert coefficients[0] == 1
    assert len(set(coefficients)) == 200
    assert all(a < 1 << 128 for a in coefficients)
    assert sum(a.bit_length() for a in coefficients[1:]) > 199 * 126
    assert sum(a & 1 for a in coefficients[1:]) in range(70, 130)
    assert not set(coefficients[1:]) & set(proofs._coefficients(b"sees", 200))
