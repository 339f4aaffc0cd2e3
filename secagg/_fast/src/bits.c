/* Bit strings, least significant bit first; specified by reference.py.
 *
 * Value i starts at bit i b. Up to 57 bits, a value and the bits before it in its first byte
 * fit one unaligned word of 8 bytes; wider values go in two parts, narrow values in pairs.
 * Every access is 8 bytes wide, so the last values go through a scratch buffer that is wide
 * enough: 8 values are b whole bytes, and the rest is short when 8 bytes no longer fit.
 *
 * AVX-512 packs 8 values of 32 to 64 bits at a time, or as many pairs of narrower values. Each of
 * the 8 words to write has bits of three values at most.
 */
#include "cpu.h"
#include "kernels.h"

#include <string.h>

#if defined(SECAGG_X86_64)
#include <immintrin.h>
#endif

enum { NARROW = 57, PAIR = NARROW / 2, SCRATCH = 8 + 64 + 8 };

static inline uint64_t low_bits(unsigned bits)
{
    return bits == 64 ? ~(uint64_t)0 : ((uint64_t)1 << bits) - 1;
}

static inline size_t bytes_for(size_t n, unsigned bits)
{
    return n / 8 * bits + (n % 8 * bits + 7) / 8;
}

/* The largest multiple of 8 values whose accesses all stay inside the string. */
static inline size_t bulk(size_t n, unsigned bits)
{
    const size_t bytes = bytes_for(n, bits);
    return bytes < 8 ? 0 : (bytes - 8) / bits * 8;
}

static inline uint64_t little_endian(uint64_t word)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    return __builtin_bswap64(word);
#else
    return word;
#endif
}

static inline uint64_t load(const uint8_t *at)
{
    uint64_t word;
    memcpy(&word, at, 8);
    return little_endian(word);
}

/* The first `fill` < 8 bits of `word` wait for the rest of their byte. */
typedef struct {
    uint8_t *at;
    uint64_t word;
    unsigned fill;
} writer;

/* Append a value of at most 57 bits. */
static inline void put(writer *to, uint64_t value, unsigned bits)
{
    const unsigned fill = to->fill + bits;
    const uint64_t word = to->word | value << to->fill, stored = little_endian(word);
    memcpy(to->at, &stored, 8);
    to->at += fill / 8;
    to->word = fill < 64 ? word >> (fill & ~7u) : 0;
    to->fill = fill & 7;
}

static inline __attribute__((always_inline)) uint64_t
value_at(const void *values, size_t i, int lane)
{
    return lane == 32 ? ((const uint32_t *)values)[i] : ((const uint64_t *)values)[i];
}

static inline __attribute__((always_inline)) void
pack_run(uint8_t *packed, const void *values, size_t n, unsigned bits, int lane)
{
    const uint64_t mask = low_bits(bits);
    writer to = {packed, 0, 0};
    size_t i = 0;
    if (bits <= PAIR)
        for (; i + 2 <= n; i += 2) {
            const uint64_t first = value_at(values, i, lane) & mask;
            const uint64_t second = value_at(values, i + 1, lane) & mask;
            put(&to, first | second << bits, 2 * bits);
        }
    for (; i < n; i++) {
        const uint64_t value = value_at(values, i, lane) & mask;
        if (bits <= NARROW)
            put(&to, value, bits);
        else {
            put(&to, value & low_bits(32), 32);
            put(&to, value >> 32, bits - 32);
        }
    }
    if (to.fill > 0)
        *to.at = (uint8_t)to.word;
}

#if defined(SECAGG_X86_64)
/* Pack values 64 bytes at a time, as long as the string has as many to write; return how many. */
static __attribute__((target("avx512f"))) size_t
pack_avx512(uint8_t *packed, const void *values, size_t n, unsigned bits, int lane)
{
    const unsigned wide = lane == 32 ? 2 * bits : bits;
    const size_t each = lane == 32 ? 16 : 8;
    const uint8_t *at = values, *end = packed + bytes_for(n, bits);
    uint64_t first[8], skipped[8];
    for (unsigned w = 0; w < 8; w++) { /* word w begins in value `first`, after `skipped` bits */
        first[w] = 64 * w / wide;
        skipped[w] = 64 * w % wide;
    }
    const __m512i one = _mm512_set1_epi64(1), width = _mm512_set1_epi64(wide);
    const __m512i index0 = _mm512_loadu_si512(first), index1 = _mm512_add_epi64(index0, one);
    const __m512i index2 = _mm512_add_epi64(index1, one), right = _mm512_loadu_si512(skipped);
    const __m512i left1 = _mm512_sub_epi64(width, right), left2 = _mm512_add_epi64(left1, width);
    const __m512i mask = _mm512_set1_epi64((long long)low_bits(bits));
    const __m128i half = _mm_cvtsi32_si128(32), by = _mm_cvtsi32_si128((int)bits);
    size_t done = 0;
    for (; done + each <= n && end - packed >= 64; done += each, packed += wide, at += 64) {
        __m512i x = _mm512_loadu_si512(at);
        if (lane == 32) {
            const __m512i second = _mm512_and_si512(_mm512_srl_epi64(x, half), mask);
            x = _mm512_or_si512(_mm512_and_si512(x, mask), _mm512_sll_epi64(second, by));
        } else
            x = _mm512_and_si512(x, mask);
        /* shifts by 64 and more give zero; what follows value 7 is written again */
        const __m512i low = _mm512_srlv_epi64(_mm512_permutexvar_epi64(index0, x), right);
        const __m512i middle = _mm512_sllv_epi64(_mm512_permutexvar_epi64(index1, x), left1);
        const __m512i high = _mm512_sllv_epi64(_mm512_permutexvar_epi64(index2, x), left2);
        _mm512_storeu_si512(packed, _mm512_or_si512(low, _mm512_or_si512(middle, high)));
    }
    return done;
}
#endif

