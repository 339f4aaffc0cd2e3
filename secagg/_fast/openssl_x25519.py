"""X25519 through ``cryptography``, point by point, for machines where the kernel cannot run."""

from __future__ import annotations

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

from secagg._fast.reference_x25519 import U8, check_rows


def x25519(scalars: U8, points: U8, out: U8) -> None:
    """Compute as the function in ``reference_x25519``, with the same arguments and errors."""
    check_rows(scalars, points, out)
    keys = [X25519PrivateKey.from_private_bytes(row.tobytes()) for row in scalars]
    for i, point in enumerate(points):
        peer = X25519PublicKey.from_public_bytes(point.tobytes())
        try:
            out[i] = np.frombuffer(keys[i % len(keys)].exchange(peer), np.uint8)
        except ValueError:  # OpenSSL gives no result for a result of zero
            out[i] = 0
