/* SHA-256 (FIPS 180-4) of many rows, and HKDF (RFC 5869) with HMAC (RFC 2104) over SHA-256, of many
 * secrets under one salt; specified by reference_hkdf.py.
 *
 * SHA-256 runs on the CPU's own instructions where a CPU has them. Lengths are public. Nothing
 * branches on other input, and no address depends on other input.
 */
#include "cpu.h"
#include "kernels.h"

#include <string.h>

#if defined(SECAGG_X86_64)
#include <immintrin.h>
#endif

enum { BLOCK = 64, WORDS = 8, DIGEST = 4 * WORDS, ROUNDS = 64, LENGTH = 8 };

static const uint8_t INNER = 0x36, OUTER = 0x5c;

/* Fractional parts of the square roots of the first 8 primes, and of the cube roots of 64. */
static const uint32_t START[WORDS] = {
    0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
};
static const uint32_t K[ROUNDS] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

/* Absorb one block. */
typedef void compressor(uint32_t state[WORDS], const uint8_t block[BLOCK]);

/* A hash that waits for more bytes; the first `total % BLOCK` of `block` are not absorbed yet. */
typedef struct {
    uint32_t state[WORDS];
    uint8_t block[BLOCK];
    uint64_t total;
    compressor *compress;
} hash;

/* An HMAC key: hashes that have absorbed the key's inner and outer block. */
typedef struct {
    hash inner, outer;
} hmac_key;

static inline uint32_t rotate(uint32_t x, int by)
{
    return x >> by | x << (32 - by);
}

static inline uint32_t load_word(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static inline void store_word(uint8_t *at, uint32_t word)
{
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(word >> (24 - 8 * i));
}

/* One round, in the letters of FIPS 180-4: d becomes e, and h becomes a. */
static inline void round_of(uint32_t a, uint32_t b, uint32_t c, uint32_t *d, uint32_t e, uint32_t f,
                            uint32_t g, uint32_t *h, uint32_t word)
{
    const uint32_t sum1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
    const uint32_t sum0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
    const uint32_t t1 = *h + sum1 + ((e & f) ^ (~e & g)) + word;
    *d += t1;
    *h = t1 + sum0 + ((a & b) ^ (a & c) ^ (b & c));
}

/* FIPS 180-4, section 6.2.2. */
static void compress_plain(uint32_t state[WORDS], const uint8_t block[BLOCK])
{
    uint32_t w[ROUNDS], s[WORDS];
    for (int t = 0; t < 16; t++)
        w[t] = load_word(block + 4 * t);
    for (int t = 16; t < ROUNDS; t++) {
        const uint32_t x = w[t - 15], y = w[t - 2];
        const uint32_t sigma0 = rotate(x, 7) ^ rotate(x, 18) ^ x >> 3;
        const uint32_t sigma1 = rotate(y, 17) ^ rotate(y, 19) ^ y >> 10;
        w[t] = sigma1 + w[t - 7] + sigma0 + w[t - 16];
    }
    memcpy(s, state, sizeof s);
    for (int t = 0; t < ROUNDS; t += 4) { /* a, ..., h change places: four rounds move them by four */
        round_of(s[0], s[1], s[2], s + 3, s[4], s[5], s[6], s + 7, K[t] + w[t]);
        round_of(s[7], s[0], s[1], s + 2, s[3], s[4], s[5], s + 6, K[t + 1] + w[t + 1]);
        round_of(s[6], s[7], s[0], s + 1, s[2], s[3], s[4], s + 5, K[t + 2] + w[t + 2]);
        round_of(s[5], s[6], s[7], s + 0, s[1], s[2], s[3], s + 4, K[t + 3] + w[t + 3]);
        const uint32_t half[4] = {s[0], s[1], s[2], s[3]};
        for (int i = 0; i < 4; i++) {
            s[i] = s[i + 4];
            s[i + 4] = half[i];
        }
    }
    for (int i = 0; i < WORDS; i++)
        state[i] += s[i];
    secagg_wipe(w, sizeof w);
}

#if defined(SECAGG_X86_64)
#define SHA __attribute__((target("sha,sse4.1")))

/* Four rounds at a time; the instructions keep the state as (a, b, e, f) and (c, d, g, h). */
SHA static void compress_sha(uint32_t state[WORDS], const uint8_t block[BLOCK])
{
    const __m128i turned = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    const __m128i badc = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)state), 0xb1);
    const __m128i hgfe = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(state + 4)), 0x1b);
    const __m128i abef = _mm_alignr_epi8(badc, hgfe, 8), cdgh = _mm_blend_epi16(hgfe, badc, 0xf0);
    __m128i s0 = abef, s1 = cdgh, w[4];
    for (int i = 0; i < 4; i++)
        w[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(block + 16 * i)), turned);
    for (int i = 0; i < ROUNDS / 4; i++) {
        const __m128i k = _mm_loadu_si128((const __m128i *)(K + 4 * i));
        const __m128i with_k = _mm_add_epi32(w[0], k);
        s1 = _mm_sha256rnds2_epu32(s1, s0, with_k);
        s0 = _mm_sha256rnds2_epu32(s0, s1, _mm_shuffle_epi32(with_k, 0x0e));
        const __m128i next = _mm_add_epi32(_mm_sha256msg1_epu32(w[0], w[1]),
                                           _mm_alignr_epi8(w[3], w[2], 4));
        w[0] = w[1];
        w[1] = w[2];
        w[2] = w[3];
        w[3] = _mm_sha256msg2_epu32(next, w[2]);
    }
    const __m128i feba = _mm_shuffle_epi32(_mm_add_epi32(s0, abef), 0x1b);
    const __m128i dchg = _mm_shuffle_epi32(_mm_add_epi32(s1, cdgh), 0xb1);
    _mm_storeu_si128((__m128i *)state, _mm_blend_epi16(feba, dchg, 0xf0));
    _mm_storeu_si128((__m128i *)(state + 4), _mm_alignr_epi8(dchg, feba, 8));
}
#endif

