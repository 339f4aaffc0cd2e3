/* Floats to residues mod R and back; specified by reference.py.
 *
 * A slice of the vector at a time goes through the code of fixedpoint_vector.h, with AVX-512 or
 * AVX2 where the CPU has it. The first and last step, here, treat secrets like that file does.
 * Contraction to fused multiply-add, which would change the rounding, is switched off in setup.py.
 */
#include "cpu.h"
#include "kernels.h"

#include <float.h>
#include <string.h>

#if defined(SECAGG_X86_64)
#include <immintrin.h>
#endif

enum { SLICE = 256 };

static const uint64_t EXPONENT = 0x7ff0000000000000; /* all ones in inf and NaN, else a number */
static const uint32_t EXPONENT_OF_FLOAT = 0x7f800000;

/* Encode SLICE elements and store the first `count`; add ones to *infinite at inf and NaN. The
 * number of clipped elements. `slice` is scratch for as many. */
typedef uint64_t slice_encoder(void *out, size_t count, uint64_t *slice, const double *x,
                               const uint64_t *random, const secagg_encoding *how,
                               uint64_t *infinite, int lane);

#define NAME(name) plain_##name
#define TARGET
#define LANES 2
#if defined(SECAGG_X86_64)
#define MIN(a, b) _mm_min_pd(a, b)
#define MAX(a, b) _mm_max_pd(a, b)
#define LOW_PRODUCT(a, b) (words)_mm_mul_epu32((__m128i)(a), (__m128i)(b))
#endif
#include "fixedpoint_vector.h"

#if defined(SECAGG_X86_64)
#undef NAME
#undef TARGET
#undef LANES
#undef MIN
#undef MAX
#undef LOW_PRODUCT
#define NAME(name) avx2_##name
#define TARGET __attribute__((target("avx2")))
#define LANES 4
#define MIN(a, b) _mm256_min_pd(a, b)
#define MAX(a, b) _mm256_max_pd(a, b)
#define LOW_PRODUCT(a, b) (words)_mm256_mul_epu32((__m256i)(a), (__m256i)(b))
#include "fixedpoint_vector.h"

#undef NAME
#undef TARGET
#undef LANES
#undef MIN
#undef MAX
#undef LOW_PRODUCT
#define NAME(name) avx512_##name
#define TARGET __attribute__((target("avx512f,avx512dq")))
#define LANES 8
#define LOW_PRODUCT(a, b) (words)_mm512_mul_epu32((__m512i)(a), (__m512i)(b))
#include "fixedpoint_vector.h"
#endif

/* Elements of 4 bytes as doubles, subnormals as zero: converting subnormals takes longer, too. */
static inline void widen(double *wide, const uint8_t *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        float each;
        memcpy(&bits, x + sizeof bits * i, sizeof bits);
        bits &= 0 - (((bits & EXPONENT_OF_FLOAT) + EXPONENT_OF_FLOAT) >> 31);
        memcpy(&each, &bits, sizeof each);
        wide[i] = (double)each;
    }
}

static slice_encoder *best(int widest)
{
#if defined(SECAGG_X86_64)
    if (widest >= SECAGG_UP_TO_AVX512 && secagg_cpu_has(SECAGG_AVX512))
        return avx512_encode;
    if (widest >= SECAGG_UP_TO_AVX2 && secagg_cpu_has(SECAGG_AVX2))
        return avx2_encode;
#endif
    (void)widest;
    return plain_encode;
}

static size_t encode(void *out, const void *x, size_t n, const secagg_encoding *how, int *finite,
                     int lane)
{
    slice_encoder *const encode_slice = best(how->widest);
    uint64_t clipped = 0, infinite = 0, slice[SLICE], last_random[SLICE] = {0};
    double copy[SLICE] = {0};
    for (size_t first = 0; first < n; first += SLICE) {
        const uint8_t *at = (const uint8_t *)x + first * how->width;
        const double *from = copy;
        const uint64_t *random = how->random ? how->random + first : NULL;
        const size_t count = n - first < SLICE ? n - first : SLICE;
        if (count < SLICE) { /* padded with zeros, which are finite and not clipped */
            memset(copy, 0, sizeof copy);
            random = random ? memcpy(last_random, random, 8 * count) : NULL;
        }
        if (how->width == sizeof(float))
            widen(copy, at, count);
        else if (count < SLICE)
            memcpy(copy, at, 8 * count);
        else
            from = (const double *)at;
        clipped += encode_slice((uint8_t *)out + first * (size_t)(lane / 8), count, slice, from,
                                random, how, &infinite, lane);
    }
    *finite = (int)(~infinite & 1);
    secagg_wipe(slice, sizeof slice);
    secagg_wipe(copy, sizeof copy);
    return (size_t)clipped;
}

size_t secagg_encode32(uint32_t *out, const void *x, size_t n, const secagg_encoding *how,
                       int *finite)
{
    return encode(out, x, n, how, finite, 32);
}

size_t secagg_encode64(uint64_t *out, const void *x, size_t n, const secagg_encoding *how,
                       int *finite)
{
    return encode(out, x, n, how, finite, 64);
}

size_t secagg_first_not_finite(const void *x, size_t n, size_t width)
{
    size_t found = n;
    for (size_t i = n; i-- > 0;) {
        double each;
        if (width == sizeof(float))
            widen(&each, (const uint8_t *)x + 4 * i, 1);
        else
            memcpy(&each, (const uint8_t *)x + 8 * i, sizeof each);
        uint64_t bits;
        memcpy(&bits, &each, sizeof bits);
        const uint64_t infinite = ((bits & EXPONENT) + ((uint64_t)1 << 52)) >> 63;
        found ^= (found ^ i) & (0 - (size_t)infinite);
    }
    return found;
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
