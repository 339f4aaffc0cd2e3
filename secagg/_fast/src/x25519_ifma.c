/* X25519 (RFC 7748), eight scalars and points at a time, by AVX-512 IFMA; specified by
 * reference_x25519.py.
 *
 * Each lane is a separate ladder, so that no limb ever crosses lanes (Cheng, Großschädl, Tian,
 * Rønne, Ryan: High-Throughput Elliptic Curve Cryptography Using AVX2 Vector Instructions, SAC
 * 2020, with four lanes). The step follows RFC 7748, section 5. An element of GF(2^255 - 19)
 * is five limbs in radix 2^51 (Bernstein, Duif, Lange, Schwabe, Yang, CHES 2011).
 *
 * The instructions multiply the low 52 bits of two limbs. So elements come in two kinds:
 * - factors have limbs below 2^51 + 2^15, which `carry` gives,
 * - sums have limbs below 2^61: products of two factors, below 2^59, and their summands.
 * A product of limbs is lo + 2^52 hi, and 2^52 is twice the radix: the halves are summed apart.
 * A limb of a product is at most 124.5 · 2^52: limb 0 has one low half and 19 times four more,
 * and 38 times five high halves, which are about 2^50.
 *
 * No branch and no address depends on a scalar or a point.
 */
#include "cpu.h"
#include "kernels.h"

#if defined(SECAGG_X86_64)

#include <immintrin.h>
#include <string.h>

#define TARGET "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma"
#define IFMA __attribute__((target(TARGET)))
#define IFMA_INLINE static inline __attribute__((target(TARGET), always_inline))
#define UNROLL _Pragma("GCC unroll 10")

typedef __m512i eight; /* one limb of eight elements */

enum {
    LANES = 8,
    LIMBS = 5,
    RADIX = 51,
    BYTES = 32,
    WORDS = 4, /* of 64 bits */
    FOLD = 19, /* 2^255 mod p */
    A24 = 121665
};

static const uint64_t MASK = ((uint64_t)1 << RADIX) - 1;

typedef struct {
    eight limb[LIMBS];
} element;

int secagg_x25519_supported(void) { return secagg_cpu_has(SECAGG_AVX512 | SECAGG_IFMA); }

IFMA_INLINE eight low(eight sum, eight a, eight b) { return _mm512_madd52lo_epu64(sum, a, b); }
IFMA_INLINE eight high(eight sum, eight a, eight b) { return _mm512_madd52hi_epu64(sum, a, b); }
IFMA_INLINE eight all(uint64_t a) { return _mm512_set1_epi64((long long)a); }
IFMA_INLINE eight zero(void) { return _mm512_setzero_si512(); }
IFMA_INLINE eight plus(eight a, eight b) { return _mm512_add_epi64(a, b); }
IFMA_INLINE eight shift_right(eight a, unsigned bits) { return _mm512_srli_epi64(a, bits); }
IFMA_INLINE eight shift_left(eight a, unsigned bits) { return _mm512_slli_epi64(a, bits); }
IFMA_INLINE eight masked(eight a) { return _mm512_and_si512(a, all(MASK)); }

IFMA_INLINE element small(uint64_t value)
{
    const element x = {{all(value), zero(), zero(), zero(), zero()}};
    return x;
}

/* Sum to factor: each limb gives its upper bits to the next, all at once. */
IFMA_INLINE element carry(element x)
{
    element out;
    out.limb[0] = low(masked(x.limb[0]), shift_right(x.limb[LIMBS - 1], RADIX), all(FOLD));
    UNROLL for (int i = 1; i < LIMBS; i++)
        out.limb[i] = plus(masked(x.limb[i]), shift_right(x.limb[i - 1], RADIX));
    return out;
}

IFMA_INLINE element add(element a, element b)
{
    UNROLL for (int i = 0; i < LIMBS; i++) a.limb[i] = plus(a.limb[i], b.limb[i]);
    return a;
}

/* a - b + 256 p, where 256 p has limbs above the limbs of any product. */
IFMA_INLINE element subtract(element a, element b)
{
    UNROLL for (int i = 0; i < LIMBS; i++)
    {
        const uint64_t p = MASK - (i == 0 ? FOLD - 1 : 0);
        a.limb[i] = _mm512_sub_epi64(plus(a.limb[i], all(p << 8)), b.limb[i]);
    }
    return a;
}

/* Σ_k 2^(51 k) (lo[k] + 2 hi[k]) for k < 10; limb k + 5 counts 19 times in limb k. */
IFMA_INLINE element fold(const eight lo[2 * LIMBS], const eight hi[2 * LIMBS])
{
    element out;
    UNROLL for (int k = 0; k < LIMBS; k++)
    {
        const eight above = plus(lo[k + LIMBS], shift_left(hi[k + LIMBS], 1));
        const eight here = plus(lo[k], shift_left(hi[k], 1));
        const eight three = plus(above, shift_left(above, 1));
        out.limb[k] = plus(plus(here, three), shift_left(above, 4));
    }
    return out;
}

