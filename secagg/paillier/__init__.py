"""Paillier's cryptosystem (Eurocrypt 1999) for sums of vectors.

The holder of the private key can read every client's vector. It learns only the sum if it sees
nothing but sums. So the aggregator must not have the key, and must not forward single vectors
to the key holder. In `secagg.threshold` no party has the key.
"""

from __future__ import annotations

from secagg.paillier.ciphertexts import Ciphertexts
from secagg.paillier.generation import Blinding, generate_insecure_keypair, generate_keypair
from secagg.paillier.packing import Packing
from secagg.paillier.private_key import PrivateKey
from secagg.paillier.public_key import PublicKey
from secagg.paillier.threads import set_threads
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
