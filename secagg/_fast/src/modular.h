/* Batches of numbers modulo one odd N: modular.c holds the algorithms, once, over the
 * arithmetic of a tier; specified by reference_modular.py.
 *
 * A tier computes with `lanes` numbers side by side: word j * lanes + l is digit j of number l.
 * Between multiplications numbers are in Montgomery's form x R mod N, and only `store` makes
 * them canonical. Nothing branches, or chooses an address, on the value of a number.
 */
#ifndef SECAGG_MODULAR_H
#define SECAGG_MODULAR_H

#include <stddef.h>
#include <stdint.h>

enum { SECAGG_MODULAR_LIMBS = 256 }; /* at most: N < 2^16384 */

typedef struct {
    size_t limbs, digits;
    uint64_t inverse; /* -1/N mod 2^64, or -1/n in the tier for N = n^2 */
    uint64_t *n;      /* digits of N, or n, once */
    uint64_t *square; /* R^2 mod N in every lane */
    uint64_t *one;    /* 1 in every lane */
    uint64_t *sums;   /* the columns of a product, twice the digits */
    uint64_t *wide;   /* limbs on their way in and out */
} secagg_modular;

typedef struct secagg_modular_tier secagg_modular_tier;

typedef struct {
    const secagg_modular_tier *tier;
    const uint64_t *n, *square; /* N and R^2 mod N */
    const uint64_t *root;       /* square root of N, if root_limbs > 0 */
    size_t limbs, root_limbs;
} secagg_modulus;

struct secagg_modular_tier {
    const char *name;
    int (*supported)(void);
    size_t lanes, digit_bits;
    size_t (*digits)(size_t limbs);
    /* Set n and square; limbs, digits, inverse and one are set. */
    void (*begin)(secagg_modular *c, const secagg_modulus *modulus);
    /* out = a b / R; out may be a or b, and a = b, the same place, is faster. */
    void (*multiply)(uint64_t *out, const uint64_t *a, const uint64_t *b,
                     const secagg_modular *c);
    /* From and to `count` <= lanes rows of limbs, `step` words apart; count >= 1, and lanes
     * beyond `count` have some row again. */
    void (*load)(uint64_t *x, const uint64_t *rows, size_t step, size_t count,
                 const secagg_modular *c);
    void (*store)(uint64_t *rows, uint64_t *x, size_t count, const secagg_modular *c);
    /* x = powers[digit], a number each, reading all of them. */
    void (*choose)(uint64_t *x, const uint64_t *powers, size_t entries, uint64_t digit,
                   const secagg_modular *c);
    /* The words of every lane in a row, with one pointer for each, or as store has them. */
    void (*read)(uint64_t *x, const uint64_t *const *rows, size_t words);
    void (*write)(uint64_t *rows, size_t step, const uint64_t *x, size_t words, size_t count);
    /* The tier for a square, faster with the same results; or NULL. */
    const secagg_modular_tier *(*of_square)(const secagg_modulus *modulus);
};

extern const secagg_modular_tier *const secagg_modular_tiers[]; /* best first, then NULL */
extern const secagg_modular_tier secagg_modular_ifma, secagg_modular_portable;

/* 0, or -1 when there is no memory. `b_step` is limbs, or 0 to multiply all by one number. */
int secagg_modular_multiply(uint64_t *out, const uint64_t *a, const uint64_t *b, size_t count,
                            size_t b_step, const secagg_modulus *modulus);
int secagg_modular_power(uint64_t *out, const uint64_t *base, size_t count,
                         const uint64_t *exponent, size_t exponent_limbs,
                         const secagg_modulus *modulus);
int secagg_modular_table(uint64_t *table, const uint64_t *base, size_t windows, unsigned window,
                         const secagg_modulus *modulus);
/* Also -2 when an exponent has bits beyond the windows; `out` is untouched then. */
int secagg_modular_power_fixed(uint64_t *out, const uint64_t *table, const uint64_t *exponents,
                               size_t count, size_t exponent_limbs, size_t windows,
                               unsigned window, const secagg_modulus *modulus);

#endif
