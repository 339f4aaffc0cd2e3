# The part of _kernels.pyx for SHA-256 and HKDF: wrappers of src/hkdf.c.


def sha256(rows, out):
    sha256_with(rows, out, False)


def sha256_portable(rows, out):
    sha256_with(rows, out, True)


cdef sha256_with(const uint8_t[:, ::1] rows, uint8_t[:, ::1] out, bint portable):
    cdef size_t n = rows.shape[0]
    if (out.shape[0], out.shape[1]) != (rows.shape[0], 32):
        shapes = (rows.shape[0], rows.shape[1]), (out.shape[0], out.shape[1])
        raise ValueError(f"rows and digests have shapes {shapes}")
    with nogil:
        secagg_sha256(&out[0, 0], &rows[0, 0], rows.shape[1], n, portable)


def hkdf(secrets, salt, infos, out):
    hkdf_with(secrets, salt, infos, out, False)


def hkdf_portable(secrets, salt, infos, out):
    hkdf_with(secrets, salt, infos, out, True)


cdef hkdf_with(
    const uint8_t[:, ::1] secrets,
    const uint8_t[::1] salt,
    const uint8_t[:, ::1] infos,
    uint8_t[:, ::1] out,
    bint portable,
):
    cdef size_t n = secrets.shape[0]
    if infos.shape[0] != secrets.shape[0] or out.shape[0] != secrets.shape[0]:
        rows = (secrets.shape[0], infos.shape[0], out.shape[0])
        raise ValueError(f"secrets, infos and results have {rows} rows")
    if salt.shape[0] > 64:
        raise ValueError(f"a salt of {salt.shape[0]} bytes; at most 64")
    if out.shape[1] > 255 * 32:
        raise ValueError(f"results of {out.shape[1]} bytes; at most {255 * 32}")
    with nogil:
        secagg_hkdf(
            &out[0, 0], out.shape[1], &secrets[0, 0], secrets.shape[1], &infos[0, 0],
            infos.shape[1], n, &salt[0], salt.shape[0], portable
        )
