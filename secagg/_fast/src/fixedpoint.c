/* Floats to residues mod R and back; specified by reference.py.
 *
 * A slice of the vector at a time is rounded to integers that stay in the first-level cache
 * and are then weighted and reduced. Whether a value is clipped, rounded up or negative is a
 * coin toss to a branch predictor, so nothing branches on values: comparisons give masks of
 * all ones (-1) or zero. Contraction to fused multiply-add, which would change the rounding,
 * is switched off in setup.py.
 */
#include "kernels.h"

#include <float.h>
#include <string.h>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

enum { SLICE = 256, PAIR = 2 };

typedef double doubles __attribute__((vector_size(8 * PAIR)));
typedef int64_t integers __attribute__((vector_size(8 * PAIR)));
typedef uint64_t words __attribute__((vector_size(8 * PAIR)));

static inline doubles both(double a) { return (doubles){a, a}; }

static inline doubles choose(integers mask, doubles yes, doubles no)
{
    return (doubles)(((integers)yes & mask) | ((integers)no & ~mask));
}

/* x > -clip ? x : -clip, then y < clip ? y : clip: NaN becomes -clip. */
static inline doubles clamp(doubles x, doubles clip)
{
#if defined(__x86_64__) /* one instruction each, defined as these very comparisons */
    return _mm_min_pd(_mm_max_pd(x, -clip), clip);
#else
    const doubles y = choose(x > -clip, x, -clip);
    return choose(y < clip, y, clip);
#endif
}

/* Exact for u < 2^53: the halves become the mantissas of 2^84 + high 2^32 and 2^52 + low. */
static inline doubles exact_doubles(words u)
{
    const doubles high = (doubles)((u >> 32) | 0x4530000000000000);
    const doubles low = (doubles)((u & 0xffffffff) | 0x4330000000000000);
    return (high - 0x1.00000001p84) + low;
}

/* The nearest integer to y, ties to even, as a double and as an integer. */
static inline __attribute__((always_inline)) doubles nearest(doubles y, integers *value, int large)
{
    if (!large) { /* |y| < 2^51: the low bits of y + 1.5 · 2^52 are the integer */
        const doubles shifted = y + 0x1.8p52;
        *value = (integers)shifted - (integers)both(0x1.8p52);
        return shifted - 0x1.8p52;
    }
    const doubles shift = (doubles)(((integers)y & INT64_MIN) | (integers)both(0x1p52));
    const integers fraction = (y > -0x1p52) & (y < 0x1p52);
    const doubles whole = choose(fraction, (y + shift) - shift, y);
    *value = __builtin_convertvector(whole, integers);
    return whole;
}

/* Clip, scale and round a slice; count what is clipped, clear *finite at inf and NaN. Every
 * difference is exact or, for -1/2 < y < 0, rounded as in y - floor(y). */
static inline __attribute__((always_inline)) uint64_t
round_slice(int64_t *value, const double *x, const uint64_t *random, double clip, double scale,
            int *finite, int stochastic, int large)
{
    integers clipped = {0}, all_finite = {-1, -1};
    for (size_t i = 0; i < SLICE; i += PAIR) {
        doubles each;
        memcpy(&each, x + i, sizeof each);
        const doubles size = (doubles)((integers)each & INT64_MAX);
        clipped -= size > clip;
        all_finite &= size <= DBL_MAX;
        const doubles y = clamp(each, both(clip)) * scale;
        integers v;
        const doubles past = y - nearest(y, &v, large);
        if (stochastic) {
            const integers below = past < 0.0;
            const doubles part = past + (doubles)(below & (integers)both(1.0));
            words noise;
            memcpy(&noise, random + i, sizeof noise);
            v += below;
            v -= exact_doubles(noise >> 11) < part * 0x1p53;
        }
        memcpy(value + i, &v, sizeof v);
    }
    *finite = (all_finite[0] & all_finite[1]) != 0;
    return (uint64_t)(clipped[0] + clipped[1]);
}

/* value mod R as a lane; `small` promises |value| < R. */
static inline __attribute__((always_inline)) void
reduce(void *out, const int64_t *value, size_t n, uint64_t largest, int small, int lane)
{
    const uint64_t modulus = largest + 1;
    const int power_of_two = (modulus & largest) == 0;
    for (size_t i = 0; i < n; i++) {
        const int64_t v = value[i];
        uint64_t residue;
        if (power_of_two)
            residue = (uint64_t)v & largest;
        else if (small)
            residue = (uint64_t)v + (modulus & (uint64_t)(v >> 63));
        else {
            const int64_t rest = v % (int64_t)modulus;
            residue = (uint64_t)rest + (modulus & (uint64_t)(rest >> 63));
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
    const double clip = how->clip, scale = how->scale, bound = clip * scale;
    const int small = (bound + 2) * (double)how->weight < (double)how->largest;
    uint64_t clipped = 0;
    int64_t value[SLICE];
    double last_x[SLICE] = {0};
    uint64_t last_random[SLICE] = {0};
    *bad = -1;
    for (size_t first = 0; first < n; first += SLICE) {
        const double *from = x + first;
        const uint64_t *random = how->random ? how->random + first : NULL;
        size_t count = SLICE;
        if (n - first < SLICE) { /* padded with zeros, which are finite and not clipped */
            count = n - first;
            from = memcpy(last_x, from, 8 * count);
            random = random ? memcpy(last_random, random, 8 * count) : NULL;
        }
        int finite;
        if (bound >= 0x1p51)
            clipped += random
                           ? round_slice(value, from, random, clip, scale, &finite, 1, 1)
                           : round_slice(value, from, random, clip, scale, &finite, 0, 1);
        else
            clipped += random
                           ? round_slice(value, from, random, clip, scale, &finite, 1, 0)
                           : round_slice(value, from, random, clip, scale, &finite, 0, 0);
        if (!finite && *bad < 0)
            for (size_t i = count; i-- > 0;)
                if (!(from[i] <= DBL_MAX && from[i] >= -DBL_MAX))
                    *bad = (ptrdiff_t)(first + i);
        if (how->weight != 1)
            for (size_t i = 0; i < SLICE; i++)
                value[i] *= how->weight;
        reduce((uint8_t *)out + first * (size_t)(lane / 8), value, count, how->largest, small,
               lane);
    }
    secagg_wipe(value, sizeof value);
    secagg_wipe(last_x, sizeof last_x);
    return (size_t)clipped;
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
