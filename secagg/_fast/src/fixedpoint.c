/* Floats to residues mod R and back; specified by reference.py.
 *
 * A slice of the vector at a time is rounded to integers that stay in the first-level cache
 * and are then weighted and reduced. The loops are written without branches so that the
 * compiler can vectorise them for any CPU. Contraction to fused multiply-add, which would
 * change the rounding, is switched off in setup.py.
 */
#include "kernels.h"

#include <float.h>
#include <string.h>

enum { SLICE = 256 };

static inline uint64_t bits_of(double a)
{
    uint64_t bits;
    memcpy(&bits, &a, sizeof bits);
    return bits;
}

static inline double double_of(uint64_t bits)
{
    double a;
    memcpy(&a, &bits, sizeof a);
    return a;
}

/* Exact for u < 2^53: the halves become the mantissas of 2^84 + high 2^32 and 2^52 + low. */
static inline double exact_double(uint64_t u)
{
    const double high = double_of((u >> 32) | 0x4530000000000000);
    const double low = double_of((u & 0xffffffff) | 0x4330000000000000);
    return (high - 0x1.00000001p84) + low;
}

static inline double clamp(double x, double clip)
{
    const double above = x > -clip ? x : -clip; /* NaN becomes -clip */
    return above < clip ? above : clip;
}

/* Integers for |y| < 2^51: adding 1.5 · 2^52 leaves the nearest one, ties to even, in the low
 * bits of the sum. Every difference below is exact, and equal to y - floor(y) in the end. */
static inline __attribute__((always_inline)) void
round_small(int64_t *value, const double *x, const uint64_t *random, size_t n, double clip,
            double scale, int stochastic)
{
    const double shift = 0x1.8p52;
    for (size_t i = 0; i < n; i++) {
        const double y = clamp(x[i], clip) * scale;
        const double shifted = y + shift;
        int64_t v = (int64_t)(bits_of(shifted) - bits_of(shift));
        if (stochastic) {
            const double past = y - (shifted - shift);
            const double part = past + (past < 0 ? 1.0 : 0.0);
            v -= past < 0 ? 1 : 0;
            v += exact_double(random[i] >> 11) < part * 0x1p53 ? 1 : 0;
        }
        value[i] = v;
    }
}

/* The same for |y| <= 2^62. */
static void round_large(int64_t *value, const double *x, const uint64_t *random, size_t n,
                        double clip, double scale)
{
    for (size_t i = 0; i < n; i++) {
        const double y = clamp(x[i], clip) * scale;
        const double shift = y < 0 ? -0x1p52 : 0x1p52;
        const double nearest = y > -0x1p52 && y < 0x1p52 ? (y + shift) - shift : y;
        int64_t v = (int64_t)nearest;
        if (random) {
            const double past = y - nearest;
            const double part = past + (past < 0 ? 1.0 : 0.0);
            v -= past < 0;
            v += exact_double(random[i] >> 11) < part * 0x1p53;
        }
        value[i] = v;
    }
}

static size_t count_clipped(const double *x, size_t n, double clip, int *finite)
{
    uint64_t clipped = 0, infinite = 0;
    for (size_t i = 0; i < n; i++) {
        const double size = double_of(bits_of(x[i]) & ~((uint64_t)1 << 63));
        clipped += size > clip ? 1 : 0;
        infinite |= size <= DBL_MAX ? 0 : 1;
    }
    *finite = infinite == 0;
    return (size_t)clipped;
}

/* value · weight mod R as a lane; `small` promises |value · weight| < R. */
static inline __attribute__((always_inline)) void
reduce(void *out, const int64_t *value, size_t n, const secagg_encoding *how, int small, int lane)
{
    const uint64_t largest = how->largest, modulus = largest + 1;
    const int power_of_two = (modulus & largest) == 0;
    for (size_t i = 0; i < n; i++) {
        const int64_t v = value[i] * how->weight;
        uint64_t residue;
        if (power_of_two)
            residue = (uint64_t)v & largest;
        else if (small)
            residue = (uint64_t)v + (v < 0 ? modulus : 0);
        else {
            const int64_t rest = v % (int64_t)modulus;
            residue = (uint64_t)rest + (rest < 0 ? modulus : 0);
        }
        if (lane == 32)
            ((uint32_t *)out)[i] = (uint32_t)residue;
        else
            ((uint64_t *)out)[i] = residue;
    }
}

static inline __attribute__((always_inline)) size_t
encode(void *out, const double *x, size_t n, const secagg_encoding *how, ptrdiff_t *bad, int lane)
{
    const double bound = how->clip * how->scale;
    const int small = (bound + 2) * (double)how->weight < (double)how->largest;
    size_t clipped = 0;
    int64_t value[SLICE];
    *bad = -1;
    for (size_t first = 0; first < n; first += SLICE) {
        const size_t count = n - first < SLICE ? n - first : SLICE;
        const uint64_t *random = how->random ? how->random + first : NULL;
        int finite;
        clipped += count_clipped(x + first, count, how->clip, &finite);
        if (!finite && *bad < 0)
            for (size_t i = count; i-- > 0;)
                if (!(x[first + i] <= DBL_MAX && x[first + i] >= -DBL_MAX))
                    *bad = (ptrdiff_t)(first + i);
        if (bound >= 0x1p51)
            round_large(value, x + first, random, count, how->clip, how->scale);
        else if (random)
            round_small(value, x + first, random, count, how->clip, how->scale, 1);
        else
            round_small(value, x + first, random, count, how->clip, how->scale, 0);
        reduce((uint8_t *)out + first * (lane / 8), value, count, how, small, lane);
    }
    return clipped;
}

size_t secagg_encode32(uint32_t *out, const double *x, size_t n, const secagg_encoding *how,
                       ptrdiff_t *bad)
{
    return encode(out, x, n, how, bad, 32);
}

size_t secagg_encode64(uint64_t *out, const double *x, size_t n, const secagg_encoding *how,
                       ptrdiff_t *bad)
{
    return encode(out, x, n, how, bad, 64);
}

/* v <= (R - 1) / 2 stays, the rest is v - R; in two's complement for R = 2^64 too. */
void secagg_decode32(double *out, const uint32_t *values, size_t n, uint64_t largest,
                     double inverse_scale)
{
    const uint32_t half = (uint32_t)(largest / 2), modulus = (uint32_t)largest + 1;
    for (size_t i = 0; i < n; i++) {
        const uint32_t lifted = values[i] <= half ? values[i] : values[i] - modulus;
        out[i] = (double)(int32_t)lifted * inverse_scale;
    }
}

void secagg_decode64(double *out, const uint64_t *values, size_t n, uint64_t largest,
                     double inverse_scale)
{
    const uint64_t half = largest / 2, modulus = largest + 1;
    for (size_t i = 0; i < n; i++) {
        const uint64_t lifted = values[i] <= half ? values[i] : values[i] - modulus;
        out[i] = (double)(int64_t)lifted * inverse_scale;
    }
}
