/* Masks with AVX2 and VAES: 16 blocks of AES side by side, 4 words mod R; see masks.h. */
#include "cpu.h"
#include "masks.h"

#if defined(SECAGG_X86_64)

#include <immintrin.h>

#define TARGET "aes,avx2,vaes"
#define VAES256 __attribute__((target(TARGET)))
#define VAES256_INLINE static inline __attribute__((target(TARGET), always_inline))

enum { ROUNDS = SECAGG_MASK_ROUNDS, VECTORS = 8, GROUP = 32 * VECTORS };

static int vaes_supported(void)
{
    return secagg_cpu_has(SECAGG_AES | SECAGG_AVX2 | SECAGG_VAES);
}

VAES256_INLINE __m256i round_key(const secagg_mask_schedule *key, int r)
{
    return _mm256_broadcastsi128_si256(_mm_load_si128((const __m128i *)key->round[r]));
}

/* Two counters of domain 0, big-endian, from block index `block` on. */
VAES256_INLINE __m256i counter(uint64_t block)
{
    const __m256i turned = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(-1, -1, -1, -1, -1, -1, -1, -1, 7, 6, 5, 4, 3, 2, 1, 0));
    const __m256i index = _mm256_add_epi64(_mm256_set1_epi64x((long long)block),
                                           _mm256_setr_epi64x(0, 0, 1, 0));
    return _mm256_shuffle_epi8(index, turned);
}

VAES256_INLINE void encrypt(__m256i state[VECTORS], const __m256i counters[VECTORS],
                            const secagg_mask_schedule *key)
{
    for (int i = 0; i < VECTORS; i++)
        state[i] = _mm256_xor_si256(round_key(key, 0), counters[i]);
    for (int r = 1; r < ROUNDS; r++)
        for (int i = 0; i < VECTORS; i++)
            state[i] = _mm256_aesenc_epi128(state[i], round_key(key, r));
    for (int i = 0; i < VECTORS; i++)
        state[i] = _mm256_aesenclast_epi128(state[i], round_key(key, ROUNDS));
}

/* Counters and elements of a group. */
VAES256_INLINE void begin(__m256i counters[VECTORS], __m256i sum[VECTORS], const uint8_t *acc,
                          uint64_t group)
{
    for (int i = 0; i < VECTORS; i++) {
        counters[i] = counter(2 * (VECTORS * group + (uint64_t)i));
        sum[i] = _mm256_loadu_si256((const __m256i *)(acc + 32 * i));
    }
}

VAES256_INLINE __m256i combine(__m256i acc, __m256i mask, int lane, int minus)
{
    if (lane == 32)
        return minus ? _mm256_sub_epi32(acc, mask) : _mm256_add_epi32(acc, mask);
    return minus ? _mm256_sub_epi64(acc, mask) : _mm256_add_epi64(acc, mask);
}

VAES256_INLINE void words(uint8_t *acc, size_t groups, uint64_t first,
                          const secagg_mask_keys *keys, int lane)
{
    for (uint64_t group = first; group < first + groups; group++, acc += GROUP) {
        __m256i counters[VECTORS], sum[VECTORS], state[VECTORS];
        begin(counters, sum, acc, group);
        const secagg_mask_schedule *key = keys->schedules;
        for (size_t j = 0; j < keys->plus; j++, key++) {
            encrypt(state, counters, key);
            for (int i = 0; i < VECTORS; i++)
                sum[i] = combine(sum[i], state[i], lane, 0);
        }
        for (size_t j = 0; j < keys->minus; j++, key++) {
            encrypt(state, counters, key);
            for (int i = 0; i < VECTORS; i++)
                sum[i] = combine(sum[i], state[i], lane, 1);
        }
        for (int i = 0; i < VECTORS; i++)
            _mm256_storeu_si256((__m256i *)(acc + 32 * i), sum[i]);
    }
}

VAES256 static void words32(uint8_t *acc, size_t groups, uint64_t first,
                            const secagg_mask_keys *keys, uint64_t modulus)
{
    (void)modulus;
    words(acc, groups, first, keys, 32);
}

VAES256 static void words64(uint8_t *acc, size_t groups, uint64_t first,
                            const secagg_mask_keys *keys, uint64_t modulus)
{
    (void)modulus;
    words(acc, groups, first, keys, 64);
}

