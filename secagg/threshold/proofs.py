"""Proofs by a trustee that all the trustee's partial decryptions use the exponent of the share.

The statement is v_i = v^x and d_j² = (c_j⁴)^x for one secret x and every j. The c_j are
ciphertexts, the d_j their partial decryptions, and v and v_i are public. The proof is Chaum and
Pedersen's (Crypto 1992), in a group of an order that the prover need not know (Shoup, Eurocrypt
2000, §2.2; Damgård and Jurik, PKC 2001, §4.1). SHA-256 makes the proof non-interactive (Fiat
and Shamir, Crypto 1986).

One proof covers all c_j. The proof is about u = ∏ (c_j⁴)^a_j and w = ∏ (d_j²)^a_j. The
exponents a_j have 128 bits and are hashed from all c_j and d_j (Bellare, Garay and Rabin,
Eurocrypt 1998, §3; Aditya et al., ACNS 2004). This is sound because fourth powers and squares
lie in the group of squares of Z*_{n²}. The group is cyclic of order p q p' q' for
n = (2p' + 1)(2q' + 1). If some δ_j = d_j² / (c_j⁴)^x is not 1, then p, q, p' or q' divides the
order of δ_j. Each of these primes is far above 2^128. So at most one of the 2^128 values of a_j
makes ∏ δ_j^a_j equal to 1. Without the squares, δ_j could have order 2 and pass for every even
a_j. The proof does not determine the sign of d_j, nor any other factor of d_j that is a square
root of 1. So only the square of d_j may be used.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from secagg._hedging import Hedged
from secagg.encoding import Entropy
from secagg.paillier.gmp import gmpy2
from secagg.paillier.modular import Batch, Modulus

_CHALLENGE_BYTES = 16
_CHALLENGE_BITS = 8 * _CHALLENGE_BYTES
_HIDING_BITS = 128
"""Extra bits of the nonce; the response is within 2^−128 of a distribution without x."""


@dataclass(frozen=True, eq=False)
class Statement:
    """Statement that v_i = v^x and d_j² = (c_j⁴)^x for one x and every j."""

    modulus: Modulus  # n²
    base: int  # v, a generator of the squares of Z*_{n²}
    image: int  # v_i
    inputs: Batch  # c_j, all in Z*_{n²}
    outputs: Batch  # d_j, all in Z*_{n²}
    context: bytes  # identifier of key and trustee; a proof is valid for this context only

    def prove(self, x: int, x_bits: int, entropy: Entropy) -> bytes:
        """Return a proof of the statement for the secret x, 0 ≤ x < 2^x_bits.

        The proof is the challenge e, 16 bytes, and the response z = r + e x in fixed width,
        both little-endian. The verifier computes the commitments from them.
        """
        seed = self._seed()
        u = self._combined(self.inputs, 4, seed)
        # one r for two statements would reveal x, so r is hedged with both (RFC 8937)
        secret = int(x).to_bytes(-(-x_bits // 8), "little")
        hedged = Hedged(entropy, secret, b"secagg equality nonce v1" + seed)
        r = _number(hedged(_nonce_bytes(x_bits)))
        commitments = self.modulus.power(self.modulus.pack([u, self.base]), r)
        challenge = self._challenge(seed, commitments)
        z = int(r + _number(challenge) * x)
        return challenge + z.to_bytes(_nonce_bytes(x_bits) + 1, "little")

    def holds(self, proof: bytes) -> bool:
        """Return whether `proof` is a valid proof of this statement."""
        challenge, response = proof[:_CHALLENGE_BYTES], proof[_CHALLENGE_BYTES:]
        seed, square = self._seed(), self.modulus.value
        u = self._combined(self.inputs, 4, seed)
        w = self._combined(self.outputs, 2, seed)
        powers = self.modulus.power(self.modulus.pack([u, self.base]), _number(response))
        back = [gmpy2.powmod(y, -_number(challenge), square) for y in (w, self.image)]
        commitments = self.modulus.multiply(powers, self.modulus.pack(back))
        return self._challenge(seed, commitments) == challenge

    def _seed(self) -> bytes:
        """Return a SHA-256 of the whole statement, with the lengths of the parts."""
        inputs, outputs = self.modulus.wrap(self.inputs), self.modulus.wrap(self.outputs)
        # without the lengths, bytes could move between parts under one hash
        sizes = b"".join(len(x).to_bytes(8, "little") for x in (self.context, inputs, outputs))
        public = self.modulus.wrap(self.modulus.pack([self.base, self.image]))
        label = b"secagg equality statement v1"
        return hashlib.sha256(label + sizes + self.context + public + inputs + outputs).digest()

    def _challenge(self, seed: bytes, commitments: Batch) -> bytes:
        data = b"secagg equality challenge v1" + seed + self.modulus.wrap(commitments)
        return hashlib.sha256(data).digest()[:_CHALLENGE_BYTES]

    def _combined(self, batch: Batch, power: int, seed: bytes) -> int:
        """Return ∏ (x_j^power)^a_j."""
        values, square = self.modulus.unpack(batch), self.modulus.value
        product = _product_of_powers(values, _coefficients(seed, len(values)), square)
        return int(gmpy2.powmod(product, power, square))


def proof_bytes(x_bits: int) -> int:
    """Return the length in bytes of a proof for x below 2^x_bits."""
    return _CHALLENGE_BYTES + _nonce_bytes(x_bits) + 1


def _nonce_bytes(x_bits: int) -> int:
    return -(-(x_bits + _CHALLENGE_BITS + _HIDING_BITS) // 8)


def _number(data: bytes) -> int:
    return int.from_bytes(data, "little")


def _coefficients(seed: bytes, count: int) -> list[int]:
    """Return the exponents a_j; the first is 1, so a single c_j has the usual proof."""
    label = b"secagg equality coefficient v1" + seed
    hashed = (hashlib.sha256(label + j.to_bytes(8, "little")) for j in range(1, count))
    return [1, *(_number(h.digest()[:_CHALLENGE_BYTES]) for h in hashed)][:count]


def _product_of_powers(values: Sequence[int], exponents: Sequence[int], modulus: int) -> int:
    """Return ∏ x_j^a_j, by digits of w bits and a bucket for each digit (Pippenger 1976).

    Costs are 128 / w multiplications for each value and 2^w · 256 / w in all, not 192 for each.
    """
    window = max(1, len(values).bit_length() - 2)
    product = gmpy2.mpz(1)
    for shift in reversed(range(0, _CHALLENGE_BITS, window)):
        buckets = [gmpy2.mpz(1)] * (1 << window)
        for x, a in zip(values, exponents, strict=True):
            digit = a >> shift & (1 << window) - 1
            if digit:
                buckets[digit] = buckets[digit] * x % modulus
        from_here = digits = gmpy2.mpz(1)
        for bucket in reversed(buckets[1:]):  # ∏ bucket_d^d, as the product of all tails
            from_here = from_here * bucket % modulus
            digits = digits * from_here % modulus
        product = gmpy2.powmod(product, 1 << window, modulus) * digits % modulus
    return int(product)
