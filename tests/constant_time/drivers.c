/* Every kernel that touches a secret, run on secrets that are marked as undefined.
 *
 * Prints a line for each kernel named in the arguments: its name and the number of branches and
 * addresses that depended on a secret, as far as the tool counts them. The planted kernels must
 * be reported, or the tool does not work.
 */
#include "kernels.h"
#include "masks.h"
#include "modular.h"
#include "secret.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LENGTH = 300, /* more than a slice of 256 */
    KEYS = 3,
    LIMBS = 4,
    ROOT_LIMBS = 16,
    EXPONENT = 2,
    WINDOW = 4
};

static uint64_t state = 2017;

/* xorshift64: values do not matter here. */
static uint64_t next(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

static uint64_t *numbers(size_t n, uint64_t below)
{
    uint64_t *out = malloc(8 * n);
    for (size_t i = 0; i < n; i++)
        out[i] = next() % below;
    return out;
}

static uint64_t *secrets(size_t n, uint64_t below)
{
    uint64_t *out = numbers(n, below);
    hide(out, 8 * n);
    return out;
}

static void encode_all(size_t width, int widest)
{
    static const uint64_t largest[] = {0xffffffff, ((uint64_t)1 << 48) - 1, 999999999999};
    static const double scales[] = {65536.0, 0x1p53};
    for (int r = 0; r < 3; r++)
        for (int s = 0; s < (r == 2 ? 1 : 2); s++)
            for (int stochastic = 0; stochastic < 2; stochastic++) {
                void *x = malloc(8 * LENGTH), *out = malloc(8 * LENGTH);
                for (size_t i = 0; i < LENGTH; i++) {
                    const double each = ((double)next() / 0x1p64 - 0.5) * 20;
                    const float narrow = (float)each;
                    memcpy((uint8_t *)x + width * i, width == 4 ? (void *)&narrow : (void *)&each,
                           width);
                }
                uint64_t *random = secrets(LENGTH, UINT64_MAX);
                hide(x, width * LENGTH);
                secagg_encoding how = {width,     widest,     4.0, scales[s], 7,
                                       largest[r], stochastic ? random : NULL};
                hide(&how.weight, sizeof how.weight);
                int finite;
                if (r == 0)
                    secagg_encode32(out, x, LENGTH, &how, &finite);
                else
                    secagg_encode64(out, x, LENGTH, &how, &finite);
                secagg_first_not_finite(x, LENGTH, width);
                free(x);
                free(out);
                free(random);
            }
}

static void encode(void)
{
    for (int widest = SECAGG_UP_TO_PLAIN; widest <= SECAGG_UP_TO_AVX512; widest++) {
        encode_all(8, widest);
        encode_all(4, widest);
    }
}

/* A MemorySanitizer of LLVM 14 takes the key expansion for a branch, so keys are public there
 * and what they expand to is secret. */
static void masks(int modulo)
{
    static const uint8_t signs[KEYS] = {0, 1, 0};
    for (const secagg_mask_tier *const *at = secagg_mask_tiers; *at != NULL; at++) {
        const secagg_mask_tier *tier = *at;
        if (!tier->supported())
            continue;
        secagg_mask_schedule schedules[KEYS];
        uint64_t *keys = numbers(2 * KEYS, UINT64_MAX);
        uint64_t *acc = secrets(LENGTH, (uint64_t)3 << 60);
        if (!WITH_MSAN)
            hide(keys, 16 * KEYS);
        const secagg_mask_keys all =
            secagg_mask_expand(schedules, (uint8_t *)keys, signs, KEYS, tier);
        if (WITH_MSAN)
            hide(schedules, sizeof schedules);
        if (modulo)
            secagg_mask_modulo(acc, LENGTH, 5, &all, (uint64_t)3 << 60, tier);
        else {
            secagg_mask_words32((uint32_t *)acc, LENGTH, 5, &all, tier);
            secagg_mask_words64(acc, LENGTH, 5, &all, tier);
        }
        free(keys);
        free(acc);
    }
}

static void mask_words(void) { masks(0); }
static void mask_mod(void) { masks(1); }

static const uint64_t P = ((uint64_t)1 << 61) - 1;

#define ELEMENTWISE(name)                                                                     \
    static void name(void)                                                                    \
    {                                                                                         \
        uint64_t *a = secrets(LENGTH, P), *b = secrets(LENGTH, P), *out = secrets(LENGTH, P); \
        secagg_##name(out, a, b, LENGTH);                                                     \
        free(a);                                                                              \
        free(b);                                                                              \
        free(out);                                                                            \
    }
ELEMENTWISE(m61_add)
ELEMENTWISE(m61_sub)
ELEMENTWISE(m61_mul)

static void m61_inv(void)
{
    uint64_t *a = secrets(LENGTH, P), *out = secrets(LENGTH, P);
    secagg_m61_inv(out, a, LENGTH);
    free(a);
    free(out);
}

static void m61_dot(void)
{
    uint64_t *a = secrets(LENGTH, P), *b = secrets(LENGTH, P);
    secagg_m61_dot(a, b, LENGTH);
    free(a);
    free(b);
}

static void m61_matmul(void)
{
    uint64_t *a = secrets(3 * 40, P), *b = secrets(40 * 5, P), *out = secrets(3 * 5, P);
    secagg_m61_matmul(out, a, b, 3, 40, 5);
    free(a);
    free(b);
    free(out);
}

static void m61_poly_eval(void)
{
    uint64_t *coeffs = secrets(7 * 5, P), *xs = secrets(11, P), *out = secrets(11 * 5, P);
    secagg_m61_poly_eval(out, coeffs, xs, 7, 5, 11);
    free(coeffs);
    free(xs);
    free(out);
}

/* Points are public, and so is the prime: one below 2^62, and one above. */
static const uint64_t PRIMES[] = {((uint64_t)1 << 62) - 57, ((uint64_t)1 << 63) - 25};

static void prime_poly_eval(void)
{
    for (const secagg_prime_tier *tier = secagg_prime_tiers; tier->name != NULL; tier++)
        for (int i = 0; tier->supported() && i < 2; i++) {
            const uint64_t p = PRIMES[i];
            uint64_t *coeffs = secrets(7 * 5, p), *xs = numbers(43, p), *out = secrets(43 * 5, p);
            tier->poly_eval(out, coeffs, xs, 7, 5, 43, p);
            free(coeffs);
            free(xs);
            free(out);
        }
}

static void prime_matmul(void)
{
    for (int i = 0; i < 2; i++) {
        const uint64_t p = PRIMES[i];
        uint64_t *a = secrets(3 * 40, p), *b = secrets(40 * 5, p), *out = secrets(3 * 5, p);
        secagg_prime_matmul(out, a, b, 3, 40, 5, p);
        free(a);
        free(b);
        free(out);
    }
}

static void pack_bits(void)
{
    static const unsigned bits[] = {1, 13, 20, 32, 33, 61, 64};
    for (int i = 0; i < 7; i++) {
        uint64_t *values = secrets(LENGTH, UINT64_MAX);
        uint8_t packed[8 * LENGTH];
        for (int widest = SECAGG_UP_TO_PLAIN; widest <= SECAGG_UP_TO_AVX512; widest++) {
            if (bits[i] <= 32)
                secagg_pack32(packed, (uint32_t *)values, LENGTH, bits[i], widest);
            secagg_pack64(packed, values, LENGTH, bits[i], widest);
        }
        free(values);
    }
}

enum { MULTIPLY, POWER, POWER_FIXED };

/* The modulus is public in Paillier; bases, exponents and tables need not be. With `root_limbs`
 * the modulus is taken for the square of a number, whose sizes alone decide the code. */
static void modular_of(const secagg_modular_tier *tier, int which, size_t limbs, size_t root_limbs)
{
    const size_t count = tier->lanes + 1, windows = 64 * EXPONENT / WINDOW;
    uint64_t *n = numbers(limbs, UINT64_MAX), *square = numbers(limbs, UINT64_MAX);
    uint64_t *root = numbers(limbs, UINT64_MAX);
    n[0] |= 1;
    root[0] |= 1;
    n[limbs - 1] = root[root_limbs > 0 ? root_limbs - 1 : 0] = UINT64_MAX;
    const secagg_modulus modulus = {tier, n, square, root, limbs, root_limbs};
    uint64_t *a = secrets(limbs * count, UINT64_MAX), *b = secrets(limbs * count, UINT64_MAX);
    uint64_t *exponents = secrets(EXPONENT * count, UINT64_MAX);
    uint64_t *out = secrets(limbs * count, UINT64_MAX);
    if (which == MULTIPLY)
        secagg_modular_multiply(out, a, b, count, limbs, &modulus);
    else if (which == POWER)
        secagg_modular_power(out, a, count, exponents, EXPONENT, &modulus);
    else {
        uint64_t *table = malloc(8 * (windows << WINDOW) * tier->digits(limbs));
        secagg_modular_table(table, a, windows, WINDOW, &modulus);
        secagg_modular_power_fixed(out, table, exponents, count, EXPONENT, windows, WINDOW,
                                   &modulus);
        free(table);
    }
    free(n);
    free(square);
    free(root);
    free(a);
    free(b);
    free(exponents);
    free(out);
}

static void modular(int which)
{
    for (const secagg_modular_tier *const *at = secagg_modular_tiers; *at != NULL; at++)
        if ((*at)->supported()) {
            modular_of(*at, which, LIMBS, 0);
            modular_of(*at, which, 2 * ROOT_LIMBS, ROOT_LIMBS);
        }
}

static void modular_multiply(void) { modular(MULTIPLY); }
static void modular_power(void) { modular(POWER); }
static void modular_power_fixed(void) { modular(POWER_FIXED); }

static void discrete_gaussian(void)
{
    uint64_t *words = secrets(LENGTH, UINT64_MAX);
    int64_t out[LENGTH];
    size_t used;
    secagg_discrete_gaussian(out, LENGTH, words, LENGTH, 1000, &used);
    free(words);
}

/* Which proposals are accepted becomes known; deviation and table are public. */
static void gaussian_shares(void)
{
    enum { ENTRIES = 18 };
    uint64_t *words = secrets(4 * LENGTH, UINT64_MAX), *table = malloc(16 * ENTRIES);
    for (size_t i = 0; i < 2 * ENTRIES; i++)
        table[i] = i % 2 ? 0 : (UINT64_MAX >> 1) / ENTRIES * (i / 2 + 1);
    int64_t out[LENGTH];
    size_t used;
    const secagg_share_law law = {table, ENTRIES, 3, (uint64_t)7 << 60, 3};
    secagg_gaussian_shares(out, LENGTH, words, 4 * LENGTH, &law, &used);
    free(words);
    free(table);
}

enum { ROTATED = 1 << 12 }; /* more than a block of the cache */

static void rotate(void)
{
    uint64_t *values = secrets(ROTATED, (uint64_t)1 << 62), *signs = numbers(ROTATED / 64, UINT64_MAX);
    for (int inverse = 0; inverse < 2; inverse++)
        secagg_rotate((double *)values, ROTATED, signs, inverse);
    free(values);
    free(signs);
}

/* The factor of clipping depends on the sum of squares, and not in this kernel. */
static void widen(void)
{
    for (size_t width = 4; width <= 8; width += 4) {
        uint64_t *x = secrets(LENGTH, UINT64_MAX);
        double out[ROTATED];
        int finite;
        secagg_widen(out, 512, x, LENGTH, width, &finite);
        free(x);
    }
}

/* Two blocks of lanes, the second not full; the callers' scalars are not secret. */
static void x25519(void)
{
    enum { ROWS = 9, WORDS = 4 };
    if (!secagg_x25519_supported())
        return;
    uint64_t *scalars = secrets(ROWS * WORDS, UINT64_MAX);
    uint64_t *points = secrets(ROWS * WORDS, UINT64_MAX);
    uint64_t *out = secrets(ROWS * WORDS, UINT64_MAX);
    secagg_x25519((uint8_t *)out, (uint8_t *)scalars, 32, (uint8_t *)points, ROWS);
    free(scalars);
    free(points);
    free(out);
}

/* Eight blocks of key stream are not enough. Whether a message is authentic becomes known. To
 * MemorySanitizer the keys are public, as for the masks. */
static void gcm(int opens)
{
    enum { ROWS = 2, KEY = 32, AAD = 24, TEXT = 104, SEALED = TEXT + 16 };
    if (!secagg_gcm_supported())
        return;
    uint8_t *keys = (uint8_t *)secrets(ROWS * KEY / 8, UINT64_MAX);
    uint8_t *aads = (uint8_t *)secrets(ROWS * AAD / 8, UINT64_MAX);
    uint8_t *texts = (uint8_t *)secrets(ROWS * TEXT / 8, UINT64_MAX);
    uint8_t *sealed = (uint8_t *)secrets(ROWS * SEALED / 8, UINT64_MAX);
    uint8_t *nonce = (uint8_t *)secrets(2, UINT64_MAX);
    if (WITH_MSAN)
        show(keys, ROWS * KEY);
    secagg_gcm_seal(sealed, keys, nonce, aads, AAD, texts, TEXT, ROWS);
    if (opens && secagg_gcm_open(texts, keys, nonce, aads, AAD, sealed, TEXT, ROWS) != ROWS)
        abort();
    free(keys);
    free(aads);
    free(texts);
    free(sealed);
    free(nonce);
}

static void gcm_seal(void) { gcm(0); }
static void gcm_open(void) { gcm(1); }

static void pack_into(void) { pack_bits(); } /* the same kernel */

/* Lengths are public: of rows that end in the padding's second block. */
static void sha256(void)
{
    enum { ROWS = 3, ROW = 120, DIGEST = 32 };
    for (int portable = 0; portable < 2; portable++) {
        uint64_t *rows = secrets(ROWS * ROW / 8, UINT64_MAX);
        uint64_t *out = secrets(ROWS * DIGEST / 8, UINT64_MAX);
        secagg_sha256((uint8_t *)out, (uint8_t *)rows, ROW, ROWS, portable);
        free(rows);
        free(out);
    }
}

/* Lengths are public: of secrets, infos and two blocks of output. */
static void hkdf(void)
{
    enum { ROWS = 3, SECRET = 32, INFO = 104, SALT = 32, SIZE = 48 };
    for (int portable = 0; portable < 2; portable++) {
        uint64_t *keys = secrets(ROWS * SECRET / 8, UINT64_MAX);
        uint64_t *infos = secrets(ROWS * INFO / 8, UINT64_MAX);
        uint64_t *salt = secrets(SALT / 8, UINT64_MAX), *out = secrets(ROWS * SIZE / 8, UINT64_MAX);
        secagg_hkdf((uint8_t *)out, SIZE, (uint8_t *)keys, SECRET, (uint8_t *)infos, INFO, ROWS,
                    (uint8_t *)salt, SALT, portable);
        free(keys);
        free(infos);
        free(salt);
        free(out);
    }
}

static volatile int sink;

static void planted_branch(void)
{
    uint64_t *weight = secrets(1, 10);
    if (*weight != 1)
        sink = 1;
    free(weight);
}

static void planted_address(void)
{
    static volatile uint8_t box[256];
    uint64_t *index = secrets(1, 256);
    sink = box[*index];
    free(index);
}

#define KERNEL(name) {#name, name}
static const struct {
    const char *name;
    void (*run)(void);
} kernels[] = {
    KERNEL(encode),           KERNEL(mask_words),    KERNEL(mask_mod),
    KERNEL(m61_add),          KERNEL(m61_sub),       KERNEL(m61_mul),
    KERNEL(m61_inv),          KERNEL(m61_dot),       KERNEL(m61_matmul),
    KERNEL(m61_poly_eval),    KERNEL(pack_bits),     KERNEL(modular_multiply),
    KERNEL(modular_power),    KERNEL(modular_power_fixed),
    KERNEL(discrete_gaussian), KERNEL(prime_poly_eval), KERNEL(prime_matmul),
    KERNEL(x25519),           KERNEL(hkdf),          KERNEL(pack_into),
    KERNEL(gcm_seal),         KERNEL(gcm_open),      KERNEL(gaussian_shares),
    KERNEL(rotate),           KERNEL(widen),         KERNEL(sha256),
    KERNEL(planted_branch),
    KERNEL(planted_address),
};

int main(int count, char **names)
{
    for (int i = 1; i < count; i++)
        for (size_t k = 0; k < sizeof kernels / sizeof *kernels; k++)
            if (strcmp(names[i], kernels[k].name) == 0) {
                const unsigned before = findings();
                kernels[k].run();
                printf("%s %u\n", kernels[k].name, findings() - before);
                fflush(stdout);
            }
    return 0;
}
