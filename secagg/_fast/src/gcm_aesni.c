/* AES-256-GCM (NIST SP 800-38D) of many short messages, each under a key of its own, with the
 * instructions AES and PCLMULQDQ; specified by reference_gcm.py.
 *
 * GHASH is computed as POLYVAL, by RFC 8452, appendix A: products need no reflected bits, and a
 * product by x^-128 is reduced in two steps. Lengths are public. Nothing branches on other input
 * but whether a message is authentic, and no address depends on other input.
 */
#include "cpu.h"
#include "kernels.h"

#include <string.h>

#if defined(SECAGG_X86_64)

#include <immintrin.h>

#define GCM_APART static __attribute__((target("aes,pclmul,sse4.1"), noinline))
#define GCM_INLINE static inline __attribute__((target("aes,pclmul,sse4.1"), always_inline))

enum { BLOCK = 16, KEY = 32, NONCE = 12, TAG = BLOCK, ROUNDS = 14, BATCH = 8 };

/* A message in work. The key stream is made of the nonce and a counter, `BATCH` blocks at a time. */
typedef struct {
    __m128i round[ROUNDS + 1];
    __m128i stream[BATCH];
    __m128i nonce;
    __m128i factor; /* GHASH's key H, times x */
    __m128i pad;    /* encrypts the tag */
} message;

/* The round key two after `key`, FIPS 197, section 5.2; `word` is made of the last one. */
GCM_INLINE __m128i next_round_key(__m128i key, __m128i word)
{
    key = _mm_xor_si128(key, _mm_slli_si128(key, 4));
    key = _mm_xor_si128(key, _mm_slli_si128(key, 8));
    return _mm_xor_si128(key, word);
}

/* With RotWord, SubWord and Rcon, which is a part of the instruction. */
#define EVEN(key, last, rcon)                                                                      \
    next_round_key(key, _mm_shuffle_epi32(_mm_aeskeygenassist_si128(last, rcon), 0xff))

/* With SubWord alone. */
GCM_INLINE __m128i odd(__m128i key, __m128i last)
{
    return next_round_key(key, _mm_shuffle_epi32(_mm_aeskeygenassist_si128(last, 0), 0xaa));
}

GCM_INLINE void expand(__m128i round[ROUNDS + 1], const uint8_t key[KEY])
{
    round[0] = _mm_loadu_si128((const __m128i *)key);
    round[1] = _mm_loadu_si128((const __m128i *)(key + BLOCK));
    round[2] = EVEN(round[0], round[1], 0x01);
    round[3] = odd(round[1], round[2]);
    round[4] = EVEN(round[2], round[3], 0x02);
    round[5] = odd(round[3], round[4]);
    round[6] = EVEN(round[4], round[5], 0x04);
    round[7] = odd(round[5], round[6]);
    round[8] = EVEN(round[6], round[7], 0x08);
    round[9] = odd(round[7], round[8]);
    round[10] = EVEN(round[8], round[9], 0x10);
    round[11] = odd(round[9], round[10]);
    round[12] = EVEN(round[10], round[11], 0x20);
    round[13] = odd(round[11], round[12]);
    round[14] = EVEN(round[12], round[13], 0x40);
}

GCM_INLINE __m128i reversed(__m128i block)
{
    return _mm_shuffle_epi8(block, _mm_set_epi64x(0x0001020304050607, 0x08090a0b0c0d0e0f));
}

/* The first `n` bytes, at most a block, and zeros. */
GCM_INLINE __m128i load(const uint8_t *data, size_t n)
{
    uint8_t whole[BLOCK] = {0};
    if (n >= BLOCK)
        return _mm_loadu_si128((const __m128i *)data);
    memcpy(whole, data, n);
    return _mm_loadu_si128((const __m128i *)whole);
}

