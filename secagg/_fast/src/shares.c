/* Shares of discrete Gaussian noise in constant time; specified by reference_shares.py.
 *
 * Every proposal takes four words and the same operations. Which proposals are accepted becomes
 * known, and says nothing of the samples: those come from other words.
 *
 * Bounds, for k < 2^28 and x <= 22: n = z (z + 2 k x) < 2^62, and n * scale < 2^125.
 */
#include "kernels.h"

typedef unsigned __int128 uint128;

enum { WORDS = 4, DEGREE = 15 };

/* ln(2)^i / i! in units of 2^-63 */
static const uint64_t TAYLOR[DEGREE + 1] = {
    0x8000000000000000, 0x58b90bfbe8e7bcd5, 0x1ebfbdff82c58ea8, 0x071ac235c1282fe2,
    0x013b2ab6fba4e772, 0x002bb0ffcf14ce62, 0x00050c244be1b1e1, 0x00007ff2ff1622c3,
    0x00000b160111d2e4, 0x000000da929e9caf, 0x0000000f267a8ac5, 0x00000000f465639a,
    0x000000000e1deb28, 0x0000000000c0b0c9, 0x0000000000098a4b, 0x00000000000070db,
};

static inline uint64_t high_product(uint64_t a, uint64_t b)
{
    return (uint64_t)(((uint128)a * b) >> 64);
}

/* 2^-f in units of 2^-63, for a fraction f in units of 2^-64. */
static inline uint64_t power_of_half(uint64_t f)
{
    uint64_t y = TAYLOR[DEGREE];
    for (int i = DEGREE - 1; i >= 0; i--)
        y = TAYLOR[i] - high_product(f, y);
    return y;
}

size_t secagg_gaussian_shares(int64_t *out, size_t d, const uint64_t *words, size_t m,
                              const secagg_share_law *law, size_t *used)
{
    const uint64_t k = law->k, uneven = (0 - k) % k; /* 2^64 mod k */
    size_t drawn = 0, at = 0;
    for (; drawn < d && m - at >= WORDS; at += WORDS) {
        const uint64_t *w = words + at;
        const uint128 r = ((uint128)w[0] << 64 | w[1]) >> 1;
        const uint64_t negative = w[1] & 1;
        uint64_t x = 0;
        for (size_t j = 0; j < law->entries; j++)
            x += r >= ((uint128)law->table[2 * j] << 64 | law->table[2 * j + 1]);
        const uint128 product = (uint128)w[2] * k;
        const uint64_t z = (uint64_t)(product >> 64);
        /* n / (2 s^2 ln 2), in units of 2^-64 */
        const uint128 exponent = ((uint128)(z * (z + 2 * k * x)) * law->scale) >> law->shift;
        const uint64_t chance =
            power_of_half((uint64_t)exponent) >> ((uint64_t)(exponent >> 64) & 63);
        const uint64_t y = k * x + z;
        /* -0 would give 0 twice its probability */
        const uint64_t minus_zero = negative & (y == 0);
        const uint64_t accepted =
            ((w[3] >> 1) < chance) & ((uint64_t)product >= uneven) & (minus_zero ^ 1);
        out[drawn] = (int64_t)((y ^ (0 - negative)) + negative);
        drawn += (size_t)SECAGG_PUBLIC((int)accepted);
    }
    *used = at;
    return drawn;
}
