/* Numbers modulo N on any CPU: limbs of 64 bits, one number at a time; see modular.h.
 *
 * R = 2^(64 limbs), and every number is below N.
 */
#include "modular.h"

#include <string.h>

typedef unsigned __int128 u128;

static int portable_supported(void) { return 1; }

static size_t portable_digits(size_t limbs) { return limbs; }

/* out = x - N when x, whose limb above the last is `top`, is not below N; x < 2 N. */
static void subtract_n(uint64_t *out, const uint64_t *x, uint64_t top, const secagg_modular *c)
{
    uint64_t borrow = 0;
    for (size_t j = 0; j < c->limbs; j++)
        borrow = (uint64_t)(((u128)x[j] - c->n[j] - borrow) >> 64) & 1;
    const uint64_t subtract = 0 - (top | (borrow ^ 1));
    borrow = 0;
    for (size_t j = 0; j < c->limbs; j++) {
        const u128 difference = (u128)x[j] - (c->n[j] & subtract) - borrow;
        out[j] = (uint64_t)difference;
        borrow = (uint64_t)(difference >> 64) & 1;
    }
}

typedef struct {
    u128 low;
    uint64_t high;
} column;

static inline void add(column *sum, uint64_t a, uint64_t b)
{
    const u128 product = (u128)a * b;
    sum->low += product;
    sum->high += sum->low < product;
}

/* Montgomery's method column by column. The quotients of the lower half of the columns give way
 * to the limbs of the upper half, one by one, as these no longer need them. A square takes the
 * products of different limbs once and doubles them: the choice depends on the caller alone. */
static void portable_multiply(uint64_t *out, const uint64_t *a, const uint64_t *b,
                              const secagg_modular *c)
{
    const size_t limbs = c->limbs;
    const uint64_t *n = c->n;
    uint64_t *q = c->sums;
    column sum = {0, 0};
    for (size_t i = 0; i < 2 * limbs; i++) {
        const size_t first = i < limbs ? 0 : i - limbs + 1, end = i < limbs ? i : limbs;
        if (a != b) {
            for (size_t j = first; j < end; j++) {
                add(&sum, a[j], b[i - j]);
                add(&sum, q[j], n[i - j]);
            }
            if (i < limbs)
                add(&sum, a[i], b[0]);
        } else {
            column twice = {0, 0};
            for (size_t j = first; 2 * j < i; j++)
                add(&twice, a[j], a[i - j]);
            sum.low += twice.low;
            sum.high += twice.high + (sum.low < twice.low);
            sum.low += twice.low;
            sum.high += twice.high + (sum.low < twice.low);
            if (i % 2 == 0)
                add(&sum, a[i / 2], a[i / 2]);
            for (size_t j = first; j < end; j++)
                add(&sum, q[j], n[i - j]);
        }
        if (i < limbs) {
            q[i] = (uint64_t)sum.low * c->inverse;
            add(&sum, q[i], n[0]);
        } else {
            q[i - limbs] = (uint64_t)sum.low;
        }
        sum.low = sum.low >> 64 | (u128)sum.high << 64;
        sum.high = 0;
    }
    subtract_n(out, q, (uint64_t)sum.low, c);
}

static void portable_load(uint64_t *x, const uint64_t *rows, size_t step, size_t count,
                          const secagg_modular *c)
{
    (void)step;
    (void)count;
    memcpy(x, rows, c->limbs * sizeof *x);
}

static void portable_begin(secagg_modular *c, const secagg_modulus *modulus)
{
    memcpy(c->n, modulus->n, c->limbs * sizeof *c->n);
    memcpy(c->square, modulus->square, c->limbs * sizeof *c->square);
}

static void portable_store(uint64_t *rows, uint64_t *x, size_t count, const secagg_modular *c)
{
    (void)count;
    memcpy(rows, x, c->limbs * sizeof *x);
}

static void portable_choose(uint64_t *x, const uint64_t *powers, size_t entries, uint64_t digit,
                            const secagg_modular *c)
{
    memset(x, 0, c->limbs * sizeof *x);
    for (size_t e = 0; e < entries; e++) {
        const uint64_t mask = ((0 - (e ^ digit)) >> 63) - 1;
        for (size_t j = 0; j < c->limbs; j++)
            x[j] |= powers[e * c->limbs + j] & mask;
    }
}

static void portable_read(uint64_t *x, const uint64_t *const *rows, size_t words)
{
    memcpy(x, rows[0], words * sizeof *x);
}

static void portable_write(uint64_t *rows, size_t step, const uint64_t *x, size_t words,
                           size_t count)
{
    (void)step;
    (void)count;
    memcpy(rows, x, words * sizeof *x);
}

const secagg_modular_tier secagg_modular_portable = {
    "portable",     portable_supported, 1,
    64,             portable_digits,    portable_begin,
    portable_multiply, portable_load,   portable_store,
    portable_choose, portable_read,     portable_write,
    NULL,
};
