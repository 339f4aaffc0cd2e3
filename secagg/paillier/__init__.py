"""Sums of encrypted vectors by Paillier's cryptosystem (Eurocrypt 1999).

Clients encrypt their vectors with a `PublicKey`, an aggregator adds the `EncryptedVector`
objects, and the holder of the `PrivateKey` decrypts the sum. The key holder could also decrypt
a single vector. So the aggregator must not have the private key, and must forward only sums to
the key holder. In `secagg.threshold` no party has the key.
"""

from __future__ import annotations

from secagg._threads import set_threads
from secagg.paillier.ciphertexts import Ciphertexts
from secagg.paillier.generation import Blinding, generate_insecure_keypair, generate_keypair
from secagg.paillier.packing import Packing
from secagg.paillier.private_key import PrivateKey
from secagg.paillier.public_key import PublicKey
from secagg.paillier.vectors import DecryptedSum, EncryptedVector

__all__ = [
    "Blinding",
    "Ciphertexts",
    "DecryptedSum",
    "EncryptedVector",
    "Packing",
    "PrivateKey",
    "PublicKey",
    "generate_insecure_keypair",
    "generate_keypair",
    "set_threads",
]
