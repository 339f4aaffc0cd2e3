# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, freethreading_compatible=True
"""Wrappers of src/*.c: check shapes and dtypes, release the GIL, compute nothing.

Meaning and ranges are documented in ``reference``, types in ``_kernels.pyi``; the C functions
are declared in ``_kernels.pxd``.
"""

from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from cpython.bytes cimport PyBytes_AsString, PyBytes_FromStringAndSize

from math import ceil

import numpy as np

from secagg._fast.reference_checks import check_law


def mask_tiers():
    """Names of the mask implementations that this CPU can run, best first."""
    names = []
    cdef const secagg_mask_tier *const *tier = secagg_mask_tiers
    while tier[0] != NULL:
        if tier[0].supported():
            names.append((<bytes>tier[0].name).decode())
        tier += 1
    return tuple(names)


cdef class Masks:
    """Masks of a tier."""

    cdef const secagg_mask_tier *tier

    def __init__(self, str tier):
        names = mask_tiers()
        if tier not in names:
            raise ValueError(f"{tier} is not one of {names}")
        cdef const secagg_mask_tier *const *at = secagg_mask_tiers
        while <bytes>at[0].name != tier.encode():
            at += 1
        self.tier = at[0]

    def mask_words(self, acc, keys, negate, start=0):
        self.run(acc, keys, negate, start, 0)

    def mask_mod(self, acc, keys, negate, modulus, start=0):
        if acc.itemsize != 8:
            raise ValueError("masks of another modulus than 2^b need uint64")
        if not 2 <= modulus <= 2**62:
            raise ValueError(f"modulus {modulus} is outside [2, 2^62]")
        self.run(acc, keys, negate, start, modulus)

    cdef run(
        self,
        acc,
        const uint8_t[::1] keys,
        const uint8_t[::1] negate,
        start,
        uint64_t modulus,
    ):
        """Go over acc for every batch of keys; modulus 0 means 2^b."""
        cdef uint32_t[::1] acc32 = None
        cdef uint64_t[::1] acc64 = None
        if acc.itemsize == 4:
            acc32 = acc
        else:
            acc64 = acc
        cdef size_t d = len(acc), k = negate.shape[0], j, count
        if <size_t>keys.shape[0] != 16 * k:
            raise ValueError(f"{keys.shape[0]} bytes of keys for {k} signs")
        for j in range(k):
            if negate[j] > 1:
                raise ValueError("a sign is neither 0 nor 1")
        if not 0 <= start <= 2**60 - d:
            raise ValueError(f"start {start} is outside [0, 2^60 - {d}]")
        if d == 0 or k == 0:
            return
        cdef uint64_t first = start
        cdef secagg_mask_schedule schedules[SECAGG_MASK_BATCH]
        cdef secagg_mask_keys batch
        j = 0
        with nogil:
            while j < k:
                count = min(k - j, <size_t>SECAGG_MASK_BATCH)
                batch = secagg_mask_expand(
                    schedules, &keys[16 * j], &negate[j], count, self.tier
                )
                if modulus != 0:
                    secagg_mask_modulo(&acc64[0], d, first, &batch, modulus, self.tier)
                elif acc32 is not None:
                    secagg_mask_words32(&acc32[0], d, first, &batch, self.tier)
                else:
                    secagg_mask_words64(&acc64[0], d, first, &batch, self.tier)
                j += count
            secagg_wipe(schedules, sizeof(schedules))


cdef check_modulus(modulus, width):
    power_of_two = modulus & (modulus - 1) == 0
    largest = 2 ** (8 * width) if power_of_two else 2**62
    if not 2 <= modulus <= largest or (width == 4 and not power_of_two):
        raise ValueError(f"modulus {modulus} does not fit lanes of {8 * width} bits")


cdef check_same(const uint64_t[::1] a, const uint64_t[::1] b):
    if a.shape[0] != b.shape[0]:
        raise ValueError(f"lengths differ: {a.shape[0]} and {b.shape[0]}")


cdef elementwise(binary kernel, const uint64_t[::1] a, const uint64_t[::1] b):
    check_same(a, b)
    result = np.empty(a.shape[0], np.uint64)
    cdef uint64_t[::1] out = result
    with nogil:
        kernel(&out[0], &a[0], &b[0], out.shape[0])
    return result


def m61_add(a, b):
    return elementwise(secagg_m61_add, a, b)


