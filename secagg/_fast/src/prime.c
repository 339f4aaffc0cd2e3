/* GF(p), p an odd prime below 2^63; specified by reference_prime.py.
 *
 * Horner's rule multiplies by points that are known before: Shoup's quotients (Harvey, "Faster
 * arithmetic for number-theoretic transforms", 2014), in 64 bits or in two digits of 32 bits with
 * AVX-512 IFMA. All other products are Montgomery's (1985), with R = 2^64. Points and p are
 * public; nothing branches on the value of an element.
 */
#include "cpu.h"
#include "kernels.h"

typedef unsigned __int128 u128;

enum {
    LANES = 8,  /* independent chains that hide the latency of a multiplication */
    COLUMNS = 4 /* of a matrix product at a time */
};

/* [0, 2p) to [0, p). */
static inline uint64_t subtract_p(uint64_t a, uint64_t p)
{
    const uint64_t less = a - p;
    return less + (p & (0 - (less >> 63)));
}

/* ⌊x 2^64 / p⌋ of a point x < p. */
static inline uint64_t quotient(uint64_t x, uint64_t p) { return (uint64_t)(((u128)x << 64) / p); }

/* v x mod p, in [0, p), for any v: v x - ⌊v x' / 2^64⌋ p is in [0, 2p). */
static inline uint64_t mul_known(uint64_t v, uint64_t x, uint64_t quotient, uint64_t p)
{
    return subtract_p(v * x - (uint64_t)(((u128)v * quotient) >> 64) * p, p);
}

/* Horner's rule for one polynomial at up to LANES points. */
static inline __attribute__((always_inline)) void
horner(uint64_t *out, const uint64_t *coeffs, const uint64_t *xs, const uint64_t *quotients,
       size_t t, size_t m, uint64_t p, int count)
{
    uint64_t value[LANES] = {0};
    for (size_t j = t; j-- > 0;) {
        const uint64_t coefficient = coeffs[j * m];
        for (int i = 0; i < count; i++) /* below 2p, and so below 2^64 */
            value[i] = mul_known(value[i], xs[i], quotients[i], p) + coefficient;
    }
    for (int i = 0; i < count; i++)
        out[(size_t)i * m] = subtract_p(value[i], p);
}

static void poly_eval_portable(uint64_t *out, const uint64_t *coeffs, const uint64_t *xs, size_t t,
                               size_t m, size_t n, uint64_t p)
{
    for (size_t i = 0; i < n; i += LANES) {
        const size_t count = n - i < LANES ? n - i : LANES;
        uint64_t quotients[LANES];
        for (size_t l = 0; l < count; l++)
            quotients[l] = quotient(xs[i + l], p);
        if (count == LANES)
            for (size_t c = 0; c < m; c++)
                horner(out + i * m + c, coeffs + c, xs + i, quotients, t, m, p, LANES);
        else
            for (size_t l = 0; l < count; l++)
                for (size_t c = 0; c < m; c++)
                    horner(out + (i + l) * m + c, coeffs + c, xs + i + l, quotients + l, t, m, p,
                           1);
    }
}

static int always(void) { return 1; }

#if defined(SECAGG_X86_64)
#include <immintrin.h>

#define IFMA __attribute__((target("avx512f,avx512dq,avx512ifma")))
#define IFMA_INLINE static inline __attribute__((always_inline, target("avx512f,avx512dq,avx512ifma")))

enum { VECTORS = 4, BLOCK = 8 * VECTORS }; /* points at a time */

/* y = x and y = x 2^32 mod p of a point x, each with ⌊2^52 y / p⌋, for a block of points. */
typedef struct {
    __m512i low[VECTORS], high[VECTORS], low_quotient[VECTORS], high_quotient[VECTORS];
} known_points;

static int has_ifma(void) { return secagg_cpu_has(SECAGG_AVX512 | SECAGG_IFMA); }

IFMA static known_points prepare(const uint64_t *xs, size_t count, uint64_t p)
{
    uint64_t low[BLOCK] = {0}, high[BLOCK] = {0}, low_quotient[BLOCK] = {0}, high_quotient[BLOCK] = {0};
    for (size_t i = 0; i < count; i++) {
        const uint64_t whole = quotient(xs[i], p);
        low[i] = xs[i];
        low_quotient[i] = whole >> 12;
        high[i] = mul_known((uint64_t)1 << 32, xs[i], whole, p);
        high_quotient[i] = quotient(high[i], p) >> 12;
    }
    known_points known;
    for (int k = 0; k < VECTORS; k++) {
        known.low[k] = _mm512_loadu_si512(low + 8 * k);
        known.high[k] = _mm512_loadu_si512(high + 8 * k);
        known.low_quotient[k] = _mm512_loadu_si512(low_quotient + 8 * k);
        known.high_quotient[k] = _mm512_loadu_si512(high_quotient + 8 * k);
    }
    return known;
}