/* (w R) >> 64 from halves of 32 bits; bit l of *rejected says whether w R mod 2^64 is too low. */
VAES256_INLINE __m256i value_of(__m256i w, uint64_t modulus, uint64_t threshold,
                                uint64_t *rejected)
{
    const __m256i half = _mm256_set1_epi64x(0xffffffff);
    const __m256i r0 = _mm256_set1_epi64x((long long)modulus);
    const __m256i r1 = _mm256_set1_epi64x((long long)(modulus >> 32));
    const __m256i w1 = _mm256_srli_epi64(w, 32);
    const __m256i p00 = _mm256_mul_epu32(w, r0), p01 = _mm256_mul_epu32(w, r1);
    const __m256i p10 = _mm256_mul_epu32(w1, r0), p11 = _mm256_mul_epu32(w1, r1);
    /* p10 <= (2^32 - 1)^2, so that the sum of the middle stays below 2^64 */
    const __m256i middle = _mm256_add_epi64(
        p10, _mm256_add_epi64(_mm256_srli_epi64(p00, 32), _mm256_and_si256(p01, half)));
    const __m256i low = _mm256_blend_epi32(p00, _mm256_slli_epi64(middle, 32), 0xaa);
    /* the only comparison is of signed numbers, so the highest bits are turned */
    const __m256i top = _mm256_set1_epi64x((long long)0x8000000000000000);
    const __m256i least = _mm256_set1_epi64x((long long)(threshold ^ 0x8000000000000000));
    const __m256i below = _mm256_cmpgt_epi64(least, _mm256_xor_si256(low, top));
    *rejected = (uint64_t)_mm256_movemask_pd(_mm256_castsi256_pd(below));
    return _mm256_add_epi64(
        p11, _mm256_add_epi64(_mm256_srli_epi64(p01, 32), _mm256_srli_epi64(middle, 32)));
}

/* Draw the rejected values of a group again: the values with set bits; see masks.c. */
VAES256 static __attribute__((noinline)) void redraw(__m256i values[VECTORS], uint64_t rejected,
                                                     uint64_t group,
                                                     const secagg_mask_schedule *key,
                                                     uint64_t modulus)
{
    uint64_t *value = (uint64_t *)values;
    for (uint64_t i = 0; i < GROUP / 8; i++)
        if (SECAGG_PUBLIC((int)(rejected >> i & 1)))
            value[i] = secagg_mask_redraw(key, GROUP / 8 * group + i, modulus,
                                          secagg_aesni_block);
}

/* The values of a key in one group. */
VAES256_INLINE void draw(__m256i values[VECTORS], const __m256i counters[VECTORS],
                         uint64_t group, const secagg_mask_schedule *key, uint64_t modulus,
                         uint64_t threshold)
{
    uint64_t rejected = 0;
    encrypt(values, counters, key);
    for (int i = 0; i < VECTORS; i++) {
        uint64_t some;
        values[i] = value_of(values[i], modulus, threshold, &some);
        rejected |= some << (4 * i);
    }
    if (__builtin_expect(SECAGG_PUBLIC(rejected != 0), 0)) {
        __m256i copy[VECTORS]; /* so that the values of other groups stay in registers */
        for (int i = 0; i < VECTORS; i++)
            copy[i] = values[i];
        redraw(copy, rejected, group, key, modulus);
        for (int i = 0; i < VECTORS; i++)
            values[i] = copy[i];
    }
}

/* x in [-R, R) as the congruent number in [0, R). */
VAES256_INLINE __m256i into_range(__m256i x, __m256i r)
{
    const __m256i negative = _mm256_cmpgt_epi64(_mm256_setzero_si256(), x);
    return _mm256_add_epi64(x, _mm256_and_si256(negative, r));
}

VAES256 static void modulo(uint8_t *acc, size_t groups, uint64_t first,
                           const secagg_mask_keys *keys, uint64_t modulus)
{
    const uint64_t threshold = secagg_mask_threshold(modulus);
    const __m256i r = _mm256_set1_epi64x((long long)modulus);
    for (uint64_t group = first; group < first + groups; group++, acc += GROUP) {
        __m256i counters[VECTORS], sum[VECTORS], values[VECTORS];
        begin(counters, sum, acc, group);
        const secagg_mask_schedule *key = keys->schedules;
        for (size_t j = 0; j < keys->plus; j++, key++) {
            draw(values, counters, group, key, modulus, threshold);
            for (int i = 0; i < VECTORS; i++)
                sum[i] = into_range(
                    _mm256_sub_epi64(_mm256_add_epi64(sum[i], values[i]), r), r);
        }
        for (size_t j = 0; j < keys->minus; j++, key++) {
            draw(values, counters, group, key, modulus, threshold);
            for (int i = 0; i < VECTORS; i++)
                sum[i] = into_range(_mm256_sub_epi64(sum[i], values[i]), r);
        }
        for (int i = 0; i < VECTORS; i++)
            _mm256_storeu_si256((__m256i *)(acc + 32 * i), sum[i]);
    }
}

const secagg_mask_tier secagg_masks_vaes = {
    "vaes", vaes_supported, GROUP, secagg_aesni_expand, words32, words64, modulo,
};

#endif /* SECAGG_X86_64 */
