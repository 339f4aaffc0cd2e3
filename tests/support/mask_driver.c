/* The masks of one tier without Python, for processors that this machine emulates.
 *
 * Standard input has cases: lane, d, k, modulus and start as u64, then the signs, the keys and acc.
 * Standard output gets acc after each case. The name of the tier is the argument.
 */
#include "masks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LANE, D, K, MODULUS, START, NUMBERS };

static void *bytes(size_t n)
{
    void *read = malloc(n + 1);
    if (fread(read, 1, n, stdin) != n)
        exit(3);
    return read;
}

int main(int count, char **arguments)
{
    const secagg_mask_tier *const *tier = secagg_mask_tiers;
    while (*tier != NULL && (count != 2 || strcmp((*tier)->name, arguments[1]) != 0))
        tier++;
    if (*tier == NULL || !(*tier)->supported())
        return 2;
    uint64_t is[NUMBERS];
    while (fread(is, sizeof is, 1, stdin) == 1) {
        uint8_t *negate = bytes(is[K]), *keys = bytes(16 * is[K]);
        void *acc = bytes(is[LANE] / 8 * is[D]);
        secagg_mask_schedule schedules[SECAGG_MASK_BATCH];
        const secagg_mask_keys all = secagg_mask_expand(schedules, keys, negate, is[K], *tier);
        if (is[MODULUS] != 0)
            secagg_mask_modulo(acc, is[D], is[START], &all, is[MODULUS], *tier);
        else if (is[LANE] == 32)
            secagg_mask_words32(acc, is[D], is[START], &all, *tier);
        else
            secagg_mask_words64(acc, is[D], is[START], &all, *tier);
        fwrite(acc, is[LANE] / 8, is[D], stdout);
        free(negate);
        free(keys);
        free(acc);
    }
    return 0;
}
