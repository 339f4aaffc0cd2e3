/* Masks with the AES instructions of ARMv8, FIPS 197: 8 independent blocks; see masks.h.
 *
 * AESE is AddRoundKey, then SubBytes and ShiftRows, so a round of FIPS 197 begins one step
 * earlier here, and the last round key is added alone.
 */
#include "masks.h"

#if defined(SECAGG_ARMV8)

#include <arm_neon.h>
#include <string.h>
#include <sys/auxv.h>

#define ARMV8 __attribute__((target("+crypto")))
#define ARMV8_INLINE static inline __attribute__((target("+crypto"), always_inline))

enum { ROUNDS = SECAGG_MASK_ROUNDS, BLOCKS = 8, GROUP = 16 * BLOCKS };

static int armv8_supported(void)
{
    const unsigned long aes = 1 << 3; /* HWCAP_AES of the kernel */
    return (getauxval(AT_HWCAP) & aes) != 0;
}

/* SubWord: ShiftRows moves nothing when all columns are equal. */
ARMV8_INLINE uint32_t substitute(uint32_t word)
{
    const uint8x16_t columns = vreinterpretq_u8_u32(vdupq_n_u32(word));
    return vgetq_lane_u32(vreinterpretq_u32_u8(vaeseq_u8(columns, vdupq_n_u8(0))), 0);
}

/* FIPS 197 section 5.2; words are little-endian, so RotWord turns them to the right. */
ARMV8 static void armv8_expand(secagg_mask_schedule *schedule, const uint8_t key[16])
{
    static const uint8_t constants[ROUNDS] = {0x01, 0x02, 0x04, 0x08, 0x10,
                                              0x20, 0x40, 0x80, 0x1b, 0x36};
    uint32_t word[4];
    memcpy(word, key, sizeof word);
    memcpy(schedule->round[0], word, sizeof word);
    for (int r = 0; r < ROUNDS; r++) {
        const uint32_t last = substitute(word[3]);
        word[0] ^= (last >> 8 | last << 24) ^ constants[r];
        for (int i = 1; i < 4; i++)
            word[i] ^= word[i - 1];
        memcpy(schedule->round[r + 1], word, sizeof word);
    }
    secagg_wipe(word, sizeof word);
}

/* Domain and block index, both big-endian. */
ARMV8_INLINE uint8x16_t counter(uint64_t domain, uint64_t block)
{
    const uint64x2_t both = vcombine_u64(vcreate_u64(__builtin_bswap64(domain)),
                                         vcreate_u64(__builtin_bswap64(block)));
    return vreinterpretq_u8_u64(both);
}

ARMV8 static void armv8_block(uint64_t words[2], const secagg_mask_schedule *key,
                              uint64_t domain, uint64_t index)
{
    uint8x16_t block = counter(domain, index);
    for (int r = 0; r < ROUNDS - 1; r++)
        block = vaesmcq_u8(vaeseq_u8(block, vld1q_u8(key->round[r])));
    block = veorq_u8(vaeseq_u8(block, vld1q_u8(key->round[ROUNDS - 1])),
                     vld1q_u8(key->round[ROUNDS]));
    vst1q_u64(words, vreinterpretq_u64_u8(block));
}

ARMV8_INLINE void encrypt(uint8x16_t state[BLOCKS], const uint8x16_t counters[BLOCKS],
                          const secagg_mask_schedule *key)
{
    for (int i = 0; i < BLOCKS; i++)
        state[i] = counters[i];
    for (int r = 0; r < ROUNDS - 1; r++)
        for (int i = 0; i < BLOCKS; i++)
            state[i] = vaesmcq_u8(vaeseq_u8(state[i], vld1q_u8(key->round[r])));
    for (int i = 0; i < BLOCKS; i++)
        state[i] = veorq_u8(vaeseq_u8(state[i], vld1q_u8(key->round[ROUNDS - 1])),
                            vld1q_u8(key->round[ROUNDS]));
}

ARMV8_INLINE uint8x16_t combine(uint8x16_t acc, uint8x16_t mask, int lane, int minus)
{
    if (lane == 32) {
        const uint32x4_t a = vreinterpretq_u32_u8(acc), b = vreinterpretq_u32_u8(mask);
        return vreinterpretq_u8_u32(minus ? vsubq_u32(a, b) : vaddq_u32(a, b));
    }
    const uint64x2_t a = vreinterpretq_u64_u8(acc), b = vreinterpretq_u64_u8(mask);
    return vreinterpretq_u8_u64(minus ? vsubq_u64(a, b) : vaddq_u64(a, b));
}

ARMV8_INLINE void words(uint8_t *acc, size_t groups, uint64_t first,
                        const secagg_mask_keys *keys, int lane)
{
    for (uint64_t group = first; group < first + groups; group++, acc += GROUP) {
        uint8x16_t counters[BLOCKS], sum[BLOCKS], state[BLOCKS];
        for (int i = 0; i < BLOCKS; i++) {
            counters[i] = counter(0, BLOCKS * group + (uint64_t)i);
            sum[i] = vld1q_u8(acc + 16 * i);
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
            vst1q_u8(acc + 16 * i, sum[i]);
    }
}

ARMV8 static void words32(uint8_t *acc, size_t groups, uint64_t first,
                          const secagg_mask_keys *keys, uint64_t modulus)
{
    (void)modulus;
    words(acc, groups, first, keys, 32);
}

ARMV8 static void words64(uint8_t *acc, size_t groups, uint64_t first,
                          const secagg_mask_keys *keys, uint64_t modulus)
{
    (void)modulus;
    words(acc, groups, first, keys, 64);
}

ARMV8 static void modulo(uint8_t *acc, size_t groups, uint64_t first,
                         const secagg_mask_keys *keys, uint64_t modulus)
{
    uint64_t stream[GROUP / 8];
    for (uint64_t group = first; group < first + groups; group++, acc += GROUP) {
        uint8x16_t counters[BLOCKS], state[BLOCKS];
        for (int i = 0; i < BLOCKS; i++)
            counters[i] = counter(0, BLOCKS * group + (uint64_t)i);
        for (size_t j = 0; j < keys->plus + keys->minus; j++) {
            encrypt(state, counters, keys->schedules + j);
            for (int i = 0; i < BLOCKS; i++)
                vst1q_u64(stream + 2 * i, vreinterpretq_u64_u8(state[i]));
            secagg_mask_fold((uint64_t *)acc, stream, GROUP / 8, GROUP / 8 * group,
                             keys->schedules + j, j >= keys->plus, modulus, armv8_block);
        }
    }
    secagg_wipe(stream, sizeof stream);
}

const secagg_mask_tier secagg_masks_armv8 = {
    "armv8", armv8_supported, GROUP, armv8_expand, words32, words64, modulo,
};

#endif /* SECAGG_ARMV8 */
