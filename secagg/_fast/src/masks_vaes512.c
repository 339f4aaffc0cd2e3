/* Masks with AVX-512 and VAES: 32 blocks of AES side by side, 8 words mod R; see masks.h. */
#include "cpu.h"
#include "masks.h"

#if defined(SECAGG_X86_64)

#include <immintrin.h>

#define TARGET "aes,avx512f,avx512bw,avx512dq,avx512vl,vaes"
#define VAES512 __attribute__((target(TARGET)))
#define VAES512_INLINE static inline __attribute__((target(TARGET), always_inline))

enum { ROUNDS = SECAGG_MASK_ROUNDS, VECTORS = 8, GROUP = 64 * VECTORS };

static int vaes512_supported(void)
{
    return secagg_cpu_has(SECAGG_AES | SECAGG_AVX512 | SECAGG_VAES);
}

VAES512_INLINE __m512i round_key(const secagg_mask_schedule *key, int r)
{
    return _mm512_broadcast_i32x4(_mm_load_si128((const __m128i *)key->round[r]));
}

/* Four counters of domain 0, big-endian, from block index `block` on. */
VAES512_INLINE __m512i counter(uint64_t block)
{
    const __m512i turned = _mm512_broadcast_i32x4(
        _mm_setr_epi8(-1, -1, -1, -1, -1, -1, -1, -1, 7, 6, 5, 4, 3, 2, 1, 0));
    const __m512i index = _mm512_add_epi64(_mm512_set1_epi64((long long)block),
                                           _mm512_setr_epi64(0, 0, 1, 0, 2, 0, 3, 0));
    return _mm512_shuffle_epi8(index, turned);
}

VAES512_INLINE void encrypt(__m512i state[VECTORS], const __m512i counters[VECTORS],
                            const secagg_mask_schedule *key)
{
    for (int i = 0; i < VECTORS; i++)
        state[i] = _mm512_xor_si512(round_key(key, 0), counters[i]);
    for (int r = 1; r < ROUNDS; r++)
        for (int i = 0; i < VECTORS; i++)
            state[i] = _mm512_aesenc_epi128(state[i], round_key(key, r));
    for (int i = 0; i < VECTORS; i++)
        state[i] = _mm512_aesenclast_epi128(state[i], round_key(key, ROUNDS));
}

/* Counters and elements of a group. */
VAES512_INLINE void begin(__m512i counters[VECTORS], __m512i sum[VECTORS], const uint8_t *acc,
                          uint64_t group)
{
    for (int i = 0; i < VECTORS; i++) {
        counters[i] = counter(4 * (VECTORS * group + (uint64_t)i));
        sum[i] = _mm512_loadu_si512(acc + 64 * i);
    }
}

VAES512_INLINE __m512i combine(__m512i acc, __m512i mask, int lane, int minus)
{
    if (lane == 32)
        return minus ? _mm512_sub_epi32(acc, mask) : _mm512_add_epi32(acc, mask);
    return minus ? _mm512_sub_epi64(acc, mask) : _mm512_add_epi64(acc, mask);
}

VAES512_INLINE void words(uint8_t *acc, size_t groups, uint64_t first,
                          const secagg_mask_keys *keys, int lane)
{
    for (uint64_t group = first; group < first + groups; group++, acc += GROUP) {
        __m512i counters[VECTORS], sum[VECTORS], state[VECTORS];
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
            _mm512_storeu_si512(acc + 64 * i, sum[i]);
    }
}

VAES512 static void words32(uint8_t *acc, size_t groups, uint64_t first,
                            const secagg_mask_keys *keys, uint64_t modulus)
{
    (void)modulus;
    words(acc, groups, first, keys, 32);
}

VAES512 static void words64(uint8_t *acc, size_t groups, uint64_t first,
                            const secagg_mask_keys *keys, uint64_t modulus)
{
    (void)modulus;
    words(acc, groups, first, keys, 64);
}