/* [0, 2p) to [0, p). */
IFMA_INLINE __m512i subtract_p8(__m512i a, __m512i p)
{
    return _mm512_min_epu64(a, _mm512_sub_epi64(a, p));
}

/* v x + c, congruent mod p and below 2^64, of a block of values v = v0 + 2^32 v1 below 2^64.
 * v0 X0 + v1 X1 - q p ≡ v x, where q adds up the quotients of both products: each is rounded down
 * once by the 2^52 and once by less than 2^-20. So the rest is below 2.01 p, which a coefficient
 * makes 3.01 p, which fits for p < 2^62. A larger p takes the rounding of their sum, and one p off. */
IFMA_INLINE __m512i step(__m512i v, __m512i c, __m512i p, const known_points *x, int k, int large)
{
    const __m512i zero = _mm512_setzero_si512();
    const __m512i v0 = _mm512_and_si512(v, _mm512_set1_epi64(0xffffffff));
    const __m512i v1 = _mm512_srli_epi64(v, 32);
    __m512i q = _mm512_add_epi64(_mm512_madd52hi_epu64(zero, v0, x->low_quotient[k]),
                                 _mm512_madd52hi_epu64(zero, v1, x->high_quotient[k]));
    if (large) {
        __m512i rest = _mm512_madd52lo_epu64(zero, v0, x->low_quotient[k]);
        rest = _mm512_madd52lo_epu64(rest, v1, x->high_quotient[k]);
        q = _mm512_add_epi64(q, _mm512_srli_epi64(rest, 52));
    }
    const __m512i product = _mm512_add_epi64(_mm512_mullo_epi64(v0, x->low[k]),
                                             _mm512_mullo_epi64(v1, x->high[k]));
    __m512i r = _mm512_sub_epi64(product, _mm512_mullo_epi64(q, p));
    if (large)
        r = subtract_p8(r, p);
    return _mm512_add_epi64(r, c);
}

/* Horner's rule for one polynomial at a block of points. */
IFMA_INLINE void horner_block(uint64_t *value, const uint64_t *coeffs, const known_points *known,
                              size_t t, size_t m, uint64_t prime, int large)
{
    const __m512i p = _mm512_set1_epi64((long long)prime);
    const known_points x = *known;
    __m512i v[VECTORS];
    for (int k = 0; k < VECTORS; k++)
        v[k] = _mm512_setzero_si512();
    for (size_t j = t; j-- > 0;) {
        const __m512i c = _mm512_set1_epi64((long long)coeffs[j * m]);
        for (int k = 0; k < VECTORS; k++)
            v[k] = step(v[k], c, p, &x, k, large);
    }
    for (int k = 0; k < VECTORS; k++) {
        if (!large) /* [0, 4p) */
            v[k] = subtract_p8(v[k], _mm512_slli_epi64(p, 1));
        _mm512_storeu_si512(value + 8 * k, subtract_p8(v[k], p));
    }
}

IFMA static void poly_eval_ifma(uint64_t *out, const uint64_t *coeffs, const uint64_t *xs, size_t t,
                                size_t m, size_t n, uint64_t p)
{
    for (size_t i = 0; i < n; i += BLOCK) {
        const size_t count = n - i < BLOCK ? n - i : BLOCK;
        const known_points known = prepare(xs + i, count, p);
        for (size_t c = 0; c < m; c++) {
            uint64_t value[BLOCK];
            if (p >> 62)
                horner_block(value, coeffs + c, &known, t, m, p, 1);
            else
                horner_block(value, coeffs + c, &known, t, m, p, 0);
            for (size_t l = 0; l < count; l++)
                out[(i + l) * m + c] = value[l];
        }
    }
}
#endif

const secagg_prime_tier secagg_prime_tiers[] = {
#if defined(SECAGG_X86_64)
    {"ifma", has_ifma, poly_eval_ifma},
#endif
    {"portable", always, poly_eval_portable},
    {NULL, NULL, NULL},
};

typedef struct {
    uint64_t p, inverse, square; /* 1 / p mod R, R^2 mod p */
} montgomery;

