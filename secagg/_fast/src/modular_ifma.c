/* Numbers modulo N, eight at a time, by AVX-512 IFMA; specified by reference_modular.py.
 *
 * A number is K digits in radix 2^52; digit k of eight numbers lies in one vector, a number per
 * lane, so that no digit ever crosses lanes ("vertical"). Multiplication is Montgomery's (Math.
 * Comp. 44, 1985) without the last subtraction: R = 2^(52 K) > 4 N, so factors below 2 N give
 * (x y + q N) / R < 2 N. Only results leave [0, 2 N) for [0, N), without a branch.
 *
 * Head-room: a column takes at most 4 K products of 52 bits and one carry before it is
 * normalised, and 4 K + 1 < 2^12 while N has at most 2^14 bits (K <= 320).
 */
#include "modular.h"

#if defined(__x86_64__)

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

static int ifma_supported(void)
{
    __builtin_cpu_init(); /* also asks whether the system keeps the registers */
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512ifma");
}

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

/* The Montgomery quotients of a tile: columns 0..3 of sums + a * b + q * N vanish, but for
 * the carry into column 4, which is returned. */
IFMA_INLINE eight quotients(eight q[TILE], const eight sums[TILE], const eight *a,
                            const eight b[TILE], const secagg_modular *c)
{
    const eight inverse = all(c->inverse);
    eight carry = _mm512_setzero_si512();
    UNROLL for (int column = 0; column < TILE; column++)
    {
        eight mine = sums[column], theirs = carry;
        UNROLL for (int r = 0; r < column; r++)
        {
            mine = high(mine, a[column - 1 - r], b[r]);
            mine = low(mine, a[column - r], b[r]);
            theirs = high(theirs, all(c->n[column - 1 - r]), q[r]);
            theirs = low(theirs, all(c->n[column - r]), q[r]);
        }
        mine = low(mine, a[0], b[column]);
        const eight sum = _mm512_add_epi64(mine, theirs);
        q[column] = low(_mm512_setzero_si512(), sum, inverse);
        carry = shift_right(low(sum, all(c->n[0]), q[column]), DIGIT);
    }
    return carry;
}

/* Digit j of a and of N times the whole tile; window[0..3] are columns j..j+3, which become
 * j+1..j+4. Returns column j, which is complete. */
IFMA_INLINE eight step(eight window[TILE], eight next, eight a, eight n, const eight b[TILE],
                       const eight q[TILE])
{
    UNROLL for (int r = 0; r < TILE; r++)
    {
        window[r] = low(window[r], a, b[r]);
        window[r] = low(window[r], n, q[r]);
    }
    UNROLL for (int r = 1; r < TILE; r++)
    {
        window[r] = high(window[r], a, b[r - 1]);
        window[r] = high(window[r], n, q[r - 1]);
    }
    const eight done = window[0];
    UNROLL for (int r = 1; r < TILE; r++) window[r - 1] = window[r];
    window[TILE - 1] = high(high(next, a, b[TILE - 1]), n, q[TILE - 1]);
    return done;
}

/* out = a b / R mod N, below 2 N as a and b are; out may be either of them.
 *
 * The quotients of the next tile are a long chain of dependent steps, and are known as soon as
 * columns 4..7 are: they are computed there, so that the rest of this tile hides their latency.
 */
