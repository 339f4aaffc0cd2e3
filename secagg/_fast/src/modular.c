/* Batches of numbers modulo N, over the arithmetic of a tier; see modular.h. */
#include "cpu.h"
#include "modular.h"
#include "kernels.h"

#include <stdlib.h>
#include <string.h>

enum {
    LANES = 8,      /* at most, of any tier */
    ALIGNMENT = 64, /* of a vector of LANES words, in bytes */
    BLOCK = 1024    /* powers of a fixed base that share a slice of the table in the cache */
};

const secagg_modular_tier *const secagg_modular_tiers[] = {
#if defined(SECAGG_X86_64)
    &secagg_modular_ifma,
#endif
    &secagg_modular_portable,
    NULL,
};

static size_t lesser(size_t a, size_t b) { return a < b ? a : b; }

static size_t round_up(size_t a, size_t step) { return (a + step - 1) / step * step; }

/* Bits [at, at + bits) of an exponent, zero beyond the exponent's end; bits <= 16. */
static uint64_t digit_at(const uint64_t *exponent, size_t limbs, size_t at, unsigned bits)
{
    const size_t i = at / 64;
    const unsigned skip = at % 64;
    uint64_t digit = i < limbs ? exponent[i] >> skip : 0;
    if (skip != 0 && i + 1 < limbs)
        digit |= exponent[i + 1] << (64 - skip);
    return digit & (((uint64_t)1 << bits) - 1);
}

typedef struct {
    secagg_modular c;
    const secagg_modular_tier *tier;
    size_t words; /* of a number in all lanes */
    uint64_t *room;
    void *memory;
    size_t bytes;
} job;

/* Memory for the constants and for `numbers` numbers more, at room; secrets may be in it. */
static int begin(job *j, const secagg_modulus *modulus, size_t numbers)
{
    const secagg_modular_tier *tier = modulus->tier, *faster = NULL;
    if (modulus->root_limbs > 0 && tier->of_square != NULL)
        faster = tier->of_square(modulus);
    j->tier = tier = faster != NULL ? faster : tier;
    secagg_modular *c = &j->c;
    const size_t lanes = tier->lanes, limbs = c->limbs = modulus->limbs;
    const size_t digits = c->digits = tier->digits(limbs), wide = round_up(limbs, lanes) * lanes;
    j->words = digits * lanes;
    const size_t own = round_up(digits, 8) + 4 * j->words + wide;
    j->bytes = (own + numbers * j->words) * sizeof(uint64_t) + ALIGNMENT;
    j->memory = malloc(j->bytes); /* Windows has no aligned_alloc */
    if (j->memory == NULL)
        return -1;
    memset(j->memory, 0, j->bytes);
    c->n = (uint64_t *)((uint8_t *)j->memory + (0 - (uintptr_t)j->memory) % ALIGNMENT);
    c->square = c->n + round_up(digits, 8);
    c->one = c->square + j->words;
    c->sums = c->one + j->words;
    c->wide = c->sums + 2 * j->words;
    j->room = c->wide + wide;
    for (size_t lane = 0; lane < lanes; lane++)
        c->one[lane] = 1;
    const uint64_t lowest = faster != NULL ? modulus->root[0] : modulus->n[0];
    c->inverse = 1; /* Newton's iteration: each step doubles the bits that are right */
    for (unsigned bits = 1; bits < 64; bits *= 2)
        c->inverse *= 2 - lowest * c->inverse;
    c->inverse = 0 - c->inverse;
    tier->begin(c, modulus);
    return 0;
}

static int end(job *j)
{
    secagg_wipe(j->memory, j->bytes);
    free(j->memory);
    return 0;
}

static void multiply(const job *j, uint64_t *out, const uint64_t *a, const uint64_t *b)
{
    j->tier->multiply(out, a, b, &j->c);
}

int secagg_modular_multiply(uint64_t *out, const uint64_t *a, const uint64_t *b, size_t count,
                            size_t b_step, const secagg_modulus *modulus)
{
    job j;
    if (begin(&j, modulus, 2) < 0)
        return -1;
    const size_t lanes = j.tier->lanes, limbs = modulus->limbs;
    uint64_t *x = j.room, *y = x + j.words;
    for (size_t i = 0; i < count; i += lanes) {
        const size_t some = lesser(lanes, count - i);
        if (i == 0 || b_step != 0) { /* y = b R, so that x y / R = a b */
            j.tier->load(y, b + i * b_step, b_step, some, &j.c);
            multiply(&j, y, y, j.c.square);
        }
        j.tier->load(x, a + i * limbs, limbs, some, &j.c);
        multiply(&j, x, x, y);
        j.tier->store(out + i * limbs, x, some, &j.c);
    }
    return end(&j);
}

/* Fixed windows: time and addresses depend on the sizes alone, not on base or exponent: an
 * exponent such as p - 1 is secret. Reading every entry costs 3 % of a long power. */
