/* GF(p), p = 2^61 - 1; specified by reference_m61.py.
 *
 * 2^61 ≡ 1, so a 122-bit product is reduced by adding the high part to the low 61 bits.
 * Nothing branches on the value of an element, except for the test for zero.
 */
#include "kernels.h"

typedef unsigned __int128 u128;

static const uint64_t P = ((uint64_t)1 << 61) - 1;

enum {
    LANES = 8,  /* independent chains that hide the latency of a multiplication */
    LAZY = 32,  /* products below 2^122 that are added up in 128 bits before a fold: <= 63 */
    COLUMNS = 4 /* of a matrix product at a time: 8 registers of accumulators */
};

/* [0, 2p) to [0, p). */
static inline uint64_t subtract_p(uint64_t a)
{
    const uint64_t less = a - P;
    return less + (P & (0 - (less >> 63)));
}

static inline uint64_t add(uint64_t a, uint64_t b) { return subtract_p(a + b); }

static inline uint64_t sub(uint64_t a, uint64_t b)
{
    const uint64_t less = a - b;
    return less + (P & (0 - (less >> 63)));
}

/* [0, 2^64) to [0, 2^61 + 7], which is enough for a factor. */
static inline uint64_t fold(uint64_t a) { return (a & P) + (a >> 61); }

/* A product below 2^124 to [0, 2^64), congruent mod p. */
static inline uint64_t fold_wide(u128 a) { return ((uint64_t)a & P) + (uint64_t)(a >> 61); }

static inline uint64_t canonical(uint64_t a) { return subtract_p(fold(a)); }

static inline uint64_t mul(uint64_t a, uint64_t b)
{
    return subtract_p(fold_wide((u128)a * b)); /* (p-1)^2 folds below 2p */
}

/* [0, 2^128) to [0, p). */
static inline uint64_t canonical_wide(u128 a)
{
    const u128 once = ((uint64_t)a & P) + (a >> 61); /* < 2^67 + 2^61 */
    return canonical(fold_wide(once));
}

void secagg_m61_add(uint64_t *out, const uint64_t *a, const uint64_t *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = add(a[i], b[i]);
}

void secagg_m61_sub(uint64_t *out, const uint64_t *a, const uint64_t *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = sub(a[i], b[i]);
}

void secagg_m61_mul(uint64_t *out, const uint64_t *a, const uint64_t *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = mul(a[i], b[i]);
}

uint64_t secagg_m61_dot(const uint64_t *a, const uint64_t *b, size_t n)
{
    uint64_t total = 0;
    for (size_t i = 0; i < n;) {
        const size_t end = n - i < LAZY ? n : i + LAZY;
        u128 sum = total;
        for (; i < end; i++)
            sum += (u128)a[i] * b[i];
        total = canonical_wide(sum);
    }
    return total;
}

/* a^(p - 2). The exponent is public; the chain is 60 squarings and 59 multiplications. */
static uint64_t inverse(uint64_t a)
{
    uint64_t power = a;
    for (int bit = 59; bit >= 0; bit--) {
        power = mul(power, power);
        if (((P - 2) >> bit) & 1)
            power = mul(power, a);
    }
    return power;
}

/* Montgomery's trick: one inversion and three multiplications per element. */
int secagg_m61_inv(uint64_t *out, const uint64_t *a, size_t n)
{
    uint64_t product = 1;
    for (size_t i = 0; i < n; i++) {
        out[i] = product; /* of all elements before i */
        product = mul(product, canonical(a[i]));
    }
    if (SECAGG_PUBLIC(product == 0)) /* an error, which the caller reports */
        return -1;
    uint64_t rest = inverse(product); /* of all elements up to i */
    for (size_t i = n; i-- > 0;) {
        out[i] = mul(out[i], rest);
        rest = mul(rest, canonical(a[i]));
    }
    return 0;
}

static inline __attribute__((always_inline)) void
columns(uint64_t *out, const uint64_t *row, const uint64_t *b, size_t k, size_t m, int count)
{
    uint64_t total[COLUMNS] = {0};
    for (size_t l = 0; l < k;) {
        const size_t end = k - l < LAZY ? k : l + LAZY;
        u128 sum[COLUMNS];
        for (int c = 0; c < count; c++)
            sum[c] = total[c];
        for (; l < end; l++)
            for (int c = 0; c < count; c++)
                sum[c] += (u128)row[l] * b[l * m + (size_t)c];
        for (int c = 0; c < count; c++)
            total[c] = canonical_wide(sum[c]);
    }
    for (int c = 0; c < count; c++)
        out[c] = total[c];
}

void secagg_m61_matmul(uint64_t *out, const uint64_t *a, const uint64_t *b, size_t n, size_t k,
                       size_t m)
{
    /* Columns outside: the strip of b is then read by every row while it is in cache. */
    size_t c = 0;
    for (; c + COLUMNS <= m; c += COLUMNS)
        for (size_t i = 0; i < n; i++)
            columns(out + i * m + c, a + i * k, b + c, k, m, COLUMNS);
    for (; c < m; c++)
        for (size_t i = 0; i < n; i++)
            columns(out + i * m + c, a + i * k, b + c, k, m, 1);
}

/* Horner's rule for one polynomial at up to LANES points. A value v is kept folded, so
 * v x + c folds to less than 2^61 + 2^61 + 2^61 + 2^6 and stays in 64 bits. */