/* Product of two factors, a sum. */
IFMA_INLINE element multiply(element a, element b)
{
    eight lo[2 * LIMBS], hi[2 * LIMBS];
    UNROLL for (int k = 0; k < 2 * LIMBS; k++) lo[k] = hi[k] = zero();
    UNROLL for (int i = 0; i < LIMBS; i++)
    {
        UNROLL for (int j = 0; j < LIMBS; j++)
        {
            lo[i + j] = low(lo[i + j], a.limb[i], b.limb[j]);
            hi[i + j + 1] = high(hi[i + j + 1], a.limb[i], b.limb[j]);
        }
    }
    return fold(lo, hi);
}

/* Square of a factor, a sum: products of different limbs, once, then doubled. */
IFMA_INLINE element square(element a)
{
    eight lo[2 * LIMBS], hi[2 * LIMBS];
    UNROLL for (int k = 0; k < 2 * LIMBS; k++) lo[k] = hi[k] = zero();
    UNROLL for (int i = 0; i < LIMBS; i++)
    {
        UNROLL for (int j = i + 1; j < LIMBS; j++)
        {
            lo[i + j] = low(lo[i + j], a.limb[i], a.limb[j]);
            hi[i + j + 1] = high(hi[i + j + 1], a.limb[i], a.limb[j]);
        }
    }
    UNROLL for (int k = 0; k < 2 * LIMBS; k++)
    {
        lo[k] = shift_left(lo[k], 1);
        hi[k] = shift_left(hi[k], 1);
    }
    UNROLL for (int i = 0; i < LIMBS; i++)
    {
        lo[2 * i] = low(lo[2 * i], a.limb[i], a.limb[i]);
        hi[2 * i + 1] = high(hi[2 * i + 1], a.limb[i], a.limb[i]);
    }
    return fold(lo, hi);
}

/* sum + 121665 a of a factor a, a sum. */
IFMA_INLINE element add_a24(element sum, element a)
{
    eight hi[LIMBS];
    UNROLL for (int i = 0; i < LIMBS; i++)
    {
        sum.limb[i] = low(sum.limb[i], a.limb[i], all(A24));
        hi[i] = high(zero(), a.limb[i], all(A24));
    }
    sum.limb[0] = low(sum.limb[0], hi[LIMBS - 1], all(2 * FOLD));
    UNROLL for (int i = 1; i < LIMBS; i++)
        sum.limb[i] = plus(sum.limb[i], shift_left(hi[i - 1], 1));
    return sum;
}

/* Exchange the lanes of a and b that are set in `lanes`. */
IFMA_INLINE void swap(element *a, element *b, __mmask8 lanes)
{
    UNROLL for (int i = 0; i < LIMBS; i++)
    {
        const eight x = a->limb[i], y = b->limb[i];
        a->limb[i] = _mm512_mask_mov_epi64(x, lanes, y);
        b->limb[i] = _mm512_mask_mov_epi64(y, lanes, x);
    }
}

IFMA static element squares(element a, int count)
{
    for (int i = 0; i < count; i++)
        a = carry(square(a));
    return a;
}

IFMA static element product(element a, element b) { return carry(multiply(a, b)); }

/* a^(p - 2), which is 1 / a, or 0 for 0; the chain is Bernstein's (PKC 2006). */
IFMA static element invert(element a)
{
    const element a2 = squares(a, 1);
    const element a9 = product(squares(a2, 2), a);
    const element a11 = product(a9, a2);
    const element b5 = product(squares(a11, 1), a9); /* bN = a^(2^N - 1) */
    const element b10 = product(squares(b5, 5), b5);
    const element b20 = product(squares(b10, 10), b10);
    const element b40 = product(squares(b20, 20), b20);
    const element b50 = product(squares(b40, 10), b10);
    const element b100 = product(squares(b50, 50), b50);
    const element b200 = product(squares(b100, 100), b100);
    const element b250 = product(squares(b200, 50), b50);
    return product(squares(b250, 5), a11);
}

/* x / z is the coordinate of the multiple of the point u, and z = 0 mod p at infinity; factors. */
IFMA static void ladder(element *x, element *z, element u, const eight scalar[WORDS])
{
    element x2 = small(1), z2 = small(0), x3 = u, z3 = small(1);
    __mmask8 swapped = 0;
    for (int t = 254; t >= 0; t--) {
        const __mmask8 bits =
            _mm512_test_epi64_mask(scalar[t / 64], all((uint64_t)1 << (t % 64)));
        swap(&x2, &x3, swapped ^ bits);
        swap(&z2, &z3, swapped ^ bits);
        swapped = bits;
        const element a = carry(add(x2, z2)), b = carry(subtract(x2, z2));
        const element c = carry(add(x3, z3)), d = carry(subtract(x3, z3));
        const element da = multiply(d, a), cb = multiply(c, b);
        const element aa = carry(square(a)), bb = carry(square(b));
        x3 = square(carry(add(da, cb)));
        z3 = multiply(u, carry(square(carry(subtract(da, cb)))));
        const element e = carry(subtract(aa, bb));
        x2 = multiply(aa, bb);
        z2 = multiply(e, carry(add_a24(aa, e)));
    }
    swap(&x2, &x3, swapped);
    swap(&z2, &z3, swapped);
    *x = carry(x2);
    *z = carry(z2);
}

