/* Vectors of digits modulo N by AVX-512 IFMA; the inner loops of modular_ifma.c and of
 * modular_ifma_square.c.
 *
 * A number is K digits in radix 2^52; digit k of eight numbers lies in one vector, a number per
 * lane, so that no digit ever crosses lanes ("vertical"). Multiplication is Montgomery's (Math.
 * Comp. 44, 1985) without the last subtraction: R = 2^(52 K) > 4 N, so factors below 2 N give
 * (x y + q N) / R < 2 N.
 *
 * Head-room: a column takes at most 6 K halves of products, below 2^52 each, and the value from
 * before; 6 K + 2 < 2^12, as N has at most 2^14 bits (K = 316).
 */
#ifndef SECAGG_MODULAR_IFMA_H
#define SECAGG_MODULAR_IFMA_H

#include "modular.h"

#include <immintrin.h>

#define TARGET "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma"
#define IFMA __attribute__((target(TARGET)))
#define IFMA_INLINE static inline __attribute__((target(TARGET), always_inline))
#define UNROLL _Pragma("GCC unroll 8")

typedef __m512i eight; /* one digit, or one limb, of eight numbers */

enum {
    LANES = 8,
    DIGIT = 52,
    TILE = 4 /* digits of the second factor in one pass over the accumulators */
};

static const uint64_t MASK = ((uint64_t)1 << DIGIT) - 1;

IFMA_INLINE eight low(eight sum, eight a, eight b) { return _mm512_madd52lo_epu64(sum, a, b); }
IFMA_INLINE eight high(eight sum, eight a, eight b) { return _mm512_madd52hi_epu64(sum, a, b); }
IFMA_INLINE eight all(uint64_t a) { return _mm512_set1_epi64((long long)a); }
IFMA_INLINE eight shift_right(eight a, unsigned bits) { return _mm512_srli_epi64(a, bits); }
IFMA_INLINE eight shift_left(eight a, unsigned bits) { return _mm512_slli_epi64(a, bits); }

/* 8 x 8 numbers of 64 bits. */
IFMA_INLINE void transpose(eight r[LANES])
{
    eight pairs[LANES], fours[LANES];
    UNROLL for (int i = 0; i < LANES; i += 2)
    {
        pairs[i] = _mm512_unpacklo_epi64(r[i], r[i + 1]);
        pairs[i + 1] = _mm512_unpackhi_epi64(r[i], r[i + 1]);
    }
    UNROLL for (int i = 0; i < LANES; i += 4)
    {
        UNROLL for (int j = 0; j < 2; j++)
        {
            fours[i + j] = _mm512_shuffle_i64x2(pairs[i + j], pairs[i + j + 2], 0x88);
            fours[i + j + 2] = _mm512_shuffle_i64x2(pairs[i + j], pairs[i + j + 2], 0xdd);
        }
    }
    UNROLL for (int j = 0; j < 4; j++)
    {
        r[j] = _mm512_shuffle_i64x2(fours[j], fours[j + 4], 0x88);
        r[j + 4] = _mm512_shuffle_i64x2(fours[j], fours[j + 4], 0xdd);
    }
}

/* Digit j of one factor times the first `rows` digits of a tile of the other: window[0..] are
 * columns j.., which become columns j+1... Returns column j, which is complete. */
IFMA_INLINE eight step(eight window[TILE], eight next, eight a, const eight b[TILE],
                       size_t rows)
{
    eight sums[TILE + 1];
    UNROLL for (size_t r = 0; r < TILE; r++) sums[r] = window[r];
    sums[TILE] = next;
    UNROLL for (size_t r = 0; r < rows; r++) sums[r] = low(sums[r], a, b[r]);
    UNROLL for (size_t r = 0; r < rows; r++) sums[r + 1] = high(sums[r + 1], a, b[r]);
    UNROLL for (size_t r = 0; r < TILE; r++) window[r] = sums[r + 1];
    return sums[0];
}

/* sums += a b. */
IFMA_INLINE void add_product(eight *sums, const eight *a, const eight *b, size_t digits)
{
    for (size_t i = 0; i < digits; i += TILE, sums += TILE) {
        eight left[TILE], window[TILE];
        UNROLL for (size_t r = 0; r < TILE; r++)
        {
            left[r] = b[i + r];
            window[r] = sums[r];
        }
        for (size_t j = 0; j < digits; j += TILE)
            UNROLL for (size_t r = 0; r < TILE; r++)
                sums[j + r] = step(window, sums[j + r + TILE], a[j + r], left, TILE);
        UNROLL for (size_t r = 0; r < TILE; r++) sums[digits + r] = window[r];
    }
}

/* sums = a^2, from sums = 0: products of different digits, once, then doubled. */
IFMA_INLINE void add_square(eight *sums, const eight *a, size_t digits)
{
    for (size_t i = 0; i < digits; i += TILE) {
        eight left[TILE], window[TILE], *columns = sums + i;
        UNROLL for (size_t r = 0; r < TILE; r++)
        {
            left[r] = a[i + r];
            window[r] = columns[i + r];
        }
        UNROLL for (size_t r = 0; r < TILE; r++)
            columns[i + r] = step(window, columns[i + r + TILE], a[i + r], left, r);
        for (size_t j = i + TILE; j < digits; j += TILE)
            UNROLL for (size_t r = 0; r < TILE; r++)
                columns[j + r] = step(window, columns[j + r + TILE], a[j + r], left, TILE);
        UNROLL for (size_t r = 0; r < TILE; r++) columns[digits + r] = window[r];
    }
    for (size_t j = 0; j < digits; j++) {
        sums[2 * j] = low(shift_left(sums[2 * j], 1), a[j], a[j]);
        sums[2 * j + 1] = high(shift_left(sums[2 * j + 1], 1), a[j], a[j]);
    }
}