def m61_sub(a, b):
    return elementwise(secagg_m61_sub, a, b)


def m61_mul(a, b):
    return elementwise(secagg_m61_mul, a, b)


def m61_inv(const uint64_t[::1] a):
    result = np.empty(a.shape[0], np.uint64)
    cdef uint64_t[::1] out = result
    cdef int status
    with nogil:
        status = secagg_m61_inv(&out[0], &a[0], out.shape[0])
    if status != 0:
        raise ZeroDivisionError("0 has no inverse in GF(2^61 - 1)")
    return result


def m61_dot(const uint64_t[::1] a, const uint64_t[::1] b):
    check_same(a, b)
    cdef uint64_t total
    with nogil:
        total = secagg_m61_dot(&a[0], &b[0], a.shape[0])
    return total


def m61_matmul(const uint64_t[:, ::1] a, const uint64_t[:, ::1] b):
    cdef size_t n = a.shape[0], k = a.shape[1], m = b.shape[1]
    if <size_t>b.shape[0] != k:
        raise ValueError(f"cannot multiply shapes {(n, k)} and {(b.shape[0], m)}")
    result = np.empty((n, m), np.uint64)
    cdef uint64_t[:, ::1] out = result
    with nogil:
        secagg_m61_matmul(&out[0, 0], &a[0, 0], &b[0, 0], n, k, m)
    return result


def m61_poly_eval(const uint64_t[:, ::1] coeffs, const uint64_t[::1] xs):
    cdef size_t t = coeffs.shape[0], m = coeffs.shape[1], n = xs.shape[0]
    result = np.empty((n, m), np.uint64)
    cdef uint64_t[:, ::1] out = result
    with nogil:
        secagg_m61_poly_eval(&out[0, 0], &coeffs[0, 0], &xs[0], t, m, n)
    return result


def m61_lagrange_at_zero(const uint64_t[::1] xs):
    cdef size_t t = xs.shape[0]
    result = np.empty(t, np.uint64)
    cdef uint64_t[::1] out = result, scratch = np.empty(t, np.uint64)
    cdef int status
    with nogil:
        status = secagg_m61_lagrange_at_zero(&out[0], &scratch[0], &xs[0], t)
    if status != 0:
        raise ZeroDivisionError("a point of interpolation is 0 or occurs twice")
    return result


def m61_errors(
    const uint64_t[::1] xs, const uint64_t[::1] dual, const uint64_t[::1] word, size_t t
):
    check_same(xs, dual)
    check_same(xs, word)
    cdef size_t n = xs.shape[0]
    if not 1 <= t <= n:
        raise ValueError(f"{n} values do not determine {t} coefficients, at least 1")
    result = np.empty(n, np.uint64)
    cdef uint64_t[::1] out = result, scratch = np.empty(n + 4 * (n - t + 1), np.uint64)
    cdef long found
    with nogil:
        found = secagg_m61_errors(&out[0], &scratch[0], &xs[0], &dual[0], &word[0], n, t)
    return None if found < 0 else result[:found].astype(np.intp)


def discrete_gaussian(const uint64_t[::1] words, int64_t[::1] out, sigma):
    cdef size_t m = words.shape[0], n = out.shape[0], drawn, used
    if m > 2**16:
        raise ValueError(f"{m} words are more than {2**16}")
    if not 1 <= sigma <= 2**48:
        raise ValueError(f"sigma {sigma} is outside [1, {2**48}]")
    cdef uint64_t p = sigma
    with nogil:
        drawn = secagg_discrete_gaussian(&out[0], n, &words[0], m, p, &used)
    return drawn, used


def gaussian_shares(
    const uint64_t[::1] words, int64_t[::1] out, const uint64_t[:, ::1] table, k, scale, shift
):
    cdef size_t used, drawn, n = out.shape[0], m = words.shape[0]
    cdef secagg_share_law law
    check_law(table.shape[0], table.shape[1], k, scale, shift)
    law.table = &table[0, 0]
    law.entries = table.shape[0]
    law.k, law.scale, law.shift = k, scale, shift
    with nogil:
        drawn = secagg_gaussian_shares(&out[0], n, &words[0], m, &law, &used)
    return drawn, used


include "_gcm.pxi"
include "_hkdf.pxi"
include "_lanes.pxi"
include "_modular.pxi"
include "_prime.pxi"
include "_rotation.pxi"
include "_x25519.pxi"