int secagg_modular_power(uint64_t *out, const uint64_t *base, size_t count,
                         const uint64_t *exponent, size_t exponent_limbs,
                         const secagg_modulus *modulus)
{
    const unsigned window = exponent_limbs < 8 ? 4 : 5; /* the fewest products */
    const size_t entries = (size_t)1 << window;
    job j;
    if (begin(&j, modulus, 2 + entries) < 0)
        return -1;
    const size_t lanes = j.tier->lanes, limbs = modulus->limbs, words = j.words;
    uint64_t *x = j.room, *y = x + words, *powers = y + words;
    for (size_t i = 0; i < count; i += lanes) {
        const size_t some = lesser(lanes, count - i);
        j.tier->load(x, base + i * limbs, limbs, some, &j.c);
        multiply(&j, powers, j.c.square, j.c.one);
        multiply(&j, powers + words, x, j.c.square);
        for (size_t e = 2; e < entries; e++)
            multiply(&j, powers + e * words, powers + (e - 1) * words, powers + words);
        memcpy(x, powers, words * sizeof *x);
        for (size_t at = round_up(64 * exponent_limbs, window); at > 0;) {
            at -= window;
            for (unsigned s = 0; s < window; s++)
                multiply(&j, x, x, x);
            const uint64_t digit = digit_at(exponent, exponent_limbs, at, window);
            j.tier->choose(y, powers, entries, digit, &j.c);
            multiply(&j, x, x, y);
        }
        multiply(&j, x, x, j.c.one);
        j.tier->store(out + i * limbs, x, some, &j.c);
    }
    return end(&j);
}

/* A window per lane: their bases one after the other, then all their digits side by side. */
int secagg_modular_table(uint64_t *table, const uint64_t *base, size_t windows, unsigned window,
                         const secagg_modulus *modulus)
{
    job j;
    if (begin(&j, modulus, 3) < 0)
        return -1;
    const size_t lanes = j.tier->lanes, words = j.words;
    const size_t width = j.c.digits, slice = width << window;
    uint64_t *x = j.room, *step = x + words, *power = step + words;
    j.tier->load(power, base, 0, 1, &j.c);
    multiply(&j, power, power, j.c.square);
    for (size_t w = 0; w < windows; w += lanes) {
        const size_t some = lesser(lanes, windows - w);
        for (size_t lane = 0; lane < some; lane++) {
            for (size_t i = lane; i < words; i += lanes)
                step[i] = power[i];
            for (unsigned s = 0; s < window; s++)
                multiply(&j, power, power, power);
        }
        multiply(&j, x, j.c.square, j.c.one);
        for (size_t digit = 0; digit >> window == 0; digit++) {
            j.tier->write(table + w * slice + digit * width, slice, x, width, some);
            multiply(&j, x, x, step);
        }
    }
    return end(&j);
}

/* Windows outside, numbers inside: a slice of the table stays in the cache. The digits of the
 * exponents choose addresses, so that a process which shares this core's caches may learn bits
 * of them; reading whole slices would cost more than to multiply without a table. */
int secagg_modular_power_fixed(uint64_t *out, const uint64_t *table, const uint64_t *exponents,
                               size_t count, size_t exponent_limbs, size_t windows,
                               unsigned window, const secagg_modulus *modulus)
{
    uint64_t beyond = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t at = windows * window; at < 64 * exponent_limbs; at += 16)
            beyond |= digit_at(exponents + i * exponent_limbs, exponent_limbs, at, 16);
    if (beyond != 0)
        return -2;
    const size_t lanes = modulus->tier->lanes, limbs = modulus->limbs;
    const size_t block = lesser(BLOCK, round_up(count, lanes));
    job j;
    if (begin(&j, modulus, 1 + block / lanes) < 0)
        return -1;
    const size_t width = j.c.digits, slice = width << window;
    uint64_t *x = j.room;
    for (size_t first = 0; first < count; first += block) {
        const size_t some = lesser(block, count - first);
        uint64_t *product = x + j.words;
        for (size_t i = 0; i < some; i += lanes, product += j.words)
            multiply(&j, product, j.c.square, j.c.one);
        for (size_t w = 0; w < windows; w++) {
            product = x + j.words;
            for (size_t i = 0; i < some; i += lanes, product += j.words) {
                const uint64_t *entries[LANES];
                for (size_t lane = 0; lane < lanes; lane++) {
                    const size_t row = first + lesser(i + lane, some - 1);
                    const uint64_t digit = digit_at(exponents + row * exponent_limbs,
                                                    exponent_limbs, w * window, window);
                    entries[lane] = table + w * slice + digit * width;
                }
                j.tier->read(x, entries, width);
                multiply(&j, product, product, x);
            }
        }
        product = x + j.words;
        for (size_t i = 0; i < some; i += lanes, product += j.words) {
            multiply(&j, product, product, j.c.one);
            j.tier->store(out + (first + i) * limbs, product, lesser(lanes, some - i), &j.c);
        }
    }
    return end(&j);
}