/* The key stream of these blocks. */
GCM_INLINE void encrypt(message *of, const __m128i blocks[BATCH])
{
    for (int i = 0; i < BATCH; i++)
        of->stream[i] = _mm_xor_si128(blocks[i], of->round[0]);
    for (int r = 1; r < ROUNDS; r++)
        for (int i = 0; i < BATCH; i++)
            of->stream[i] = _mm_aesenc_si128(of->stream[i], of->round[r]);
    for (int i = 0; i < BATCH; i++)
        of->stream[i] = _mm_aesenclast_si128(of->stream[i], of->round[ROUNDS]);
}

GCM_INLINE __m128i counter(__m128i nonce, uint32_t block)
{
    return _mm_insert_epi32(nonce, (int)__builtin_bswap32(block), 3);
}

/* x times a polynomial, RFC 8452, appendix A, mulX_POLYVAL. */
GCM_INLINE __m128i times_x(__m128i a)
{
    const __m128i modulus = _mm_set_epi64x((long long)(0xc2ULL << 56), 1);
    const __m128i carries = _mm_srli_epi64(a, 63);
    const __m128i top = _mm_shuffle_epi32(_mm_srai_epi32(a, 31), 0xff);
    const __m128i doubled = _mm_or_si128(_mm_slli_epi64(a, 1), _mm_slli_si128(carries, 8));
    return _mm_xor_si128(doubled, _mm_and_si128(top, modulus));
}

/* a b x^-128 modulo x^128 + x^127 + x^126 + x^121 + 1, RFC 8452, section 3. */
GCM_INLINE __m128i product(__m128i a, __m128i b)
{
    const __m128i modulus = _mm_set_epi64x(0, (long long)(0xc2ULL << 56));
    const __m128i middle =
        _mm_xor_si128(_mm_clmulepi64_si128(a, b, 0x01), _mm_clmulepi64_si128(a, b, 0x10));
    __m128i low = _mm_xor_si128(_mm_clmulepi64_si128(a, b, 0x00), _mm_slli_si128(middle, 8));
    const __m128i high = _mm_xor_si128(_mm_clmulepi64_si128(a, b, 0x11), _mm_srli_si128(middle, 8));
    for (int half = 0; half < 2; half++) /* each makes 64 low bits zero and drops them */
        low = _mm_xor_si128(_mm_shuffle_epi32(low, 0x4e), _mm_clmulepi64_si128(low, modulus, 0x00));
    return _mm_xor_si128(high, low);
}

/* GHASH of `n` further bytes, filled up with zeros to whole blocks. */
GCM_INLINE __m128i absorb(__m128i hash, __m128i factor, const uint8_t *data, size_t n)
{
    for (size_t at = 0; at < n; at += BLOCK)
        hash = product(_mm_xor_si128(hash, reversed(load(data + at, n - at))), factor);
    return hash;
}

GCM_INLINE void begin(message *new, const uint8_t key[KEY], const uint8_t nonce[NONCE])
{
    __m128i blocks[BATCH] = {_mm_setzero_si128()}; /* for H; counter 1 is for the tag */
    expand(new->round, key);
    new->nonce = load(nonce, NONCE);
    for (uint32_t i = 1; i < BATCH; i++)
        blocks[i] = counter(new->nonce, i);
    encrypt(new, blocks);
    new->factor = times_x(reversed(new->stream[0]));
    new->pad = new->stream[1];
}

/* Encrypt or decrypt `n` bytes. */
GCM_INLINE void cipher(message *of, uint8_t *out, const uint8_t *in, size_t n)
{
    uint32_t block = 2;
    for (size_t at = 0; at < n; at += BLOCK, block++) {
        if (block % BATCH == 0) {
            __m128i blocks[BATCH];
            for (uint32_t i = 0; i < BATCH; i++)
                blocks[i] = counter(of->nonce, block + i);
            encrypt(of, blocks);
        }
        const size_t left = n - at;
        uint8_t whole[BLOCK];
        _mm_storeu_si128((__m128i *)whole,
                         _mm_xor_si128(load(in + at, left), of->stream[block % BATCH]));
        memcpy(out + at, whole, left < BLOCK ? left : BLOCK);
    }
}

