/* The vector part of fixedpoint.c, which includes this file once for each set of instructions:
 * LANES elements at a time, with MIN, MAX and LOW_PRODUCT as below, in functions named
 * NAME(...) that may use the instructions of TARGET.
 *
 * Elements and weight are secret, so nothing branches on them, and no operation takes longer
 * for some: comparisons give masks of all ones (-1) or zero.
 */
#define INLINE static inline TARGET __attribute__((always_inline))
#define doubles NAME(doubles)
#define integers NAME(integers)
#define words NAME(words)

typedef double doubles __attribute__((vector_size(8 * LANES)));
typedef int64_t integers __attribute__((vector_size(8 * LANES)));
typedef uint64_t words __attribute__((vector_size(8 * LANES)));

INLINE doubles NAME(choose)(integers mask, doubles yes, doubles no)
{
    return (doubles)(((integers)yes & mask) | ((integers)no & ~mask));
}

/* Subnormal numbers, on which arithmetic may take many times as long, become zero. */
INLINE doubles NAME(flush)(doubles x)
{
    const words exponent = (words)x & EXPONENT;
    return (doubles)((words)x & (0 - ((exponent + EXPONENT) >> 63)));
}

/* x > -clip ? x : -clip, then y < clip ? y : clip: NaN becomes -clip. */
INLINE doubles NAME(clamp)(doubles x, doubles clip)
{
#ifdef MIN /* one instruction each, defined as these very comparisons */
    return MIN(MAX(x, -clip), clip);
#else
    const doubles y = NAME(choose)(x > -clip, x, -clip);
    return NAME(choose)(y < clip, y, clip);
#endif
}

/* Exact for u < 2^53: the halves become the mantissas of 2^84 + high 2^32 and 2^52 + low. */
INLINE doubles NAME(exact_doubles)(words u)
{
    const doubles high = (doubles)((u >> 32) | 0x4530000000000000);
    const doubles low = (doubles)((u & 0xffffffff) | 0x4330000000000000);
    return (high - 0x1.00000001p84) + low;
}

/* The nearest integer to y, ties to even, as a double and as an integer. */
INLINE doubles NAME(nearest)(doubles y, integers *value, int large)
{
    const doubles zero = {0};
    if (!large) { /* |y| < 2^51: the low bits of y + 1.5 · 2^52 are the integer */
        const doubles shifted = y + 0x1.8p52;
        *value = (integers)shifted - (integers)(zero + 0x1.8p52);
        return shifted - 0x1.8p52;
    }
    const doubles shift = (doubles)(((integers)y & INT64_MIN) | (integers)(zero + 0x1p52));
    const integers fraction = (y > -0x1p52) & (y < 0x1p52);
    const doubles whole = NAME(choose)(fraction, (y + shift) - shift, y);
    *value = __builtin_convertvector(whole, integers);
    return whole;
}

/* value · weight; for 32-bit lanes, the low 32 bits of the product. */
INLINE words NAME(times)(words value, words weight, int lane)
{
#ifdef LOW_PRODUCT /* one instruction, instead of seven for all 64 bits */
    if (lane == 32)
        return LOW_PRODUCT(value, weight);
#endif
    (void)lane;
    return value * weight;
}

/* value mod R; |value| < R unless R is a power of two. */
INLINE words NAME(reduce)(words value, uint64_t largest)
{
    const uint64_t modulus = largest + 1;
    if ((modulus & largest) == 0)
        return value & largest;
    return value + (modulus & (0 - (value >> 63)));
}

/* Clip, scale, round, weight and reduce a slice. Every difference is exact or, for -1/2 < y < 0,
 * rounded as in y - floor(y). */
INLINE uint64_t NAME(round)(uint64_t *residues, const double *x, const uint64_t *random,
                            const secagg_encoding *how, uint64_t *infinite, int lane,
                            int stochastic, int large)
{
    const doubles zero = {0}, one = zero + 1.0, clip = zero + how->clip, scale = zero + how->scale;
    const words weight = (words)zero + (uint64_t)how->weight;
    integers clipped = {0}, finite = ~clipped;
    for (size_t i = 0; i < SLICE; i += LANES) {
        doubles each;
        memcpy(&each, x + i, sizeof each);
        each = NAME(flush)(each);
        const doubles size = (doubles)((integers)each & INT64_MAX);
        clipped -= size > clip;
        finite &= size <= DBL_MAX;
        const doubles y = NAME(clamp)(each, clip) * scale;
        integers v;
        const doubles past = y - NAME(nearest)(y, &v, large);
        if (stochastic) {
            const integers below = past < 0.0;
            const doubles part = past + (doubles)(below & (integers)one);
            words noise;
            memcpy(&noise, random + i, sizeof noise);
            v += below;
            v -= NAME(exact_doubles)(noise >> 11) < part * 0x1p53;
        }
        const words residue = NAME(reduce)(NAME(times)((words)v, weight, lane), how->largest);
        memcpy(residues + i, &residue, sizeof residue);
    }
    uint64_t count = 0;
    for (int i = 0; i < LANES; i++) {
        count += (uint64_t)clipped[i];
        *infinite |= (uint64_t)~finite[i];
    }
    return count;
}

/* `round` for one width of lanes; a constant `stochastic` saves a test for each element. */
INLINE uint64_t NAME(round_lanes)(uint64_t *residues, const double *x, const uint64_t *random,
                                  const secagg_encoding *how, uint64_t *infinite, int lane,
                                  int large)
{
    if (random)
        return NAME(round)(residues, x, random, how, infinite, lane, 1, large);
    return NAME(round)(residues, x, random, how, infinite, lane, 0, large);
}

TARGET static uint64_t NAME(encode)(void *out, size_t count, uint64_t *slice, const double *x,
                                    const uint64_t *random, const secagg_encoding *how,
                                    uint64_t *infinite, int lane)
{
    uint64_t clipped;
    uint64_t *const residues = lane == 64 && count == SLICE ? out : slice;
    const int large = how->clip * how->scale >= 0x1p51;
    if (lane == 64)
        clipped = large ? NAME(round_lanes)(residues, x, random, how, infinite, 64, 1)
                        : NAME(round_lanes)(residues, x, random, how, infinite, 64, 0);
    else
        clipped = large ? NAME(round_lanes)(residues, x, random, how, infinite, 32, 1)
                        : NAME(round_lanes)(residues, x, random, how, infinite, 32, 0);
    if (lane == 32)
        for (size_t i = 0; i < count; i++)
            ((uint32_t *)out)[i] = (uint32_t)slice[i];
    else if (count < SLICE)
        memcpy(out, slice, 8 * count);
    return clipped;
}

#undef INLINE
#undef doubles
#undef integers
#undef words
