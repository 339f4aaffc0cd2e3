# The part of _kernels.pyx for prime fields other than GF(2^61 - 1): wrappers of src/prime.c.


def prime_tiers():
    """Names of the implementations of prime fields that this CPU can run, best first."""
    names = []
    cdef const secagg_prime_tier *tier = secagg_prime_tiers
    while tier.name != NULL:
        if tier.supported():
            names.append((<bytes>tier.name).decode())
        tier += 1
    return tuple(names)


cdef uint64_t checked_prime(p) except 0:
    if not 3 <= p < 2**63 or p % 2 == 0:
        raise ValueError(f"modulus {p} is not an odd prime below 2^63")
    return p


cdef class Primes:
    """Prime fields of a tier."""

    cdef const secagg_prime_tier *tier

    def __init__(self, str tier):
        names = prime_tiers()
        if tier not in names:
            raise ValueError(f"{tier} is not one of {names}")
        self.tier = secagg_prime_tiers
        while <bytes>self.tier.name != tier.encode():
            self.tier += 1

    def prime_poly_eval(self, const uint64_t[:, ::1] coeffs, const uint64_t[::1] xs, p):
        cdef uint64_t prime = checked_prime(p)
        cdef size_t t = coeffs.shape[0], m = coeffs.shape[1], n = xs.shape[0]
        result = np.empty((n, m), np.uint64)
        cdef uint64_t[:, ::1] out = result
        with nogil:
            self.tier.poly_eval(&out[0, 0], &coeffs[0, 0], &xs[0], t, m, n, prime)
        return result


def prime_matmul(const uint64_t[:, ::1] a, const uint64_t[:, ::1] b, p):
    cdef uint64_t prime = checked_prime(p)
    cdef size_t n = a.shape[0], k = a.shape[1], m = b.shape[1]
    if <size_t>b.shape[0] != k:
        raise ValueError(f"cannot multiply shapes {(n, k)} and {(b.shape[0], m)}")
    result = np.empty((n, m), np.uint64)
    cdef uint64_t[:, ::1] out = result
    with nogil:
        secagg_prime_matmul(&out[0, 0], &a[0, 0], &b[0, 0], n, k, m, prime)
    return result


def prime_lagrange_at_zero(const uint64_t[::1] xs, p):
    cdef uint64_t prime = checked_prime(p)
    cdef size_t t = xs.shape[0]
    result = np.empty(t, np.uint64)
    cdef uint64_t[::1] out = result, scratch = np.empty(2 * t, np.uint64)
    cdef int status
    with nogil:
        status = secagg_prime_lagrange_at_zero(&out[0], &scratch[0], &xs[0], t, prime)
    if status != 0:
        raise ZeroDivisionError("a point of interpolation is 0 or occurs twice")
    return result
