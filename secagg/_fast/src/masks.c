/* acc ± PRG(key) for many keys in one pass over acc; specified by reference_masks.py.
 *
 * The stream is cut into groups of 8 counter blocks, 128 bytes. Groups are the outer loop and
 * keys the inner one, so that the accumulators stay in registers while 8 independent AES
 * states hide the latency of the rounds. The group at either end, which the vector may cover
 * in part, goes through a scratch group.
 *
 * A faster implementation is another row in secagg_mask_tiers.
 */
#include "kernels.h"

#include <string.h>

void secagg_wipe(void *secret, size_t bytes)
{
    memset(secret, 0, bytes);
    __asm__ volatile("" : : "r"(secret) : "memory");
}

#if defined(__x86_64__)

#include <immintrin.h>

#define AESNI __attribute__((target("aes,sse4.1")))
#define AESNI_INLINE static inline __attribute__((target("aes,sse4.1"), always_inline))

enum { ROUNDS = 10, BLOCKS = 8, GROUP_BYTES = 16 * BLOCKS };

typedef struct {
    __m128i round[ROUNDS + 1];
    __m128i unused; /* a multiple of a cache line: 192 bytes */
} schedule;

static int aesni_supported(void)
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("aes") && __builtin_cpu_supports("sse4.1");
}

/* One step of the key expansion, FIPS 197 section 5.2: `word` is RotWord, SubWord, Rcon. */
AESNI_INLINE __m128i next_round_key(__m128i key, __m128i word)
{
    key = _mm_xor_si128(key, _mm_slli_si128(key, 4));
    key = _mm_xor_si128(key, _mm_slli_si128(key, 8));
    return _mm_xor_si128(key, _mm_shuffle_epi32(word, 0xff));
}

#define EXPAND(i, rcon)                                                                       \
    round[i] = key = next_round_key(key, _mm_aeskeygenassist_si128(key, rcon))

AESNI static void aesni_expand(void *schedules, const uint8_t *keys, size_t k)
{
    for (size_t j = 0; j < k; j++) {
        __m128i *round = ((schedule *)schedules)[j].round;
        __m128i key = round[0] = _mm_loadu_si128((const __m128i *)(keys + 16 * j));
        EXPAND(1, 0x01);
        EXPAND(2, 0x02);
        EXPAND(3, 0x04);
        EXPAND(4, 0x08);
        EXPAND(5, 0x10);
        EXPAND(6, 0x20);
        EXPAND(7, 0x40);
        EXPAND(8, 0x80);
        EXPAND(9, 0x1b);
        EXPAND(10, 0x36);
    }
}

/* Domain and block index, both big-endian. */
AESNI_INLINE __m128i counter(uint64_t domain, uint64_t block)
{
    return _mm_set_epi64x((long long)__builtin_bswap64(block),
                          (long long)__builtin_bswap64(domain));
}

AESNI_INLINE void encrypt_group(__m128i state[BLOCKS], const __m128i counters[BLOCKS],
                                const schedule *key)
{
    for (int i = 0; i < BLOCKS; i++)
        state[i] = _mm_xor_si128(key->round[0], counters[i]);
    for (int r = 1; r < ROUNDS; r++)
        for (int i = 0; i < BLOCKS; i++)
            state[i] = _mm_aesenc_si128(state[i], key->round[r]);
    for (int i = 0; i < BLOCKS; i++)
        state[i] = _mm_aesenclast_si128(state[i], key->round[ROUNDS]);
}

AESNI_INLINE __m128i combine(__m128i acc, __m128i mask, int lane, int minus)
{
    if (lane == 32)
        return minus ? _mm_sub_epi32(acc, mask) : _mm_add_epi32(acc, mask);
    return minus ? _mm_sub_epi64(acc, mask) : _mm_add_epi64(acc, mask);
}

/* All keys over one group of 128 bytes. */
AESNI_INLINE void words_group(uint8_t *acc, uint64_t group, const schedule *key, size_t plus,
                              size_t minus, int lane)
{
    __m128i counters[BLOCKS], sum[BLOCKS], state[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) {
        counters[i] = counter(0, BLOCKS * group + (uint64_t)i);
        sum[i] = _mm_loadu_si128((const __m128i *)(acc + 16 * i));
    }
    for (size_t j = 0; j < plus; j++, key++) {
        encrypt_group(state, counters, key);
        for (int i = 0; i < BLOCKS; i++)
            sum[i] = combine(sum[i], state[i], lane, 0);
    }
    for (size_t j = 0; j < minus; j++, key++) {
        encrypt_group(state, counters, key);
        for (int i = 0; i < BLOCKS; i++)
            sum[i] = combine(sum[i], state[i], lane, 1);
    }
    for (int i = 0; i < BLOCKS; i++)
        _mm_storeu_si128((__m128i *)(acc + 16 * i), sum[i]);
}