/* (w R) >> 64 from halves of 32 bits; bit l of *rejected says whether w R mod 2^64 is too low. */
VAES512_INLINE __m512i value_of(__m512i w, uint64_t modulus, uint64_t threshold,
                                uint64_t *rejected)
{
    const __m512i half = _mm512_set1_epi64(0xffffffff);
    const __m512i r0 = _mm512_set1_epi64((long long)modulus);
    const __m512i r1 = _mm512_set1_epi64((long long)(modulus >> 32));
    const __m512i w1 = _mm512_srli_epi64(w, 32);
    const __m512i p00 = _mm512_mul_epu32(w, r0), p01 = _mm512_mul_epu32(w, r1);
    const __m512i p10 = _mm512_mul_epu32(w1, r0), p11 = _mm512_mul_epu32(w1, r1);
    /* p10 <= (2^32 - 1)^2, so that the sum of the middle stays below 2^64 */
    const __m512i middle = _mm512_add_epi64(
        p10, _mm512_add_epi64(_mm512_srli_epi64(p00, 32), _mm512_and_si512(p01, half)));
    const __m512i low = _mm512_mask_blend_epi32(0xaaaa, p00, _mm512_slli_epi64(middle, 32));
    *rejected = _mm512_cmplt_epu64_mask(low, _mm512_set1_epi64((long long)threshold));
    return _mm512_add_epi64(
        p11, _mm512_add_epi64(_mm512_srli_epi64(p01, 32), _mm512_srli_epi64(middle, 32)));
}

/* Draw the rejected values of a group again: the values with set bits; see masks.c. */
VAES512 static __attribute__((noinline)) void redraw(__m512i values[VECTORS], uint64_t rejected,
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
VAES512_INLINE void draw(__m512i values[VECTORS], const __m512i counters[VECTORS],
                         uint64_t group, const secagg_mask_schedule *key, uint64_t modulus,
                         uint64_t threshold)
{
    uint64_t rejected = 0;
    encrypt(values, counters, key);
    for (int i = 0; i < VECTORS; i++) {
        uint64_t some;
        values[i] = value_of(values[i], modulus, threshold, &some);
        rejected |= some << (8 * i);
    }
    if (__builtin_expect(SECAGG_PUBLIC(rejected != 0), 0)) {
        __m512i copy[VECTORS]; /* so that the values of other groups stay in registers */
        for (int i = 0; i < VECTORS; i++)
            copy[i] = values[i];
        redraw(copy, rejected, group, key, modulus);
        for (int i = 0; i < VECTORS; i++)
            values[i] = copy[i];
    }
}

VAES512 static void modulo(uint8_t *acc, size_t groups, uint64_t first,
                           const secagg_mask_keys *keys, uint64_t modulus)
{
    const uint64_t threshold = secagg_mask_threshold(modulus);
    const __m512i r = _mm512_set1_epi64((long long)modulus);
    for (uint64_t group = first; group < first + groups; group++, acc += GROUP) {
        __m512i counters[VECTORS], sum[VECTORS], values[VECTORS];
        begin(counters, sum, acc, group);
        const secagg_mask_schedule *key = keys->schedules;
        /* the wrong one of two sums wraps around to something huge */
        for (size_t j = 0; j < keys->plus; j++, key++) {
            draw(values, counters, group, key, modulus, threshold);
            for (int i = 0; i < VECTORS; i++) {
                const __m512i more = _mm512_add_epi64(sum[i], values[i]);
                sum[i] = _mm512_min_epu64(more, _mm512_sub_epi64(more, r));
            }
        }
        for (size_t j = 0; j < keys->minus; j++, key++) {
            draw(values, counters, group, key, modulus, threshold);
            for (int i = 0; i < VECTORS; i++) {
                const __m512i less = _mm512_sub_epi64(sum[i], values[i]);
                sum[i] = _mm512_min_epu64(less, _mm512_add_epi64(less, r));
            }
        }
        for (int i = 0; i < VECTORS; i++)
            _mm512_storeu_si512(acc + 64 * i, sum[i]);
    }
}

const secagg_mask_tier secagg_masks_vaes512 = {
    "vaes512", vaes512_supported, GROUP, secagg_aesni_expand, words32, words64, modulo,
};

#endif /* SECAGG_X86_64 */
