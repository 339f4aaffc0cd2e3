/* Numbers modulo N = n^2, eight at a time, by AVX-512 IFMA; specified by reference_modular.py.
 *
 * A number is x0 + x1 n, by the digits of x0 and then of x1, below 2 n each. With Montgomery's
 * quotient m and t = (x0 y0 + m n) / R, where R = 2^(52 k) > 16 n and k are the digits of n,
 *
 *     x y / R = t + ((x0 y1 + x1 y0 - m) / R mod n) n   mod n^2.
 *
 * So a product takes five products of k digits by k where arithmetic modulo N takes eight: x0 y0,
 * x0 y1, x1 y0 and two reductions modulo n. (Takagi, "Fast RSA-type cryptosystems using n-adic
 * expansion", CRYPTO '97, has such numbers; here Montgomery's quotient is the carry.) To keep - m
 * above zero, a multiple of n with digits of at least 2^52 - 1 is added to - m: `bias`.
 */
#include "cpu.h"
#include "modular.h"

#if defined(SECAGG_X86_64)

#include "modular_ifma.h"

#include <string.h>

/* second -= the quotients m. */
IFMA_INLINE void subtract_quotients(eight *second, const eight *quotient, const secagg_modular *c)
{
    const uint64_t *bias = c->n + c->digits / 2; /* behind the digits of n */
    for (size_t j = 0; j < c->digits / 2; j++)
        second[j] = _mm512_add_epi64(second[j], _mm512_sub_epi64(all(bias[j]), quotient[j]));
}

IFMA static void square_multiply(uint64_t *out, const uint64_t *a, const uint64_t *b,
                                 const secagg_modular *c)
{
    const size_t k = c->digits / 2;
    const eight *x = (const eight *)a, *y = (const eight *)b;
    eight *first = (eight *)c->sums, *second = first + 2 * k, *to = (eight *)out;
    for (size_t j = 0; j < 4 * k; j++)
        first[j] = _mm512_setzero_si512();
    add_product(second, x, y + k, k);
    if (a == b) {
        add_square(first, x, k);
        for (size_t j = 0; j < 2 * k; j++)
            second[j] = shift_left(second[j], 1);
    } else {
        add_product(first, x, y, k);
        add_product(second, x + k, y, k);
    }
    divide(first + k, first, k, c);
    subtract_quotients(second, first, c);
    divide(second + k, second, k, c);
    memcpy(to, first + k, k * sizeof *to);
    memcpy(to + k, second + k, k * sizeof *to);
}

/* X / R in the two parts, from the digits of X. */
IFMA static void split(eight *x, const secagg_modular *c)
{
    const size_t k = c->digits / 2;
    eight *first = (eight *)c->sums, *second = first + 2 * k;
    memcpy(first, x, 2 * k * sizeof *x);
    for (size_t j = 0; j < 2 * k; j++)
        second[j] = _mm512_setzero_si512();
    divide(first + k, first, k, c);
    subtract_quotients(second, first, c);
    divide(second + k, second, k, c);
    memcpy(x, first + k, k * sizeof *x);
    memcpy(x + k, second + k, k * sizeof *x);
}

IFMA static void square_load(uint64_t *to, const uint64_t *rows, size_t step, size_t count,
                             const secagg_modular *c)
{
    secagg_ifma_load(to, rows, step, count, c);
    split((eight *)to, c);
    square_multiply(to, to, c->square, c); /* by R^2 / R */
}

/* sums / R mod n, in place, from k digits: their reduction by n once. */
IFMA static void divide_by_radix(eight *sums, size_t k, const secagg_modular *c)
{
    for (size_t j = k; j < 2 * k; j++)
        sums[j] = _mm512_setzero_si512();
    divide(sums + k, sums, k, c);
    memcpy(sums, sums + k, k * sizeof *sums);
}

/* The bias: 2^52 - 1 in each digit, which is R - 1, and n - (R - 1 mod n) in digits. `square` is
 * R^4, as R^2 is the radix of N. */
IFMA static void find_bias(const secagg_modular *c)
{
    const size_t k = c->digits / 2;
    eight *sums = (eight *)c->sums;
    memcpy(sums, c->square, 2 * k * sizeof *sums);
    divide(sums + k, sums, k, c);
    memcpy(sums, sums + k, k * sizeof *sums); /* R^3 */
    divide_by_radix(sums, k, c);
    divide_by_radix(sums, k, c); /* R mod n, at most n */
    uint64_t *bias = c->n + k;
    int64_t carry = 1;
    for (size_t j = 0; j < k; j++) {
        const int64_t digit = (int64_t)c->n[j] - (int64_t)((uint64_t *)(sums + j))[0] + carry;
        carry = digit >> DIGIT;
        bias[j] = MASK + ((uint64_t)digit & MASK);
    }
}

IFMA static void square_begin(secagg_modular *c, const secagg_modulus *modulus)
{
    secagg_modular root = *c;
    root.limbs = modulus->root_limbs;
    root.digits = c->digits / 2;
    secagg_ifma_load(c->square, modulus->root, 0, 1, &root);
    for (size_t i = 0; i < root.digits; i++)
        c->n[i] = c->square[i * LANES];
    secagg_ifma_load(c->square, modulus->square, 0, 1, c);
    find_bias(c);
    split((eight *)c->square, c);                      /* R^4 / R */
    square_multiply(c->square, c->square, c->one, c); /* R^2 */
}

IFMA static void square_store(uint64_t *rows, uint64_t *from, size_t count,
                              const secagg_modular *c)
{
    const size_t k = c->digits / 2;
    eight *x = (eight *)from, *high_part = x + k, *sums = (eight *)c->sums, *n = sums + 2 * k;
    eight carry = reduce(x, k, c);
    for (size_t j = 0; j < k; j++) {
        const eight sum = _mm512_add_epi64(high_part[j], carry);
        high_part[j] = _mm512_and_si512(sum, all(MASK));
        carry = shift_right(sum, DIGIT);
    }
    reduce(high_part, k, c); /* x1 + 1 is below 2 n, as R > 16 n */
    for (size_t j = 0; j < k; j++) {
        sums[j] = x[j];
        sums[k + j] = _mm512_setzero_si512();
        n[j] = all(c->n[j]);
    }
    add_product(sums, n, high_part, k);
    carry = _mm512_setzero_si512();
    for (size_t j = 0; j < 2 * k; j++) {
        const eight sum = _mm512_add_epi64(sums[j], carry);
        x[j] = _mm512_and_si512(sum, all(MASK));
        carry = shift_right(sum, DIGIT);
    }
    secagg_ifma_store(rows, from, count, c);
}

static const secagg_modular_tier of_square = {
    "ifma", secagg_ifma_supported, LANES, DIGIT, secagg_ifma_digits, square_begin,
    square_multiply, square_load, square_store, secagg_ifma_choose, secagg_ifma_read,
    secagg_ifma_write, NULL,
};

/* R > 16 n, and any number of N's limbs divided by R is below n. */
const secagg_modular_tier *secagg_ifma_of_square(const secagg_modulus *modulus)
{
    const size_t limbs = modulus->root_limbs;
    const size_t tiles = (64 * limbs + 4 + TILE * DIGIT - 1) / (TILE * DIGIT);
    const int fits = tiles >= 2 && 2 * TILE * tiles == secagg_ifma_digits(modulus->limbs);
    return fits && modulus->root[limbs - 1] >> 63 ? &of_square : NULL;
}

#endif /* SECAGG_X86_64 */
