# The part of _kernels.pyx for AES-GCM: wrapper of src/gcm_aesni.c.

cdef bint has_gcm = secagg_gcm_supported()


def gcm_tiers():
    """Names of the implementations of AES-GCM that this CPU can run, best first."""
    return ("aesni",) if has_gcm else ()


cdef check_messages(
    const uint8_t[:, ::1] keys, const uint8_t[::1] nonce, const uint8_t[:, ::1] aads,
    const uint8_t[:, ::1] texts, const uint8_t[:, ::1] sealed
):
    if not has_gcm:
        raise ValueError("this CPU has no AES-NI or no PCLMULQDQ")
    rows = (keys.shape[0], aads.shape[0], texts.shape[0], sealed.shape[0])
    if len(set(rows)) != 1:
        raise ValueError(f"keys, associated data, texts and sealed texts have {rows} rows")
    widths = (keys.shape[1], nonce.shape[0], sealed.shape[1] - texts.shape[1])
    if widths != (32, 12, 16):
        raise ValueError(f"key, nonce and tag have {widths} bytes, not (32, 12, 16)")
    if sealed.shape[1] >= 2**31:
        raise ValueError(f"sealed texts of {sealed.shape[1]} bytes; at most {2**31 - 1}")


def gcm_seal(
    const uint8_t[:, ::1] keys, const uint8_t[::1] nonce, const uint8_t[:, ::1] aads,
    const uint8_t[:, ::1] texts, uint8_t[:, ::1] out
):
    check_messages(keys, nonce, aads, texts, out)
    with nogil:
        secagg_gcm_seal(
            &out[0, 0], &keys[0, 0], &nonce[0], &aads[0, 0], aads.shape[1], &texts[0, 0],
            texts.shape[1], keys.shape[0]
        )


def gcm_open(
    const uint8_t[:, ::1] keys, const uint8_t[::1] nonce, const uint8_t[:, ::1] aads,
    const uint8_t[:, ::1] sealed, uint8_t[:, ::1] out
):
    cdef size_t opened
    check_messages(keys, nonce, aads, out, sealed)
    with nogil:
        opened = secagg_gcm_open(
            &out[0, 0], &keys[0, 0], &nonce[0], &aads[0, 0], aads.shape[1], &sealed[0, 0],
            out.shape[1], keys.shape[0]
        )
    return opened