GCM_INLINE __m128i tag(const message *of, const uint8_t *aad, size_t aad_bytes,
                       const uint8_t *sealed, size_t n)
{
    const __m128i bits = _mm_set_epi64x((long long)(8 * aad_bytes), (long long)(8 * n));
    __m128i hash = absorb(_mm_setzero_si128(), of->factor, aad, aad_bytes);
    hash = absorb(hash, of->factor, sealed, n);
    hash = product(_mm_xor_si128(hash, bits), of->factor);
    return _mm_xor_si128(reversed(hash), of->pad);
}

int secagg_gcm_supported(void) { return secagg_cpu_has(SECAGG_AES | SECAGG_CLMUL); }

GCM_APART void seal_rows(uint8_t *out, const uint8_t *keys, const uint8_t *nonce,
                         const uint8_t *aads, size_t aad_bytes, const uint8_t *texts,
                         size_t text_bytes, size_t n)
{
    message one;
    for (size_t i = 0; i < n; i++, out += text_bytes + TAG, aads += aad_bytes) {
        begin(&one, keys + KEY * i, nonce);
        cipher(&one, out, texts + text_bytes * i, text_bytes);
        _mm_storeu_si128((__m128i *)(out + text_bytes),
                         tag(&one, aads, aad_bytes, out, text_bytes));
    }
}

GCM_APART size_t open_rows(uint8_t *out, const uint8_t *keys, const uint8_t *nonce,
                           const uint8_t *aads, size_t aad_bytes, const uint8_t *sealed,
                           size_t text_bytes, size_t n)
{
    message one;
    for (size_t i = 0; i < n; i++, sealed += text_bytes + TAG, aads += aad_bytes) {
        begin(&one, keys + KEY * i, nonce);
        const __m128i wrong = _mm_xor_si128(tag(&one, aads, aad_bytes, sealed, text_bytes),
                                            load(sealed + text_bytes, TAG));
        uint64_t bits[2];
        _mm_storeu_si128((__m128i *)bits, wrong);
        if (SECAGG_PUBLIC((bits[0] | bits[1]) != 0)) /* the caller reports a forged message */
            return i;
        cipher(&one, out + text_bytes * i, sealed, text_bytes);
    }
    return n;
}

void secagg_gcm_seal(uint8_t *out, const uint8_t *keys, const uint8_t *nonce, const uint8_t *aads,
                     size_t aad_bytes, const uint8_t *texts, size_t text_bytes, size_t n)
{
    seal_rows(out, keys, nonce, aads, aad_bytes, texts, text_bytes, n);
    secagg_wipe_below();
}

size_t secagg_gcm_open(uint8_t *out, const uint8_t *keys, const uint8_t *nonce, const uint8_t *aads,
                       size_t aad_bytes, const uint8_t *sealed, size_t text_bytes, size_t n)
{
    const size_t opened =
        open_rows(out, keys, nonce, aads, aad_bytes, sealed, text_bytes, n);
    secagg_wipe_below();
    return opened;
}

#else

int secagg_gcm_supported(void) { return 0; }

/* Never called. */
void secagg_gcm_seal(uint8_t *out, const uint8_t *keys, const uint8_t *nonce, const uint8_t *aads,
                     size_t aad_bytes, const uint8_t *texts, size_t text_bytes, size_t n)
{
    (void)out, (void)keys, (void)nonce, (void)aads, (void)aad_bytes, (void)texts;
    (void)text_bytes, (void)n;
}

size_t secagg_gcm_open(uint8_t *out, const uint8_t *keys, const uint8_t *nonce, const uint8_t *aads,
                       size_t aad_bytes, const uint8_t *sealed, size_t text_bytes, size_t n)
{
    (void)out, (void)keys, (void)nonce, (void)aads, (void)aad_bytes, (void)sealed;
    (void)text_bytes, (void)n;
    return 0;
}

#endif /* SECAGG_X86_64 */