IFMA static void ifma_multiply(uint64_t *out, const uint64_t *a_words, const uint64_t *b_words,
                               const secagg_modular *c)
{
    const size_t k = c->digits;
    const uint64_t *n = c->n;
    const eight *a = (const eight *)a_words, *b = (const eight *)b_words;
    eight *sums = (eight *)c->sums, *product = (eight *)out;
    eight left[TILE], q[TILE], window[TILE], done[TILE];
    for (size_t j = 0; j < k; j++)
        sums[j] = _mm512_setzero_si512();
    UNROLL for (size_t r = 0; r < TILE; r++) left[r] = b[r];
    eight carry = quotients(q, sums, a, left, c);
    for (size_t i = TILE; i <= k; i += TILE) {
        UNROLL for (size_t r = 0; r < TILE; r++) window[r] = sums[TILE + r];
        window[0] = _mm512_add_epi64(window[0], carry);
        UNROLL for (int j = 0; j < TILE; j++) /* what digits 0..3 give to columns 4..7 */
        {
            UNROLL for (int r = TILE - 1 - j; r < TILE; r++)
            {
                if (j + r >= TILE) {
                    window[j + r - TILE] = low(window[j + r - TILE], a[j], left[r]);
                    window[j + r - TILE] = low(window[j + r - TILE], all(n[j]), q[r]);
                }
                window[j + r + 1 - TILE] = high(window[j + r + 1 - TILE], a[j], left[r]);
                window[j + r + 1 - TILE] = high(window[j + r + 1 - TILE], all(n[j]), q[r]);
            }
        }
        UNROLL for (size_t j = 0; j < TILE; j++)
            done[j] = step(window, sums[j + 2 * TILE], a[j + TILE], all(n[j + TILE]), left, q);
        eight next_left[TILE], next_q[TILE]; /* in vain after the last tile */
        UNROLL for (size_t r = 0; r < TILE; r++) next_left[r] = b[i < k ? i + r : r];
        carry = quotients(next_q, done, a, next_left, c);
        UNROLL for (size_t j = 0; j < TILE; j++) sums[j] = done[j];
        for (size_t j = 2 * TILE; j < k; j += TILE)
            UNROLL for (size_t r = 0; r < TILE; r++)
                sums[j + r - TILE] =
                    step(window, sums[j + r + TILE], a[j + r], all(n[j + r]), left, q);
        UNROLL for (size_t r = 0; r < TILE; r++)
        {
            sums[k - TILE + r] = window[r];
            left[r] = next_left[r];
            q[r] = next_q[r];
        }
    }
    carry = _mm512_setzero_si512();
    for (size_t j = 0; j < k; j++) {
        const eight sum = _mm512_add_epi64(sums[j], carry);
        product[j] = _mm512_and_si512(sum, all(MASK));
        carry = shift_right(sum, DIGIT);
    }
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

/* Rows of limbs to vertical digits; beyond the last row it is read again. */
IFMA static void ifma_load(uint64_t *to, const uint64_t *rows, size_t step, size_t count,
                           const secagg_modular *c)
{
    const size_t limbs = c->limbs;
    eight *x = (eight *)to, *wide = (eight *)c->wide;
    for (size_t i = 0; i < limbs; i += LANES) {
        const __mmask8 some = limbs - i < LANES ? (__mmask8)((1u << (limbs - i)) - 1) : 0xff;
        eight block[LANES];
        UNROLL for (size_t r = 0; r < LANES; r++)
        {
            const uint64_t *row = rows + step * (r < count ? r : count - 1);
            block[r] = _mm512_maskz_loadu_epi64(some, row + i);
        }
        transpose(block);
        UNROLL for (size_t r = 0; r < LANES; r++) wide[i + r] = block[r];
    }
    for (size_t j = 0; j < c->digits; j++) {
        const size_t i = DIGIT * j / 64;
        const unsigned skip = DIGIT * j % 64;
        x[j] = _mm512_setzero_si512();
        if (i < limbs) { /* a limb above the last is zero, and a shift by 64 gives zero */
            const eight above = i + 1 < limbs ? wide[i + 1] : x[j];
            x[j] = _mm512_or_si512(shift_right(wide[i], skip), shift_left(above, 64 - skip));
            x[j] = _mm512_and_si512(x[j], all(MASK));
        }
    }
}

/* Out of Montgomery's form if need be, reduced, and to rows of limbs. */
IFMA static void ifma_store(uint64_t *rows, uint64_t *from, size_t count,
                            const secagg_modular *c)
{
    const size_t limbs = c->limbs, digits = c->digits;
    eight *x = (eight *)from, *wide = (eight *)c->wide;
    reduce(x, c);
    for (size_t i = 0; i < limbs; i++) {
        const size_t j = 64 * i / DIGIT;
        const unsigned skip = 64 * i % DIGIT;
        eight limb = shift_right(x[j], skip);
        if (j + 1 < digits)
            limb = _mm512_or_si512(limb, shift_left(x[j + 1], DIGIT - skip));
        if (j + 2 < digits)
            limb = _mm512_or_si512(limb, shift_left(x[j + 2], 2 * DIGIT - skip));
        wide[i] = limb;
    }
    for (size_t i = 0; i < limbs; i += LANES) {
        const __mmask8 some = limbs - i < LANES ? (__mmask8)((1u << (limbs - i)) - 1) : 0xff;
        eight block[LANES];
        UNROLL for (size_t r = 0; r < LANES; r++) block[r] = wide[i + r];
        transpose(block);
        for (size_t r = 0; r < count; r++)
            _mm512_mask_storeu_epi64(rows + limbs * r + i, some, block[r]);
    }
}

IFMA static void ifma_choose(uint64_t *to, const uint64_t *powers, size_t entries,
                             uint64_t digit, const secagg_modular *c)
{
    const eight wanted = all(digit), *power = (const eight *)powers;
    eight *x = (eight *)to;
    for (size_t j = 0; j < c->digits; j++) {
        eight chosen = _mm512_setzero_si512();
        for (size_t e = 0; e < entries; e++) {
            const __mmask8 hit = _mm512_cmpeq_epi64_mask(wanted, all(e));
            chosen = _mm512_mask_mov_epi64(chosen, hit, power[e * c->digits + j]);
        }
        x[j] = chosen;
    }
}

IFMA static void ifma_read(uint64_t *to, const uint64_t *const *entries,
                           const secagg_modular *c)
{
    eight *x = (eight *)to;
    for (size_t j = 0; j < c->digits; j += LANES) {
        eight block[LANES];
        UNROLL for (size_t r = 0; r < LANES; r++)
            block[r] = _mm512_loadu_si512(entries[r] + j);
        transpose(block);
        UNROLL for (size_t r = 0; r < LANES; r++)
            if (r < c->digits - j)
                x[j + r] = block[r];
    }
}

IFMA static void ifma_write(uint64_t *table, size_t step, const uint64_t *from, size_t count,
                            const secagg_modular *c)
{
    const eight *x = (const eight *)from;
    for (size_t j = 0; j < c->digits; j += LANES) {
        eight block[LANES];
        UNROLL for (size_t r = 0; r < LANES; r++)
            block[r] = r < c->digits - j ? x[j + r] : _mm512_setzero_si512();
        transpose(block);
        for (size_t r = 0; r < count; r++)
            _mm512_storeu_si512(table + step * r + j, block[r]);
    }
}

const secagg_modular_tier secagg_modular_ifma = {
    "ifma", ifma_supported, LANES, DIGIT, ifma_digits, ifma_multiply,
    ifma_load, ifma_store, ifma_choose, ifma_read, ifma_write,
};

#endif /* __x86_64__ */
