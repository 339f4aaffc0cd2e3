/* Masks on any instruction set: the walk over a vector, and uniform values mod R; see masks.h.
 *
 * A word w becomes (w R) >> 64 unless w R mod 2^64 < 2^64 mod R, which would make the value
 * biased (Lemire, ACM TOMACS 29(1), 2019). Then the same word of domain 1, 2, ... is tried.
 */
#include "cpu.h"
#include "masks.h"

#include <string.h>

const secagg_mask_tier *const secagg_mask_tiers[] = {
#if defined(SECAGG_X86_64)
    &secagg_masks_vaes512,
    &secagg_masks_vaes,
    &secagg_masks_aesni,
#endif
#if defined(SECAGG_ARMV8)
    &secagg_masks_armv8,
#endif
    NULL,
};

void secagg_wipe(void *secret, size_t bytes)
{
    memset(secret, 0, bytes);
    __asm__ volatile("" : : "r"(secret) : "memory");
}

void secagg_wipe_below(void)
{
    uint8_t below[1 << 14];
    secagg_wipe(below, sizeof below);
}

secagg_mask_keys secagg_mask_expand(secagg_mask_schedule *schedules, const uint8_t *keys,
                                    const uint8_t *negate, size_t count,
                                    const secagg_mask_tier *tier)
{
    secagg_mask_keys expanded = {schedules, 0, 0};
    for (size_t j = 0; j < count; j++) /* from both ends */
        tier->expand(negate[j] ? schedules + (count - ++expanded.minus)
                               : schedules + expanded.plus++,
                     keys + 16 * j);
    return expanded;
}

/* The part of a group that a vector covers, through a scratch group. */
static void go_over_part(uint8_t *acc, size_t skip, size_t bytes, uint64_t group,
                         const secagg_mask_keys *keys, uint64_t modulus,
                         secagg_mask_groups *go_over)
{
    uint64_t scratch[SECAGG_MASK_LARGEST / 8] = {0};
    memcpy((uint8_t *)scratch + skip, acc, bytes);
    go_over((uint8_t *)scratch, 1, group, keys, modulus);
    memcpy(acc, (uint8_t *)scratch + skip, bytes);
    secagg_wipe(scratch, sizeof scratch);
}

/* A vector of some bytes, which begins at byte `from` of the stream. */
static void walk(uint8_t *acc, size_t bytes, uint64_t from, const secagg_mask_keys *keys,
                 uint64_t modulus, size_t size, secagg_mask_groups *go_over)
{
    uint64_t group = from / size;
    const size_t skip = from % size;
    if (skip != 0) {
        const size_t part = bytes < size - skip ? bytes : size - skip;
        go_over_part(acc, skip, part, group++, keys, modulus, go_over);
        acc += part;
        bytes -= part;
    }
    const size_t whole = bytes / size, rest = bytes % size;
    go_over(acc, whole, group, keys, modulus);
    if (rest != 0)
        go_over_part(acc + whole * size, 0, rest, group + whole, keys, modulus, go_over);
}

void secagg_mask_words32(uint32_t *acc, size_t d, uint64_t start, const secagg_mask_keys *keys,
                         const secagg_mask_tier *tier)
{
    walk((uint8_t *)acc, 4 * d, 4 * start, keys, 0, tier->group_bytes, tier->words32);
}

void secagg_mask_words64(uint64_t *acc, size_t d, uint64_t start, const secagg_mask_keys *keys,
                         const secagg_mask_tier *tier)
{
    walk((uint8_t *)acc, 8 * d, 8 * start, keys, 0, tier->group_bytes, tier->words64);
}

void secagg_mask_modulo(uint64_t *acc, size_t d, uint64_t start, const secagg_mask_keys *keys,
                        uint64_t modulus, const secagg_mask_tier *tier)
{
    walk((uint8_t *)acc, 8 * d, 8 * start, keys, modulus, tier->group_bytes, tier->modulo);
}

uint64_t secagg_mask_redraw(const secagg_mask_schedule *key, uint64_t index, uint64_t modulus,
                            secagg_mask_block *block)
{
    const uint64_t threshold = secagg_mask_threshold(modulus);
    uint64_t words[2];
    unsigned __int128 wide;
    uint64_t domain = 1;
    do {
        block(words, key, domain++, index / 2);
        wide = (unsigned __int128)words[index % 2] * modulus;
        /* The rejected words are known then, but tell nothing of the mask, which comes from
         * other blocks of the cipher. */
    } while (SECAGG_PUBLIC((uint64_t)wide < threshold));
    return (uint64_t)(wide >> 64);
}
