"""AES-256-GCM in bulk, over ``cryptography``: the specification of ``src/gcm_aesni.c``.

This code also runs where the kernel cannot.
"""

from __future__ import annotations

from contextlib import suppress

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from numpy.typing import NDArray

from secagg._fast.reference_checks import check_arrays

U8 = NDArray[np.uint8]

_SIZES = (32, 12, 16)  # bytes of a key, the nonce and a tag
_MOST = 2**31 - 1


def gcm_seal(keys: U8, nonce: bytes, aads: U8, texts: U8, out: U8) -> None:
    """Write to `out` each text, encrypted, and the text's tag (NIST SP 800-38D).

    Parameters
    ----------
    keys : uint8[n, 32]
        A key for each message, used for no other message.
    nonce : bytes, 12
        Nonce of all messages.
    aads : uint8[n, any]
        Associated data.
    texts : uint8[n, L]
    out : uint8[n, L + 16], L + 16 < 2^31
        Array that is overwritten; not one of the inputs.

    Raises
    ------
    ValueError
        A shape, dtype or length differs from the above, or an array is not C-contiguous.
    """
    _check(keys, nonce, aads, texts, out)
    made = (
        AESGCM(key.tobytes()).encrypt(nonce, text.tobytes(), aad.tobytes())
        for key, aad, text in zip(keys, aads, texts, strict=True)
    )
    out[:] = np.frombuffer(b"".join(made), np.uint8).reshape(out.shape)


def gcm_open(keys: U8, nonce: bytes, aads: U8, sealed: U8, out: U8) -> int:
    """Write to `out` the texts that `gcm_seal` encrypted, and return their number.

    The number is n, or the first row that is not authentic. From that row on `out` is
    unchanged. Arguments and errors are the same as for `gcm_seal`, with the shapes (n, L + 16)
    for `sealed` and (n, L) for `out`.
    """
    _check(keys, nonce, aads, out, sealed)
    texts = list[bytes]()
    # written only afterwards: `out` must have nothing of a text that is not authentic
    with suppress(InvalidTag):
        for key, aad, box in zip(keys, aads, sealed, strict=True):
            texts.append(AESGCM(key.tobytes()).decrypt(nonce, box.tobytes(), aad.tobytes()))
    opened = len(texts)
    out[:opened] = np.frombuffer(b"".join(texts), np.uint8).reshape(opened, out.shape[1])
    return opened


def _check(keys: U8, nonce: bytes, aads: U8, texts: U8, sealed: U8) -> None:
    check_arrays(np.uint8, 2, keys, aads, texts, sealed)
    rows = (len(keys), len(aads), len(texts), len(sealed))
    if len(set(rows)) != 1:
        raise ValueError(f"keys, associated data, texts and sealed texts have {rows} rows")
    widths = (keys.shape[1], len(nonce), sealed.shape[1] - texts.shape[1])
    if widths != _SIZES:
        raise ValueError(f"key, nonce and tag have {widths} bytes, not {_SIZES}")
    if sealed.shape[1] > _MOST:
        raise ValueError(f"sealed texts of {sealed.shape[1]} bytes; at most {_MOST}")