/* The same mod R: every 64-bit word w becomes (w R) >> 64 unless it is rejected. */
AESNI static void modulo_group(uint64_t acc[2 * BLOCKS], uint64_t group, const schedule *key,
                               size_t plus, size_t minus, uint64_t modulus)
{
    const uint64_t threshold = (0 - modulus) % modulus; /* 2^64 mod R */
    __m128i counters[BLOCKS], state[BLOCKS];
    uint64_t words[2 * BLOCKS];
    for (int i = 0; i < BLOCKS; i++)
        counters[i] = counter(0, BLOCKS * group + (uint64_t)i);
    for (size_t j = 0; j < plus + minus; j++, key++) {
        encrypt_group(state, counters, key);
        for (int i = 0; i < BLOCKS; i++)
            _mm_storeu_si128((__m128i *)(words + 2 * i), state[i]);
        const uint64_t sign = j < plus ? 0 : ~(uint64_t)0;
        for (int i = 0; i < 2 * BLOCKS; i++) {
            unsigned __int128 wide = (unsigned __int128)words[i] * modulus;
            /* Rejected: the same word of the next domain. The rejected words are known then, but
             * tell nothing of the mask, which comes from other blocks of the cipher. */
            for (uint64_t domain = 1;
                 __builtin_expect(SECAGG_PUBLIC((uint64_t)wide < threshold), 0); domain++) {
                const __m128i again = counter(domain, BLOCKS * group + (uint64_t)(i / 2));
                __m128i block = _mm_xor_si128(again, key->round[0]);
                for (int r = 1; r < ROUNDS; r++)
                    block = _mm_aesenc_si128(block, key->round[r]);
                block = _mm_aesenclast_si128(block, key->round[ROUNDS]);
                uint64_t pair[2];
                _mm_storeu_si128((__m128i *)pair, block);
                wide = (unsigned __int128)pair[i % 2] * modulus;
            }
            const uint64_t value = (uint64_t)(wide >> 64);
            /* value or R - value, so the sum is in [0, 2R); a branch would be a coin toss. */
            const uint64_t less = acc[i] + ((value ^ sign) - sign) + (modulus & sign) - modulus;
            acc[i] = less + (modulus & (0 - (less >> 63)));
        }
    }
    secagg_wipe(words, sizeof words);
}

/* Run BODY(pointer to 128 bytes of acc, index of the group) over a vector that starts at byte
 * `from` of the stream; groups that it covers in part go through `edge`. */
#define FOR_EACH_GROUP(acc, bytes, from, BODY)                                                \
    do {                                                                                      \
        uint8_t *at = (uint8_t *)(acc);                                                       \
        size_t left = (bytes);                                                                \
        uint64_t group = (from) / GROUP_BYTES;                                                \
        size_t skip = (size_t)((from) % GROUP_BYTES);                                         \
        for (; left > 0; group++, skip = 0) {                                                 \
            if (skip == 0 && left >= GROUP_BYTES) {                                           \
                BODY(at, group);                                                              \
                at += GROUP_BYTES;                                                            \
                left -= GROUP_BYTES;                                                          \
                continue;                                                                     \
            }                                                                                 \
            uint64_t edge[GROUP_BYTES / 8] = {0};                                             \
            const size_t part = left < GROUP_BYTES - skip ? left : GROUP_BYTES - skip;        \
            memcpy((uint8_t *)edge + skip, at, part);                                         \
            BODY((uint8_t *)edge, group);                                                     \
            memcpy(at, (uint8_t *)edge + skip, part);                                         \
            secagg_wipe(edge, sizeof edge);                                                   \
            at += part;                                                                       \
            left -= part;                                                                     \
        }                                                                                     \
    } while (0)

AESNI static void aesni_words32(uint32_t *acc, size_t d, const void *schedules, size_t plus,
                                size_t minus, uint64_t start)
{
#define BODY(at, group) words_group(at, group, schedules, plus, minus, 32)
    FOR_EACH_GROUP(acc, 4 * d, 4 * start, BODY);
#undef BODY
}

AESNI static void aesni_words64(uint64_t *acc, size_t d, const void *schedules, size_t plus,
                                size_t minus, uint64_t start)
{
#define BODY(at, group) words_group(at, group, schedules, plus, minus, 64)
    FOR_EACH_GROUP(acc, 8 * d, 8 * start, BODY);
#undef BODY
}

AESNI static void aesni_modulo(uint64_t *acc, size_t d, const void *schedules, size_t plus,
                               size_t minus, uint64_t modulus, uint64_t start)
{
#define BODY(at, group) modulo_group((uint64_t *)(at), group, schedules, plus, minus, modulus)
    FOR_EACH_GROUP(acc, 8 * d, 8 * start, BODY);
#undef BODY
}

#endif /* __x86_64__ */

const secagg_mask_tier secagg_mask_tiers[] = {
#if defined(__x86_64__)
    {"aesni", aesni_supported, sizeof(schedule), aesni_expand, aesni_words32, aesni_words64,
     aesni_modulo},
#endif
    {NULL, NULL, 0, NULL, NULL, NULL, NULL},
};