/* Pack a multiple of 8 values in the fastest way there is; return how many. */
static inline size_t pack_fast(uint8_t *packed, const void *values, size_t n, unsigned bits,
                               int lane, int widest)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    if (bits == (unsigned)lane) {
        const size_t most = n / 8 * 8;
        memcpy(packed, values, most * bits / 8);
        return most;
    }
#endif
#if defined(SECAGG_X86_64)
    if (widest >= SECAGG_UP_TO_AVX512 && bits >= (lane == 32 ? 16 : 32) &&
        secagg_cpu_has(SECAGG_AVX512))
        return pack_avx512(packed, values, n, bits, lane);
#endif
    (void)widest;
    return 0;
}

static inline __attribute__((always_inline)) void
pack(uint8_t *packed, const void *values, size_t n, unsigned bits, int lane, int widest)
{
    const size_t before = pack_fast(packed, values, n, bits, lane, widest);
    packed += bytes_for(before, bits);
    values = (const uint8_t *)values + before * (size_t)(lane / 8);
    n -= before;
    const size_t most = bulk(n, bits), done = bytes_for(most, bits);
    uint8_t scratch[SCRATCH] = {0};
    pack_run(packed, values, most, bits, lane);
    pack_run(scratch, (const uint8_t *)values + most * (size_t)(lane / 8), n - most, bits, lane);
    memcpy(packed + done, scratch, bytes_for(n, bits) - done);
}

static inline __attribute__((always_inline)) void
unpack_run(void *values, const uint8_t *packed, size_t n, unsigned bits, int lane)
{
    const uint64_t mask = low_bits(bits);
    for (size_t i = 0, at = 0; i < n; i++, at += bits) {
        uint64_t value = load(packed + at / 8) >> at % 8;
        if (bits > NARROW) {
            const size_t rest = at + 32;
            value = (value & low_bits(32)) | load(packed + rest / 8) >> rest % 8 << 32;
        }
        if (lane == 32)
            ((uint32_t *)values)[i] = (uint32_t)(value & mask);
        else
            ((uint64_t *)values)[i] = value & mask;
    }
}

static inline __attribute__((always_inline)) int
unpack(void *values, const uint8_t *packed, size_t n, unsigned bits, int lane)
{
    const size_t bytes = bytes_for(n, bits);
    const size_t most = bulk(n, bits), done = bytes_for(most, bits);
    const unsigned used = (unsigned)(n % 8 * bits % 8); /* bits of the last byte, 0: all */
    if (used != 0 && packed[bytes - 1] >> used != 0)
        return -1;
    uint8_t scratch[SCRATCH] = {0};
    if (bytes > done)
        memcpy(scratch, packed + done, bytes - done);
    unpack_run(values, packed, most, bits, lane);
    unpack_run((uint8_t *)values + most * (size_t)(lane / 8), scratch, n - most, bits, lane);
    return 0;
}

void secagg_pack32(uint8_t *packed, const uint32_t *values, size_t n, unsigned bits, int widest)
{
    pack(packed, values, n, bits, 32, widest);
}

void secagg_pack64(uint8_t *packed, const uint64_t *values, size_t n, unsigned bits, int widest)
{
    pack(packed, values, n, bits, 64, widest);
}

int secagg_unpack32(uint32_t *values, const uint8_t *packed, size_t n, unsigned bits)
{
    return unpack(values, packed, n, bits, 32);
}

int secagg_unpack64(uint64_t *values, const uint8_t *packed, size_t n, unsigned bits)
{
    return unpack(values, packed, n, bits, 64);
}
