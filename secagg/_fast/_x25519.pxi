# The part of _kernels.pyx for X25519: wrapper of src/x25519_ifma.c.

cdef bint has_x25519 = secagg_x25519_supported()


def x25519_tiers():
    """Names of the implementations of X25519 that this CPU can run, best first."""
    return ("ifma",) if has_x25519 else ()


cdef check_rows(const uint8_t[:, ::1] rows, Py_ssize_t count):
    if rows.shape[0] != count or rows.shape[1] != 32:
        shape = (rows.shape[0], rows.shape[1])
        raise ValueError(f"an array of shape {shape} in place of {(count, 32)}")


def x25519(
    const uint8_t[:, ::1] scalars, const uint8_t[:, ::1] points, uint8_t[:, ::1] out
):
    cdef size_t n = points.shape[0], step = 0 if scalars.shape[0] == 1 else 32
    if not has_x25519:
        raise ValueError("this CPU has no AVX-512 IFMA")
    check_rows(points, points.shape[0])
    check_rows(out, points.shape[0])
    check_rows(scalars, 1 if scalars.shape[0] == 1 else points.shape[0])
    with nogil:
        secagg_x25519(&out[0, 0], &scalars[0, 0], step, &points[0, 0], n)
