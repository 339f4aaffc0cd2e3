/* Masks with AES-NI, FIPS 197: 8 independent blocks hide the latency of the rounds; see masks.h. */
#include "cpu.h"
#include "masks.h"

#if defined(SECAGG_X86_64)

#include <immintrin.h>

#define AESNI __attribute__((target("aes,sse4.1")))
#define AESNI_INLINE static inline __attribute__((target("aes,sse4.1"), always_inline))

enum { ROUNDS = SECAGG_MASK_ROUNDS, BLOCKS = 8, GROUP = 16 * BLOCKS };

static int aesni_supported(void) { return secagg_cpu_has(SECAGG_HAS_AES); }

/* The next round key, FIPS 197 section 5.2: `word` is RotWord, SubWord, Rcon of the last word. */
AESNI_INLINE __m128i next_round_key(__m128i key, __m128i word)
{
    key = _mm_xor_si128(key, _mm_slli_si128(key, 4));
    key = _mm_xor_si128(key, _mm_slli_si128(key, 8));
    return _mm_xor_si128(key, _mm_shuffle_epi32(word, 0xff));
}

AESNI void secagg_aesni_expand(secagg_mask_schedule *schedule, const uint8_t key[16])
{
    __m128i *round = (__m128i *)schedule->round;
    __m128i last = round[0] = _mm_loadu_si128((const __m128i *)key);
    /* the constant is a part of the instruction, so there is no loop */
    round[1] = last = next_round_key(last, _mm_aeskeygenassist_si128(last, 0x01));
    round[2] = last = next_round_key(last, _mm_aeskeygenassist_si128(last, 0x02));
    round[3] = last = next_round_key(last, _mm_aeskeygenassist_si128(last, 0x04));
    round[4] = last = next_round_key(last, _mm_aeskeygenassist_si128(last, 0x08));
    round[5] = last = next_round_key(last, _mm_aeskeygenassist_si128(last, 0x10));
    round[6] = last = next_round_key(last, _mm_aeskeygenassist_si128(last, 0x20));
    round[7] = last = next_round_key(last, _mm_aeskeygenassist_si128(last, 0x40));
    round[8] = last = next_round_key(last, _mm_aeskeygenassist_si128(last, 0x80));
    round[9] = last = next_round_key(last, _mm_aeskeygenassist_si128(last, 0x1b));
    round[10] = next_round_key(last, _mm_aeskeygenassist_si128(last, 0x36));
}

AESNI_INLINE __m128i round_key(const secagg_mask_schedule *key, int r)
{
    return _mm_load_si128((const __m128i *)key->round[r]);
}

/* Domain and block index, both big-endian. */
AESNI_INLINE __m128i counter(uint64_t domain, uint64_t block)
{
    return _mm_set_epi64x((long long)__builtin_bswap64(block),
                          (long long)__builtin_bswap64(domain));
}

AESNI void secagg_aesni_block(uint64_t words[2], const secagg_mask_schedule *key,
                              uint64_t domain, uint64_t index)
{
    __m128i block = _mm_xor_si128(counter(domain, index), round_key(key, 0));
    for (int r = 1; r < ROUNDS; r++)
        block = _mm_aesenc_si128(block, round_key(key, r));
    _mm_storeu_si128((__m128i *)words, _mm_aesenclast_si128(block, round_key(key, ROUNDS)));
}

AESNI_INLINE void encrypt(__m128i state[BLOCKS], const __m128i counters[BLOCKS],
                          const secagg_mask_schedule *key)
{
    for (int i = 0; i < BLOCKS; i++)
        state[i] = _mm_xor_si128(round_key(key, 0), counters[i]);
    for (int r = 1; r < ROUNDS; r++)
        for (int i = 0; i < BLOCKS; i++)
            state[i] = _mm_aesenc_si128(state[i], round_key(key, r));
    for (int i = 0; i < BLOCKS; i++)
        state[i] = _mm_aesenclast_si128(state[i], round_key(key, ROUNDS));
}

AESNI_INLINE __m128i combine(__m128i acc, __m128i mask, int lane, int minus)
{
    if (lane == 32)
        return minus ? _mm_sub_epi32(acc, mask) : _mm_add_epi32(acc, mask);
    return minus ? _mm_sub_epi64(acc, mask) : _mm_add_epi64(acc, mask);
}

AESNI_INLINE void words(uint8_t *acc, size_t groups, uint64_t first,
                        const secagg_mask_keys *keys, int lane)
{
    for (uint64_t group = first; group < first + groups; group++, acc += GROUP) {
        __m128i counters[BLOCKS], sum[BLOCKS], state[BLOCKS];
        for (int i = 0; i < BLOCKS; i++) {
            counters[i] = counter(0, BLOCKS * group + (uint64_t)i);
            sum[i] = _mm_loadu_si128((const __m128i *)(acc + 16 * i));
        }
        const secagg_mask_schedule *key = keys->schedules;
        for (size_t j = 0; j < keys->plus; j++, key++) {
            encrypt(state, counters, key);
            for (int i = 0; i < BLOCKS; i++)
                sum[i] = combine(sum[i], state[i], lane, 0);
        }
        for (size_t j = 0; j < keys->minus; j++, key++) {
            encrypt(state, counters, key);
            for (int i = 0; i < BLOCKS; i++)
                sum[i] = combine(sum[i], state[i], lane, 1);
        }
        for (int i = 0; i < BLOCKS; i++)
            _mm_storeu_si128((__m128i *)(acc + 16 * i), sum[i]);
    }
}

AESNI static void words32(uint8_t *acc, size_t groups, uint64_t first,
                          const secagg_mask_keys *keys, uint64_t modulus)
{
    (void)modulus;
    words(acc, groups, first, keys, 32);
}

AESNI static void words64(uint8_t *acc, size_t groups, uint64_t first,
                          const secagg_mask_keys *keys, uint64_t modulus)
{
    (void)modulus;
    words(acc, groups, first, keys, 64);
}

AESNI static void modulo(uint8_t *acc, size_t groups, uint64_t first,
                         const secagg_mask_keys *keys, uint64_t modulus)
{
    uint64_t stream[GROUP / 8];
    for (uint64_t group = first; group < first + groups; group++, acc += GROUP) {
        __m128i counters[BLOCKS], state[BLOCKS];
        for (int i = 0; i < BLOCKS; i++)
            counters[i] = counter(0, BLOCKS * group + (uint64_t)i);
        for (size_t j = 0; j < keys->plus + keys->minus; j++) {
            encrypt(state, counters, keys->schedules + j);
            for (int i = 0; i < BLOCKS; i++)
                _mm_storeu_si128((__m128i *)(stream + 2 * i), state[i]);
            secagg_mask_fold((uint64_t *)acc, stream, GROUP / 8, GROUP / 8 * group,
                             keys->schedules + j, j >= keys->plus, modulus,
                             secagg_aesni_block);
        }
    }
    secagg_wipe(stream, sizeof stream);
}

const secagg_mask_tier secagg_masks_aesni = {
    "aesni", aesni_supported, GROUP, secagg_aesni_expand, words32, words64, modulo,
};

#endif /* SECAGG_X86_64 */