/* The quotients q of a tile of columns, which sums + q N makes zero. Returns the carry into
 * the column above them. */
IFMA_INLINE eight quotients(eight q[TILE], const eight sums[TILE], const secagg_modular *c)
{
    const eight inverse = all(c->inverse);
    eight carry = _mm512_setzero_si512();
    UNROLL for (size_t column = 0; column < TILE; column++)
    {
        eight sum = _mm512_add_epi64(sums[column], carry);
        UNROLL for (size_t r = 0; r < column; r++)
        {
            sum = high(sum, all(c->n[column - 1 - r]), q[r]);
            sum = low(sum, all(c->n[column - r]), q[r]);
        }
        q[column] = low(_mm512_setzero_si512(), sum, inverse);
        carry = shift_right(low(sum, all(c->n[0]), q[column]), DIGIT);
    }
    return carry;
}

/* x = sums / R mod N, of `k` digits, below 2 N when sums < 4 N^2. The quotients replace the lower
 * half of sums; x may be the upper half.
 *
 * The quotients of the next tile are a long chain of dependent steps, and can be known as soon
 * as the columns of that tile are known: the chain is computed there, hidden by this tile's rest.
 */
IFMA_INLINE void divide(eight *x, eight *sums, size_t k, const secagg_modular *c)
{
    const uint64_t *n = c->n;
    eight q[TILE], next[TILE], window[TILE];
    eight carry = quotients(q, sums, c);
    for (size_t i = 0; i < k; i += TILE, sums += TILE) {
        UNROLL for (size_t r = 0; r < TILE; r++) window[r] = sums[TILE + r];
        window[0] = _mm512_add_epi64(window[0], carry);
        UNROLL for (size_t j = 0; j < TILE; j++) /* what the low digits give to these */
        {
            UNROLL for (size_t r = TILE - 1 - j; r < TILE; r++)
            {
                const size_t column = j + r + 1 - TILE;
                window[column] = high(window[column], all(n[j]), q[r]);
                if (column > 0)
                    window[column - 1] = low(window[column - 1], all(n[j]), q[r]);
            }
        }
        UNROLL for (size_t j = TILE; j < 2 * TILE; j++)
            sums[j] = step(window, sums[j + TILE], all(n[j]), q, TILE);
        carry = quotients(next, sums + TILE, c); /* in vain after the last tile */
        for (size_t j = 2 * TILE; j < k; j += TILE)
            UNROLL for (size_t r = 0; r < TILE; r++)
                sums[j + r] = step(window, sums[j + r + TILE], all(n[j + r]), q, TILE);
        UNROLL for (size_t r = 0; r < TILE; r++)
        {
            sums[k + r] = window[r];
            sums[r] = q[r];
            q[r] = next[r];
        }
    }
    carry = _mm512_setzero_si512();
    for (size_t j = 0; j < k; j++) {
        const eight sum = _mm512_add_epi64(sums[j], carry);
        x[j] = _mm512_and_si512(sum, all(MASK));
        carry = shift_right(sum, DIGIT);
    }
}

/* [0, 2 N) to [0, N): the borrows of x - N show the lanes with x >= N, and N is subtracted there.
 * Returns 1 in these lanes, else 0. */
IFMA_INLINE eight reduce(eight *x, size_t k, const secagg_modular *c)
{
    eight borrow = _mm512_setzero_si512(); /* 0 or -1 */
    for (size_t j = 0; j < k; j++) {
        borrow = _mm512_sub_epi64(_mm512_add_epi64(x[j], borrow), all(c->n[j]));
        borrow = _mm512_srai_epi64(borrow, 63);
    }
    const eight subtract = _mm512_andnot_si512(borrow, all(MASK));
    borrow = _mm512_setzero_si512();
    for (size_t j = 0; j < k; j++) {
        const eight n = _mm512_and_si512(all(c->n[j]), subtract);
        const eight sum = _mm512_sub_epi64(_mm512_add_epi64(x[j], borrow), n);
        x[j] = _mm512_and_si512(sum, all(MASK));
        borrow = _mm512_srai_epi64(sum, 63);
    }
    return _mm512_and_si512(subtract, all(1));
}

/* Digits of a number in every lane from its limbs, read into c->wide. */
void secagg_ifma_read(uint64_t *to, const uint64_t *const *rows, size_t words);
void secagg_ifma_write(uint64_t *rows, size_t step, const uint64_t *from, size_t words,
                       size_t count);
void secagg_ifma_choose(uint64_t *to, const uint64_t *powers, size_t entries, uint64_t digit,
                        const secagg_modular *c);
void secagg_ifma_load(uint64_t *to, const uint64_t *rows, size_t step, size_t count,
                      const secagg_modular *c);
/* Limbs of canonical numbers. */
void secagg_ifma_store(uint64_t *rows, const uint64_t *from, size_t count,
                       const secagg_modular *c);
int secagg_ifma_supported(void);
size_t secagg_ifma_digits(size_t limbs);

/* The tier for N = n^2; NULL if n does not fill its limbs, or has not half of N's digits. */
const secagg_modular_tier *secagg_ifma_of_square(const secagg_modulus *modulus);

#endif
