/* The compiled core: Python-free C, one file per subject, called from _kernels.pyx.
 *
 * Meaning, ranges and results are specified by reference*.py; nothing here repeats a check of
 * the caller. `n`, `d` count elements, never bytes.
 */
#ifndef SECAGG_KERNELS_H
#define SECAGG_KERNELS_H

#include <stddef.h>
#include <stdint.h>

/* A bit that depends on secrets and may become known, for the reason beside it. The checker of
 * constant time, tests/constant_time/, follows secrets up to here. */
#ifndef SECAGG_PUBLIC
#define SECAGG_PUBLIC(bit) (bit)
#endif

/* masks.c: overwrite secrets in a way the compiler may not leave out. */
void secagg_wipe(void *secret, size_t bytes);
/* The same for the frames of functions that have returned, 16 KiB: what they spilled. */
__attribute__((noinline)) void secagg_wipe_below(void);

/* m61.c: GF(p), p = 2^61 - 1, canonical elements in and out; matrices are row-major. */
void secagg_m61_add(uint64_t *out, const uint64_t *a, const uint64_t *b, size_t n);
void secagg_m61_sub(uint64_t *out, const uint64_t *a, const uint64_t *b, size_t n);
void secagg_m61_mul(uint64_t *out, const uint64_t *a, const uint64_t *b, size_t n);
uint64_t secagg_m61_dot(const uint64_t *a, const uint64_t *b, size_t n);
/* 0, or -1 when an element is 0 mod p; `out` is not `a`. */
int secagg_m61_inv(uint64_t *out, const uint64_t *a, size_t n);
void secagg_m61_matmul(uint64_t *out, const uint64_t *a, const uint64_t *b, size_t n, size_t k,
                       size_t m);
void secagg_m61_poly_eval(uint64_t *out, const uint64_t *coeffs, const uint64_t *xs, size_t t,
                          size_t m, size_t n);
/* 0, or -1 when a point is 0 or occurs twice; `scratch` holds t elements. */
int secagg_m61_lagrange_at_zero(uint64_t *out, uint64_t *scratch, const uint64_t *xs, size_t t);
/* Rows of the wrong values of a word: their number, or -1 for more than (n - t) / 2. dual: u_i with
 * Σ u_i f(x_i) = 0 for deg f < n - 1; rows: n, scratch: n + 4 (n - t + 1), 1 <= t <= n. */
long secagg_m61_errors(uint64_t *rows, uint64_t *scratch, const uint64_t *xs,
                       const uint64_t *dual, const uint64_t *word, size_t n, size_t t);

/* prime.c: GF(p), p an odd prime below 2^63; as in m61.c. One row per implementation, best first,
 * NULL name at the end. */
typedef struct {
    const char *name;
    int (*supported)(void);
    void (*poly_eval)(uint64_t *out, const uint64_t *coeffs, const uint64_t *xs, size_t t, size_t m,
                      size_t n, uint64_t p);
} secagg_prime_tier;

extern const secagg_prime_tier secagg_prime_tiers[];

void secagg_prime_matmul(uint64_t *out, const uint64_t *a, const uint64_t *b, size_t n, size_t k,
                         size_t m, uint64_t p);
/* 0, or -1 when a point is 0 or occurs twice; `scratch` holds 2 t elements. */
int secagg_prime_lagrange_at_zero(uint64_t *out, uint64_t *scratch, const uint64_t *xs, size_t t,
                                  uint64_t p);

/* The widest instructions that a kernel may use, where the CPU has them. */
enum { SECAGG_UP_TO_PLAIN, SECAGG_UP_TO_AVX2, SECAGG_UP_TO_AVX512 };

/* fixedpoint.c: R is passed as R - 1, so that 2^64 fits. Elements and weight are secret. */
typedef struct {
    size_t width; /* bytes of an element: 8 of a double, 4 of a float */
    int widest;
    double clip, scale;
    int64_t weight;
    uint64_t largest;       /* R - 1 */
    const uint64_t *random; /* NULL: round to nearest */
} secagg_encoding;

