/* acc ± PRG(key) for many keys: masks.c has the walk over a vector, once, and every other
 * masks_*.c one instruction set; specified by reference_masks.py.
 *
 * The stream of a key is AES-128-CTR. It is cut into groups, a few counter blocks that an
 * instruction set encrypts side by side. Groups are the outer loop and keys the inner one, so
 * that the accumulators stay in registers.
 */
#ifndef SECAGG_MASKS_H
#define SECAGG_MASKS_H

#include "kernels.h"

/* Compiled where the tests run it. clang before 16 knows the instructions only if all code may use
 * them. */
#if defined(__aarch64__) && defined(__linux__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#if defined(__ARM_FEATURE_AES) || !defined(__clang__) || __clang_major__ >= 16
#define SECAGG_ARMV8
#endif
#endif

enum {
    SECAGG_MASK_ROUNDS = 10,      /* of AES-128 */
    SECAGG_MASK_BATCH = 64,       /* keys at a time: their schedules stay in the first cache */
    SECAGG_MASK_LARGEST = 512,    /* bytes of a group, at most */
};

/* Round keys, as they are in memory. */
typedef struct {
    _Alignas(64) uint8_t round[SECAGG_MASK_ROUNDS + 1][16];
} secagg_mask_schedule;

/* Expanded keys: `plus` that add their masks, then `minus` that subtract them. */
typedef struct {
    const secagg_mask_schedule *schedules;
    size_t plus, minus;
} secagg_mask_keys;

/* Go over `groups` whole groups of acc, beginning with group `first` of the stream. The modulus R
 * is of use to `modulo` only, which takes elements below R. */
typedef void secagg_mask_groups(uint8_t *acc, size_t groups, uint64_t first,
                                const secagg_mask_keys *keys, uint64_t modulus);
/* The block of a domain with this index, as two words of the stream. */
typedef void secagg_mask_block(uint64_t words[2], const secagg_mask_schedule *key,
                               uint64_t domain, uint64_t index);

typedef struct {
    const char *name;
    int (*supported)(void);
    size_t group_bytes;
    void (*expand)(secagg_mask_schedule *schedule, const uint8_t key[16]);
    secagg_mask_groups *words32, *words64, *modulo;
} secagg_mask_tier;

extern const secagg_mask_tier *const secagg_mask_tiers[]; /* best first, then NULL */
extern const secagg_mask_tier secagg_masks_vaes512, secagg_masks_vaes, secagg_masks_aesni,
    secagg_masks_armv8;

/* Expand `count` <= SECAGG_MASK_BATCH keys of 16 bytes; a sign is 0 to add or 1 to subtract. */
secagg_mask_keys secagg_mask_expand(secagg_mask_schedule *schedules, const uint8_t *keys,
                                    const uint8_t *negate, size_t count,
                                    const secagg_mask_tier *tier);
/* acc[i] ± word(start + i) mod 2^32 or 2^64, and ± the word's value mod R. */
void secagg_mask_words32(uint32_t *acc, size_t d, uint64_t start, const secagg_mask_keys *keys,
                         const secagg_mask_tier *tier);
void secagg_mask_words64(uint64_t *acc, size_t d, uint64_t start, const secagg_mask_keys *keys,
                         const secagg_mask_tier *tier);
void secagg_mask_modulo(uint64_t *acc, size_t d, uint64_t start, const secagg_mask_keys *keys,
                        uint64_t modulus, const secagg_mask_tier *tier);

/* 2^64 mod R: a word w is rejected if w R mod 2^64 is below this number. */
static inline uint64_t secagg_mask_threshold(uint64_t modulus)
{
    return (0 - modulus) % modulus;
}

/* The value of word `index` after a rejection in domain 0. */
uint64_t secagg_mask_redraw(const secagg_mask_schedule *key, uint64_t index, uint64_t modulus,
                            secagg_mask_block *block);
/* acc[i] ± the value of words[i], which is word first + i, without vector instructions. */
static inline void secagg_mask_fold(uint64_t *acc, const uint64_t *words, size_t n, uint64_t first,
                                    const secagg_mask_schedule *key, int minus, uint64_t modulus,
                                    secagg_mask_block *block)
{
    const uint64_t threshold = secagg_mask_threshold(modulus);
    const uint64_t sign = minus ? ~(uint64_t)0 : 0;
    for (size_t i = 0; i < n; i++) {
        const unsigned __int128 wide = (unsigned __int128)words[i] * modulus;
        uint64_t value = (uint64_t)(wide >> 64);
        if (__builtin_expect(SECAGG_PUBLIC((uint64_t)wide < threshold), 0))
            value = secagg_mask_redraw(key, first + i, modulus, block);
        /* value or R - value, so the sum is in [0, 2R); a branch would be a coin toss. */
        const uint64_t less = acc[i] + ((value ^ sign) - sign) + (modulus & sign) - modulus;
        acc[i] = less + (modulus & (0 - (less >> 63)));
    }
}

/* AES-NI, of all tiers for x86-64. */
void secagg_aesni_expand(secagg_mask_schedule *schedule, const uint8_t key[16]);
secagg_mask_block secagg_aesni_block;

#endif