/* 32 bytes to limbs; the top bit is ignored, and numbers from p on stay as they are. */
IFMA static element unpack(const eight word[WORDS])
{
    element x;
    x.limb[0] = masked(word[0]);
    UNROLL for (int i = 1; i < LIMBS - 1; i++)
    {
        const unsigned taken = 64 * i - RADIX * i; /* bits of limb i in the word below */
        x.limb[i] = masked(_mm512_or_si512(shift_right(word[i - 1], 64 - taken),
                                           shift_left(word[i], taken)));
    }
    x.limb[LIMBS - 1] = masked(shift_right(word[WORDS - 1], 12));
    return x;
}

/* A factor to 32 bytes, in [0, p). */
IFMA static void pack(eight word[WORDS], element x)
{
    eight over = all(FOLD); /* becomes 1 if x + 19 >= 2^255, so x >= p, and 0 otherwise */
    for (int pass = 0; pass < 2; pass++) { /* after the second one all limbs are below 2^51 */
        eight up = zero();
        UNROLL for (int i = 0; i < LIMBS; i++)
        {
            x.limb[i] = plus(x.limb[i], up);
            up = shift_right(x.limb[i], RADIX);
            x.limb[i] = masked(x.limb[i]);
        }
        x.limb[0] = low(x.limb[0], up, all(FOLD));
    }
    UNROLL for (int i = 0; i < LIMBS; i++) over = shift_right(plus(x.limb[i], over), RADIX);
    x.limb[0] = low(x.limb[0], over, all(FOLD));
    eight up = zero();
    UNROLL for (int i = 0; i < LIMBS; i++)
    {
        x.limb[i] = plus(x.limb[i], up);
        up = shift_right(x.limb[i], RADIX);
        x.limb[i] = masked(x.limb[i]);
    }
    UNROLL for (int i = 0; i < WORDS; i++)
        word[i] = _mm512_or_si512(shift_right(x.limb[i], 13 * i),
                                  shift_left(x.limb[i + 1], RADIX - 13 * i));
}

/* Word i of row r in lane r of word[i]; lanes beyond `count` hold the last row again. */
IFMA static void load(eight word[WORDS], const uint8_t *rows, size_t step, size_t count)
{
    uint64_t lanes[WORDS][LANES], row[WORDS];
    for (size_t lane = 0; lane < LANES; lane++) {
        memcpy(row, rows + step * (lane < count ? lane : count - 1), BYTES);
        for (int i = 0; i < WORDS; i++)
            lanes[i][lane] = row[i];
    }
    for (int i = 0; i < WORDS; i++)
        word[i] = _mm512_loadu_si512(lanes[i]);
}

IFMA static void store(uint8_t *rows, const eight word[WORDS], size_t count)
{
    uint64_t lanes[WORDS][LANES];
    for (int i = 0; i < WORDS; i++)
        _mm512_storeu_si512(lanes[i], word[i]);
    for (size_t lane = 0; lane < count; lane++) {
        const __m256i row = _mm256_set_epi64x(
            (long long)lanes[3][lane], (long long)lanes[2][lane], (long long)lanes[1][lane],
            (long long)lanes[0][lane]);
        _mm256_storeu_si256((__m256i *)(rows + BYTES * lane), row);
    }
}

/* RFC 7748, decodeScalar25519. */
IFMA_INLINE void clamp(eight scalar[WORDS])
{
    scalar[0] = _mm512_andnot_si512(all(7), scalar[0]);
    scalar[3] = _mm512_and_si512(scalar[3], all(((uint64_t)1 << 63) - 1));
    scalar[3] = _mm512_or_si512(scalar[3], all((uint64_t)1 << 62));
}

IFMA static __attribute__((noinline)) void multiply_rows(uint8_t *out, const uint8_t *scalars,
                                                        size_t step, const uint8_t *points,
                                                        size_t n)
{
    for (size_t first = 0; first < n; first += LANES) {
        const size_t some = n - first < LANES ? n - first : LANES;
        eight scalar[WORDS], word[WORDS];
        element x, z;
        load(scalar, scalars + step * first, step, some);
        load(word, points + BYTES * first, BYTES, some);
        clamp(scalar);
        ladder(&x, &z, unpack(word), scalar);
        pack(word, product(x, invert(z)));
        store(out + BYTES * first, word, some);
    }
}

void secagg_x25519(uint8_t *out, const uint8_t *scalars, size_t step, const uint8_t *points,
                   size_t n)
{
    multiply_rows(out, scalars, step, points, n);
    secagg_wipe_below();
}

#else

int secagg_x25519_supported(void) { return 0; }

void secagg_x25519(uint8_t *out, const uint8_t *scalars, size_t step, const uint8_t *points,
                   size_t n)
{
    (void)out, (void)scalars, (void)step, (void)points, (void)n; /* never called */
}

#endif /* SECAGG_X86_64 */
