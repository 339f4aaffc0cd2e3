# Functions of src/kernels.h, src/masks.h and src/modular.h; the headers document them.

from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

cdef extern from "kernels.h" nogil:
    enum:
        SECAGG_UP_TO_PLAIN
        SECAGG_UP_TO_AVX2
        SECAGG_UP_TO_AVX512

    ctypedef struct secagg_encoding:
        size_t width
        int widest
        double clip
        double scale
        int64_t weight
        uint64_t largest
        const uint64_t *random

    void secagg_wipe(void *, size_t)
    void secagg_m61_add(uint64_t *, const uint64_t *, const uint64_t *, size_t)
    void secagg_m61_sub(uint64_t *, const uint64_t *, const uint64_t *, size_t)
    void secagg_m61_mul(uint64_t *, const uint64_t *, const uint64_t *, size_t)
    uint64_t secagg_m61_dot(const uint64_t *, const uint64_t *, size_t)
    int secagg_m61_inv(uint64_t *, const uint64_t *, size_t)
    void secagg_m61_matmul(
        uint64_t *, const uint64_t *, const uint64_t *, size_t, size_t, size_t
    )
    void secagg_m61_poly_eval(
        uint64_t *, const uint64_t *, const uint64_t *, size_t, size_t, size_t
    )
    int secagg_m61_lagrange_at_zero(uint64_t *, uint64_t *, const uint64_t *, size_t)
    long secagg_m61_errors(
        uint64_t *, uint64_t *, const uint64_t *, const uint64_t *, const uint64_t *,
        size_t, size_t
    )
    ctypedef struct secagg_prime_tier:
        const char *name
        int (*supported)() nogil
        void (*poly_eval)(
            uint64_t *, const uint64_t *, const uint64_t *, size_t, size_t, size_t, uint64_t
        ) nogil

    const secagg_prime_tier *secagg_prime_tiers
    void secagg_prime_matmul(
        uint64_t *, const uint64_t *, const uint64_t *, size_t, size_t, size_t, uint64_t
    )
    int secagg_prime_lagrange_at_zero(
        uint64_t *, uint64_t *, const uint64_t *, size_t, uint64_t
    )
    size_t secagg_encode32(
        uint32_t *, const void *, size_t, const secagg_encoding *, int *
    )
    size_t secagg_encode64(
        uint64_t *, const void *, size_t, const secagg_encoding *, int *
    )
    size_t secagg_first_not_finite(const void *, size_t, size_t)
    void secagg_decode32(double *, const uint32_t *, size_t, uint64_t, double)
    void secagg_decode64(double *, const uint64_t *, size_t, uint64_t, double)
    void secagg_pack32(uint8_t *, const uint32_t *, size_t, unsigned, int)
    void secagg_pack64(uint8_t *, const uint64_t *, size_t, unsigned, int)
    int secagg_unpack32(uint32_t *, const uint8_t *, size_t, unsigned)
    int secagg_unpack64(uint64_t *, const uint8_t *, size_t, unsigned)
    size_t secagg_discrete_gaussian(
        int64_t *, size_t, const uint64_t *, size_t, uint64_t, size_t *
    )
    ctypedef struct secagg_share_law:
        const uint64_t *table
        size_t entries
        uint64_t k
        uint64_t scale
        unsigned shift

    size_t secagg_gaussian_shares(
        int64_t *, size_t, const uint64_t *, size_t, const secagg_share_law *, size_t *
    )
    double secagg_widen(double *, size_t, const void *, size_t, size_t, int *)
    void secagg_rotate(double *, size_t, const uint64_t *, int)
    int secagg_gcm_supported()
    void secagg_gcm_seal(
        uint8_t *, const uint8_t *, const uint8_t *, const uint8_t *, size_t,
        const uint8_t *, size_t, size_t
    )
    size_t secagg_gcm_open(
        uint8_t *, const uint8_t *, const uint8_t *, const uint8_t *, size_t,
        const uint8_t *, size_t, size_t
    )
    void secagg_sha256(uint8_t *, const uint8_t *, size_t, size_t, int)
    void secagg_hkdf(
        uint8_t *, size_t, const uint8_t *, size_t, const uint8_t *, size_t, size_t,
        const uint8_t *, size_t, int
    )
    int secagg_x25519_supported()
    void secagg_x25519(uint8_t *, const uint8_t *, size_t, const uint8_t *, size_t)

cdef extern from "masks.h" nogil:
    enum:
        SECAGG_MASK_BATCH

    ctypedef struct secagg_mask_schedule:
        pass

    ctypedef struct secagg_mask_keys:
        pass

    ctypedef struct secagg_mask_tier:
        const char *name
        int (*supported)() nogil

    const secagg_mask_tier *const *secagg_mask_tiers
    secagg_mask_keys secagg_mask_expand(
        secagg_mask_schedule *, const uint8_t *, const uint8_t *, size_t,
        const secagg_mask_tier *
    )
    void secagg_mask_words32(
        uint32_t *, size_t, uint64_t, const secagg_mask_keys *, const secagg_mask_tier *
    )
    void secagg_mask_words64(
        uint64_t *, size_t, uint64_t, const secagg_mask_keys *, const secagg_mask_tier *
    )
    void secagg_mask_modulo(
        uint64_t *, size_t, uint64_t, const secagg_mask_keys *, uint64_t,
        const secagg_mask_tier *
    )

cdef extern from "modular.h" nogil:
    enum:
        SECAGG_MODULAR_LIMBS

    ctypedef struct secagg_modular_tier:
        const char *name
        int (*supported)() nogil
        size_t digit_bits
        size_t (*digits)(size_t) nogil

    ctypedef struct secagg_modulus:
        const secagg_modular_tier *tier
        const uint64_t *n
        const uint64_t *square
        const uint64_t *root
        size_t limbs
        size_t root_limbs

    const secagg_modular_tier *const *secagg_modular_tiers
    int secagg_modular_multiply(
        uint64_t *, const uint64_t *, const uint64_t *, size_t, size_t, const secagg_modulus *
    )
    int secagg_modular_power(
        uint64_t *, const uint64_t *, size_t, const uint64_t *, size_t, const secagg_modulus *
    )
    int secagg_modular_table(
        uint64_t *, const uint64_t *, size_t, unsigned, const secagg_modulus *
    )
    int secagg_modular_power_fixed(
        uint64_t *, const uint64_t *, const uint64_t *, size_t, size_t, size_t, unsigned,
        const secagg_modulus *
    )


ctypedef void (*binary)(uint64_t *, const uint64_t *, const uint64_t *, size_t) noexcept nogil