/* The number of clipped elements; *finite is 0 if one is inf or NaN, else 1. */
size_t secagg_encode32(uint32_t *out, const void *x, size_t n, const secagg_encoding *how,
                       int *finite);
size_t secagg_encode64(uint64_t *out, const void *x, size_t n, const secagg_encoding *how,
                       int *finite);
/* The first element that is inf or NaN, or n. */
size_t secagg_first_not_finite(const void *x, size_t n, size_t width);
void secagg_decode32(double *out, const uint32_t *values, size_t n, uint64_t largest,
                     double inverse_scale);
void secagg_decode64(double *out, const uint64_t *values, size_t n, uint64_t largest,
                     double inverse_scale);

/* bits.c: `packed` has ceil(n bits / 8) bytes. unpack returns -1 when a padding bit is set. */
void secagg_pack32(uint8_t *packed, const uint32_t *values, size_t n, unsigned bits, int widest);
void secagg_pack64(uint8_t *packed, const uint64_t *values, size_t n, unsigned bits, int widest);
int secagg_unpack32(uint32_t *values, const uint8_t *packed, size_t n, unsigned bits);
int secagg_unpack64(uint64_t *values, const uint8_t *packed, size_t n, unsigned bits);

/* gaussian.c: the samples that the m <= 2^16 words suffice for, at most d, and the words that they
 * took; p is 256 sigma, 1 <= p <= 2^48. Not constant-time. */
enum { SECAGG_SIGMA_STEP = 256 };
size_t secagg_discrete_gaussian(int64_t *out, size_t d, const uint64_t *words, size_t m,
                                uint64_t p, size_t *used);

/* shares.c: likewise, in constant time but for the number of samples. */
typedef struct {
    const uint64_t *table; /* `entries` numbers of 127 bits, the high word first */
    size_t entries;
    uint64_t k, scale;
    unsigned shift;
} secagg_share_law;
size_t secagg_gaussian_shares(int64_t *out, size_t d, const uint64_t *words, size_t m,
                              const secagg_share_law *law, size_t *used);

/* rotation.c: n <= size elements of `width` bytes, bounded; the rest are zeros. The sum of their
 * squares; finite: 0 at inf or NaN, else 1. n is a power of two in `rotate`; bit i % 64 of
 * signs[i / 64] is the sign of element i. */
double secagg_widen(double *out, size_t size, const void *x, size_t n, size_t width, int *finite);
void secagg_rotate(double *values, size_t n, const uint64_t *signs, int inverse);

/* gcm_aesni.c: n rows of each; keys of 32 bytes, a nonce of 12, tags of 16 behind the sealed texts,
 * which have less than 2^31 bytes. Call them only if secagg_gcm_supported() is 1 and not 0. */
int secagg_gcm_supported(void);
void secagg_gcm_seal(uint8_t *out, const uint8_t *keys, const uint8_t *nonce, const uint8_t *aads,
                     size_t aad_bytes, const uint8_t *texts, size_t text_bytes, size_t n);
/* The rows that were opened, up to the first one that is not authentic. */
size_t secagg_gcm_open(uint8_t *out, const uint8_t *keys, const uint8_t *nonce, const uint8_t *aads,
                       size_t aad_bytes, const uint8_t *sealed, size_t text_bytes, size_t n);

/* hkdf.c: n rows of each; 32 bytes of every digest. `length` <= 255 * 32 bytes of every result of
 * HKDF, a salt of at most 64. */
void secagg_sha256(uint8_t *out, const uint8_t *rows, size_t row_bytes, size_t n, int portable);
void secagg_hkdf(uint8_t *out, size_t length, const uint8_t *secrets, size_t secret_bytes,
                 const uint8_t *infos, size_t info_bytes, size_t n, const uint8_t *salt,
                 size_t salt_bytes, int portable);

/* x25519_ifma.c: 32-byte rows; `step` is 32, or 0 to use one scalar with all n points. For
 * revealed scalars only. Call it only if secagg_x25519_supported() is 1 and not 0. */
int secagg_x25519_supported(void);
void secagg_x25519(uint8_t *out, const uint8_t *scalars, size_t step, const uint8_t *points,
                   size_t n);

#endif