static montgomery prepared(uint64_t p)
{
    uint64_t inverse = p; /* right in the 3 low bits, which each step doubles */
    for (int i = 0; i < 5; i++)
        inverse *= 2 - p * inverse;
    const uint64_t r = (0 - p) % p;
    return (montgomery){p, inverse, (uint64_t)((u128)r * r % p)};
}

/* a / R mod p, in [0, p), for a < p R. */
static inline uint64_t reduce(u128 a, const montgomery *f)
{
    const uint64_t taken = (uint64_t)(((u128)((uint64_t)a * f->inverse) * f->p) >> 64);
    const uint64_t less = (uint64_t)(a >> 64) - taken;
    return less + (f->p & (0 - (less >> 63)));
}

static inline uint64_t mul(uint64_t a, uint64_t b, const montgomery *f)
{
    return reduce((u128)a * b, f);
}

/* A sum of products is kept below p R by its upper half. */
static inline __attribute__((always_inline)) void
columns(uint64_t *out, const uint64_t *row, const uint64_t *b, size_t k, size_t m,
        const montgomery *f, int count)
{
    u128 sum[COLUMNS] = {0};
    for (size_t l = 0; l < k; l++)
        for (int c = 0; c < count; c++) {
            sum[c] += (u128)row[l] * b[l * m + (size_t)c];
            const uint64_t upper = subtract_p((uint64_t)(sum[c] >> 64), f->p);
            sum[c] = ((u128)upper << 64) | (uint64_t)sum[c];
        }
    for (int c = 0; c < count; c++)
        out[c] = mul(reduce(sum[c], f), f->square, f);
}

void secagg_prime_matmul(uint64_t *out, const uint64_t *a, const uint64_t *b, size_t n, size_t k,
                         size_t m, uint64_t p)
{
    const montgomery f = prepared(p);
    size_t c = 0;
    for (; c + COLUMNS <= m; c += COLUMNS)
        for (size_t i = 0; i < n; i++)
            columns(out + i * m + c, a + i * k, b + c, k, m, &f, COLUMNS);
    for (; c < m; c++)
        for (size_t i = 0; i < n; i++)
            columns(out + i * m + c, a + i * k, b + c, k, m, &f, 1);
}

/* a^(p - 2), where a R is given and wanted. The exponent is public. */
static uint64_t inverse(uint64_t a, const montgomery *f)
{
    uint64_t power = reduce(f->square, f);
    for (int bit = 62; bit >= 0; bit--) {
        power = mul(power, power, f);
        if (((f->p - 2) >> bit) & 1)
            power = mul(power, a, f);
    }
    return power;
}

/* out[i] = x_i Π_{j≠i} (x_j - x_i) for `count` points from `first`; all times R. */
static inline __attribute__((always_inline)) void
denominators(uint64_t *out, const uint64_t *xs, size_t t, size_t first, const montgomery *f,
             uint64_t one, int count)
{
    uint64_t product[LANES];
    for (int i = 0; i < count; i++)
        product[i] = xs[first + (size_t)i];
    for (size_t j = 0; j < t; j++)
        for (int i = 0; i < count; i++) {
            const uint64_t less = xs[j] - xs[first + (size_t)i];
            const uint64_t difference = less + (f->p & (0 - (less >> 63)));
            product[i] = mul(product[i], j == first + (size_t)i ? one : difference, f);
        }
    for (int i = 0; i < count; i++)
        out[first + (size_t)i] = product[i];
}

int secagg_prime_lagrange_at_zero(uint64_t *out, uint64_t *scratch, const uint64_t *xs, size_t t,
                                  uint64_t p)
{
    const montgomery f = prepared(p);
    const uint64_t one = reduce(f.square, &f);
    uint64_t *points = scratch, *below = scratch + t, every = one, product = one;
    for (size_t j = 0; j < t; j++) {
        points[j] = mul(xs[j], f.square, &f);
        every = mul(every, points[j], &f);
    }
    size_t i = 0;
    for (; i + LANES <= t; i += LANES)
        denominators(below, points, t, i, &f, one, LANES);
    for (; i < t; i++)
        denominators(below, points, t, i, &f, one, 1);
    for (i = 0; i < t; i++) { /* Montgomery's trick: one inversion for all */
        out[i] = product;
        product = mul(product, below[i], &f);
    }
    if (product == 0)
        return -1;
    uint64_t rest = mul(inverse(product, &f), reduce(every, &f), &f); /* not times R */
    for (i = t; i-- > 0;) {
        out[i] = mul(out[i], rest, &f);
        rest = mul(rest, below[i], &f);
    }
    return 0;
}