static compressor *best(int portable)
{
#if defined(SECAGG_X86_64)
    if (!portable && secagg_cpu_has(SECAGG_SHA))
        return compress_sha;
#endif
    (void)portable;
    return compress_plain;
}

static void absorb(hash *to, const uint8_t *data, size_t n)
{
    size_t filled = to->total % BLOCK;
    to->total += n;
    while (n > 0) {
        const size_t part = n < BLOCK - filled ? n : BLOCK - filled;
        if (part == BLOCK) {
            to->compress(to->state, data);
        } else {
            memcpy(to->block + filled, data, part);
            filled += part;
            if (filled == BLOCK) {
                to->compress(to->state, to->block);
                filled = 0;
            }
        }
        data += part;
        n -= part;
    }
}

static void finish(hash *of, uint8_t digest[DIGEST])
{
    const uint64_t bits = 8 * of->total;
    const size_t filled = of->total % BLOCK;
    const size_t zeros = (2 * BLOCK - 1 - LENGTH - filled) % BLOCK;
    uint8_t end[BLOCK + LENGTH] = {0x80};
    store_word(end + 1 + zeros, (uint32_t)(bits >> 32));
    store_word(end + 5 + zeros, (uint32_t)bits);
    absorb(of, end, 1 + zeros + LENGTH);
    for (int i = 0; i < WORDS; i++)
        store_word(digest + 4 * i, of->state[i]);
}

static void begin(hash *new, compressor *compress)
{
    memcpy(new->state, START, sizeof START);
    new->total = 0;
    new->compress = compress;
}

void secagg_sha256(uint8_t *out, const uint8_t *rows, size_t row_bytes, size_t n, int portable)
{
    compressor *const compress = best(portable);
    hash of;
    for (size_t i = 0; i < n; i++) {
        begin(&of, compress);
        absorb(&of, rows + i * row_bytes, row_bytes);
        finish(&of, out + i * DIGEST);
    }
    secagg_wipe(&of, sizeof of);
}

static void set_pad(hash *new, const uint8_t *key, size_t size, uint8_t pad, compressor *compress)
{
    uint8_t block[BLOCK];
    memset(block, pad, sizeof block);
    for (size_t i = 0; i < size; i++)
        block[i] ^= key[i];
    begin(new, compress);
    absorb(new, block, sizeof block);
    secagg_wipe(block, sizeof block);
}

/* Of at most BLOCK bytes. */
static void set_key(hmac_key *to, const uint8_t *key, size_t size, compressor *compress)
{
    set_pad(&to->inner, key, size, INNER, compress);
    set_pad(&to->outer, key, size, OUTER, compress);
}

/* End an HMAC after `inner` has absorbed the message. */
static void finish_hmac(const hmac_key *key, hash *inner, uint8_t digest[DIGEST])
{
    hash outer = key->outer;
    finish(inner, digest);
    absorb(&outer, digest, DIGEST);
    finish(&outer, digest);
    secagg_wipe(&outer, sizeof outer);
}

void secagg_hkdf(uint8_t *out, size_t length, const uint8_t *secrets, size_t secret_bytes,
                 const uint8_t *infos, size_t info_bytes, size_t n, const uint8_t *salt,
                 size_t salt_bytes, int portable)
{
    compressor *const compress = best(portable);
    hmac_key salted, key;
    hash inner;
    uint8_t digest[DIGEST];
    set_key(&salted, salt, salt_bytes, compress);
    for (size_t i = 0; i < n; i++, infos += info_bytes) {
        inner = salted.inner; /* PRK = HMAC(salt, secret) */
        absorb(&inner, secrets + i * secret_bytes, secret_bytes);
        finish_hmac(&salted, &inner, digest);
        set_key(&key, digest, DIGEST, compress);
        uint8_t counter = 1; /* T(j) = HMAC(PRK, T(j - 1) ‖ info ‖ j) */
        for (size_t done = 0; done < length; done += DIGEST, counter++) {
            inner = key.inner;
            absorb(&inner, digest, done == 0 ? 0 : DIGEST);
            absorb(&inner, infos, info_bytes);
            absorb(&inner, &counter, 1);
            finish_hmac(&key, &inner, digest);
            const size_t left = length - done;
            memcpy(out + i * length + done, digest, left < DIGEST ? left : DIGEST);
        }
    }
    secagg_wipe(&salted, sizeof salted);
    secagg_wipe(&key, sizeof key);
    secagg_wipe(&inner, sizeof inner);
    secagg_wipe(digest, sizeof digest);
}
