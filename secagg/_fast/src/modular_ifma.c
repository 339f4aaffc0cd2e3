/* Numbers modulo N, eight at a time, by AVX-512 IFMA; specified by reference_modular.py.
 *
 * A number is K digits in radix 2^52; digit k of eight numbers lies in one vector, a number per
 * lane, so that no digit ever crosses lanes ("vertical"). Multiplication is Montgomery's (Math.
 * Comp. 44, 1985) without the last subtraction: R = 2^(52 K) > 4 N, so factors below 2 N give
 * (x y + q N) / R < 2 N. Only results leave [0, 2 N) for [0, N), without a branch.
 *
 * Head-room: a column takes at most 4 K halves of products, below 2^52 each, and a carry before
 * it is normalised; 4 K + 1 < 2^12, as N has at most 2^14 bits (K = 316).
 */
#include "cpu.h"
#include "modular.h"

#if defined(SECAGG_X86_64)

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

static int ifma_supported(void) { return secagg_cpu_has(SECAGG_HAS_AVX512 | SECAGG_HAS_IFMA); }

/* R > 4 N, in whole tiles, and two at least. */
static size_t ifma_digits(size_t limbs)
{
    const size_t tiles = (64 * limbs + 2 + TILE * DIGIT - 1) / (TILE * DIGIT);
    return TILE * (tiles < 2 ? 2 : tiles);
}

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
IFMA static void add_product(eight *sums, const eight *a, const eight *b, size_t digits)
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
IFMA static void add_square(eight *sums, const eight *a, size_t digits)
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

/* x = sums / R mod N, below 2 N when sums < 4 N^2.
 *
 * The quotients of the next tile are a long chain of dependent steps, and can be known as soon
 * as its columns are: they are computed there, so that the rest of this tile hides them.
 */
IFMA static void divide(eight *x, eight *sums, const secagg_modular *c)
{
    const size_t k = c->digits;
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

IFMA static void ifma_multiply(uint64_t *out, const uint64_t *a, const uint64_t *b,
                               const secagg_modular *c)
{
    eight *sums = (eight *)c->sums;
    for (size_t j = 0; j < 2 * c->digits; j++)
        sums[j] = _mm512_setzero_si512();
    if (a == b)
        add_square(sums, (const eight *)a, c->digits);
    else
        add_product(sums, (const eight *)a, (const eight *)b, c->digits);
    divide((eight *)out, sums, c);
}

/* [0, 2 N) to [0, N): N is subtracted, and added again where that was too much. */
IFMA static void reduce(eight *x, const secagg_modular *c)
{
    eight borrow = _mm512_setzero_si512(); /* 0 or -1 */
    for (size_t j = 0; j < c->digits; j++) {
        borrow = _mm512_sub_epi64(_mm512_add_epi64(x[j], borrow), all(c->n[j]));
        borrow = _mm512_srai_epi64(borrow, 63);
    }
    const eight subtract = _mm512_andnot_si512(borrow, all(MASK));
    borrow = _mm512_setzero_si512();
    for (size_t j = 0; j < c->digits; j++) {
        const eight n = _mm512_and_si512(all(c->n[j]), subtract);
        const eight sum = _mm512_sub_epi64(_mm512_add_epi64(x[j], borrow), n);
        x[j] = _mm512_and_si512(sum, all(MASK));
        borrow = _mm512_srai_epi64(sum, 63);
    }
}

IFMA static void ifma_read(uint64_t *to, const uint64_t *const *rows, size_t words)
{
    eight *x = (eight *)to;
    for (size_t i = 0; i < words; i += LANES) {
        const __mmask8 there = (__mmask8)(words - i < LANES ? (1u << (words - i)) - 1 : 0xff);
        eight block[LANES];
        UNROLL for (size_t r = 0; r < LANES; r++)
            block[r] = _mm512_maskz_loadu_epi64(there, rows[r] + i);
        transpose(block);
        for (size_t r = 0; r < LANES && i + r < words; r++)
            x[i + r] = block[r];
    }
}

IFMA static void ifma_write(uint64_t *rows, size_t step, const uint64_t *from, size_t words,
                            size_t count)
{
    const eight *x = (const eight *)from;
    for (size_t i = 0; i < words; i += LANES) {
        const __mmask8 there = (__mmask8)(words - i < LANES ? (1u << (words - i)) - 1 : 0xff);
        eight block[LANES];
        UNROLL for (size_t r = 0; r < LANES; r++)
            block[r] = i + r < words ? x[i + r] : _mm512_setzero_si512();
        transpose(block);
        for (size_t r = 0; r < count; r++)
            _mm512_mask_storeu_epi64(rows + step * r + i, there, block[r]);
    }
}

IFMA static void ifma_load(uint64_t *to, const uint64_t *rows, size_t step, size_t count,
                           const secagg_modular *c)
{
    const uint64_t *row[LANES];
    eight *x = (eight *)to, *wide = (eight *)c->wide;
    for (size_t r = 0; r < LANES; r++)
        row[r] = rows + step * (r < count ? r : count - 1);
    ifma_read(c->wide, row, c->limbs);
    for (size_t j = 0; j < c->digits; j++) {
        const size_t i = DIGIT * j / 64;
        const unsigned skip = DIGIT * j % 64;
        x[j] = _mm512_setzero_si512();
        if (i < c->limbs) /* a shift by 64 gives zero */
            x[j] = shift_right(wide[i], skip);
        if (i + 1 < c->limbs)
            x[j] = _mm512_or_si512(x[j], shift_left(wide[i + 1], 64 - skip));
        x[j] = _mm512_and_si512(x[j], all(MASK));
    }
}

IFMA static void ifma_store(uint64_t *rows, uint64_t *from, size_t count,
                            const secagg_modular *c)
{
    eight *x = (eight *)from, *wide = (eight *)c->wide;
    reduce(x, c);
    for (size_t i = 0; i < c->limbs; i++) { /* from at most three digits; R has bits to spare */
        const size_t j = 64 * i / DIGIT;
        const unsigned skip = 64 * i % DIGIT;
        wide[i] = _mm512_or_si512(shift_right(x[j], skip), shift_left(x[j + 1], DIGIT - skip));
        if (j + 2 < c->digits)
            wide[i] = _mm512_or_si512(wide[i], shift_left(x[j + 2], 2 * DIGIT - skip));
    }
    ifma_write(rows, c->limbs, c->wide, c->limbs, count);
}

IFMA static void ifma_choose(uint64_t *to, const uint64_t *powers, size_t entries,
                             uint64_t digit, const secagg_modular *c)
{
    const eight wanted = all(digit), *power = (const eight *)powers;
    eight *x = (eight *)to;
    for (size_t j = 0; j < c->digits; j += TILE) {
        eight chosen[TILE];
        UNROLL for (size_t r = 0; r < TILE; r++) chosen[r] = _mm512_setzero_si512();
        for (size_t e = 0; e < entries; e++) {
            const __mmask8 hit = _mm512_cmpeq_epi64_mask(wanted, all(e));
            UNROLL for (size_t r = 0; r < TILE; r++)
                chosen[r] = _mm512_mask_mov_epi64(chosen[r], hit, power[e * c->digits + j + r]);
        }
        UNROLL for (size_t r = 0; r < TILE; r++) x[j + r] = chosen[r];
    }
}

const secagg_modular_tier secagg_modular_ifma = {
    "ifma", ifma_supported, LANES, DIGIT, ifma_digits, ifma_multiply,
    ifma_load, ifma_store, ifma_choose, ifma_read, ifma_write,
};

#endif /* SECAGG_X86_64 */
