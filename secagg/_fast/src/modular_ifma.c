/* Numbers modulo N, eight at a time, by AVX-512 IFMA; specified by reference_modular.py.
 *
 * modular_ifma.h has the loops. Only results leave [0, 2 N) for [0, N), without a branch.
 */
#include "cpu.h"
#include "modular.h"

#if defined(SECAGG_X86_64)

#include "modular_ifma.h"

int secagg_ifma_supported(void) { return secagg_cpu_has(SECAGG_AVX512 | SECAGG_IFMA); }

/* R > 4 N, in whole tiles, and two at least. */
size_t secagg_ifma_digits(size_t limbs)
{
    const size_t tiles = (64 * limbs + 2 + TILE * DIGIT - 1) / (TILE * DIGIT);
    return TILE * (tiles < 2 ? 2 : tiles);
}

static void ifma_begin(secagg_modular *c, const secagg_modulus *modulus)
{
    secagg_ifma_load(c->square, modulus->n, 0, 1, c);
    for (size_t i = 0; i < c->digits; i++)
        c->n[i] = c->square[i * LANES];
    secagg_ifma_load(c->square, modulus->square, 0, 1, c);
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
    divide((eight *)out, sums, c->digits, c);
}

IFMA void secagg_ifma_read(uint64_t *to, const uint64_t *const *rows, size_t words)
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

IFMA void secagg_ifma_write(uint64_t *rows, size_t step, const uint64_t *from, size_t words,
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

IFMA void secagg_ifma_load(uint64_t *to, const uint64_t *rows, size_t step, size_t count,
                           const secagg_modular *c)
{
    const uint64_t *row[LANES];
    eight *x = (eight *)to, *wide = (eight *)c->wide;
    for (size_t r = 0; r < LANES; r++)
        row[r] = rows + step * (r < count ? r : count - 1);
    secagg_ifma_read(c->wide, row, c->limbs);
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

IFMA void secagg_ifma_store(uint64_t *rows, const uint64_t *from, size_t count,
                            const secagg_modular *c)
{
    const eight *x = (const eight *)from;
    eight *wide = (eight *)c->wide;
    for (size_t i = 0; i < c->limbs; i++) { /* from at most three digits; R has bits to spare */
        const size_t j = 64 * i / DIGIT;
        const unsigned skip = 64 * i % DIGIT;
        wide[i] = _mm512_or_si512(shift_right(x[j], skip), shift_left(x[j + 1], DIGIT - skip));
        if (j + 2 < c->digits)
            wide[i] = _mm512_or_si512(wide[i], shift_left(x[j + 2], 2 * DIGIT - skip));
    }
    secagg_ifma_write(rows, c->limbs, c->wide, c->limbs, count);
}

IFMA static void ifma_store(uint64_t *rows, uint64_t *from, size_t count,
                            const secagg_modular *c)
{
    reduce((eight *)from, c->digits, c);
    secagg_ifma_store(rows, from, count, c);
}

IFMA void secagg_ifma_choose(uint64_t *to, const uint64_t *powers, size_t entries,
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
    "ifma", secagg_ifma_supported, LANES, DIGIT, secagg_ifma_digits, ifma_begin, ifma_multiply,
    secagg_ifma_load, ifma_store, secagg_ifma_choose, secagg_ifma_read, secagg_ifma_write,
    secagg_ifma_of_square,
};

#endif /* SECAGG_X86_64 */