static inline __attribute__((always_inline)) void
horner(uint64_t *out, const uint64_t *coeffs, const uint64_t *xs, size_t t, size_t m, int count)
{
    uint64_t value[LANES] = {0};
    for (size_t j = t; j-- > 0;) {
        const uint64_t coefficient = coeffs[j * m];
        for (int i = 0; i < count; i++)
            value[i] = fold(fold_wide((u128)value[i] * xs[i]) + coefficient);
    }
    for (int i = 0; i < count; i++)
        out[(size_t)i * m] = canonical(value[i]);
}

void secagg_m61_poly_eval(uint64_t *out, const uint64_t *coeffs, const uint64_t *xs, size_t t,
                          size_t m, size_t n)
{
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (size_t c = 0; c < m; c++)
            horner(out + i * m + c, coeffs + c, xs + i, t, m, LANES);
    for (; i < n; i++)
        for (size_t c = 0; c < m; c++)
            horner(out + i * m + c, coeffs + c, xs + i, t, m, 1);
}

/* out[i] = x_i Π_{j≠i} (x_j - x_i) for `count` points from `first`. */
static inline __attribute__((always_inline)) void
denominators(uint64_t *out, const uint64_t *xs, size_t t, size_t first, int count)
{
    uint64_t product[LANES];
    for (int i = 0; i < count; i++)
        product[i] = xs[first + (size_t)i];
    for (size_t j = 0; j < t; j++)
        for (int i = 0; i < count; i++) {
            const uint64_t factor = j == first + (size_t)i ? 1 : sub(xs[j], xs[first + (size_t)i]);
            product[i] = mul(product[i], factor);
        }
    for (int i = 0; i < count; i++)
        out[first + (size_t)i] = product[i];
}

int secagg_m61_lagrange_at_zero(uint64_t *out, uint64_t *scratch, const uint64_t *xs, size_t t)
{
    uint64_t every = 1;
    for (size_t j = 0; j < t; j++)
        every = mul(every, xs[j]);
    size_t i = 0;
    for (; i + LANES <= t; i += LANES)
        denominators(scratch, xs, t, i, LANES);
    for (; i < t; i++)
        denominators(scratch, xs, t, i, 1);
    if (secagg_m61_inv(out, scratch, t) != 0)
        return -1;
    for (i = 0; i < t; i++)
        out[i] = mul(out[i], every);
    return 0;
}

/* Syndromes S_k = Σ_i u_i x_i^k y_i of a word y, k < count: all are 0 for a codeword. */
static void syndromes(uint64_t *out, size_t count, uint64_t *terms, const uint64_t *xs,
                      const uint64_t *dual, const uint64_t *word, size_t n)
{
    for (size_t i = 0; i < n; i++)
        terms[i] = mul(dual[i], word[i]);
    for (size_t k = 0; k < count; k++) {
        u128 total = 0;
        for (size_t i = 0; i < n; i++) {
            total += terms[i];
            terms[i] = mul(terms[i], xs[i]);
        }
        out[k] = canonical_wide(total);
    }
}

/* Berlekamp and Massey: the shortest recursion of s, into `locator`, constant term 1 first. The
 * recursion's length, or -1 for a length above count / 2. All arrays: count + 1. */
static long shortest(uint64_t *locator, uint64_t *previous, uint64_t *saved, const uint64_t *s,
                     size_t count)
{
    size_t length = 0, before = 0, shift = 1; /* `previous` has `before` terms after the first */
    uint64_t inverse = 1;
    for (size_t i = 0; i <= count; i++)
        locator[i] = previous[i] = i == 0;
    for (size_t k = 0; k < count; k++, shift++) {
        u128 total = s[k];
        for (size_t i = 1; i <= length; i++)
            total += mul(locator[i], s[k - i]);
        const uint64_t gap = canonical_wide(total), factor = mul(gap, inverse);
        if (gap == 0)
            continue;
        const size_t longer = k + 1 - length;
        if (longer > length && 2 * longer > count)
            return -1;
        for (size_t i = 0; i <= length; i++)
            saved[i] = locator[i];
        for (size_t i = 0; i <= before; i++)
            locator[shift + i] = sub(locator[shift + i], mul(factor, previous[i]));
        if (longer > length) {
            for (size_t i = 0; i <= length; i++)
                previous[i] = saved[i];
            before = length;
            length = longer;
            shift = 0;
            secagg_m61_inv(&inverse, &gap, 1);
        }
    }
    return (long)length;
}

long secagg_m61_errors(uint64_t *rows, uint64_t *scratch, const uint64_t *xs,
                       const uint64_t *dual, const uint64_t *word, size_t n, size_t t)
{
    const size_t count = n - t;
    uint64_t *terms = scratch, *s = terms + n, *locator = s + count;
    uint64_t *previous = locator + count + 1, *saved = previous + count + 1;
    syndromes(s, count, terms, xs, dual, word, n);
    const long length = shortest(locator, previous, saved, s, count);
    if (length < 0)
        return -1;
    /* the roots are the inverses of the wrong points: turned round, the points themselves */
    for (long i = 0; i <= length; i++)
        previous[length - i] = locator[i];
    secagg_m61_poly_eval(terms, previous, xs, (size_t)length + 1, 1, n);
    long found = 0;
    for (size_t i = 0; i < n; i++)
        if (terms[i] == 0)
            rows[found++] = i;
    return found == length ? found : -1;
}
