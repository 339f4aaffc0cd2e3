/* Discrete Gaussian noise in exact integers; specified by reference_gaussian.py.
 *
 * Bounds, for at most 2^16 words a call: every success of exp(-1) takes two words or more, and
 * every increment of K but the first takes one. So v < 2^15, K <= 2^16, u + p v <= 2^63 and
 * 2 p^2 K <= 2^113.
 */
#include "kernels.h"

typedef unsigned __int128 uint128;
typedef __int128 int128;

/* Past the end all words are 2^64 - 1, with which every loop below ends; `dry` is set then. */
typedef struct {
    const uint64_t *at, *end;
    int dry;
} stream;

static inline uint64_t next(stream *words)
{
    if (words->at < words->end)
        return *words->at++;
    words->dry = 1;
    return UINT64_MAX;
}

/* n / d < 1 against the digits of a uniform number in base 2^64: n becomes n 2^64 - w d. */
static inline int bernoulli(stream *words, uint128 n, uint128 d)
{
    while (n > 0 && n < d) {
        const uint64_t w = next(words);
        const uint128 low = (uint128)w * (uint64_t)d;
        const uint128 high =
            n - (uint128)w * (uint64_t)(d >> 64) - (low >> 64) - ((uint64_t)low != 0);
        if ((int128)high < 0)
            return 0;
        if (high >> 64) /* n >= 2^128 > d */
            return 1;
        n = high << 64 | (0 - (uint64_t)low);
    }
    return n > 0;
}

/* Algorithm 1 of Canonne, Kamath and Steinke: exp(-n / d), n <= d. */
static inline int exponential(stream *words, uint128 n, uint128 d)
{
    int odd = 1;
    for (uint128 dk = d; bernoulli(words, n, dk); dk += d)
        odd = !odd;
    return odd;
}

static inline uint64_t uniform(stream *words, uint64_t p)
{
    const uint64_t threshold = (0 - p) % p; /* 2^64 mod p */
    for (;;) {
        const uint128 product = (uint128)next(words) * p;
        if ((uint64_t)product >= threshold)
            return (uint64_t)(product >> 64);
    }
}

/* Algorithm 3, from proposals of Algorithm 2. */
static int64_t sample(stream *words, uint64_t p)
{
    const uint128 d = (uint128)p * p * 2;
    for (;;) {
        const uint64_t u = uniform(words, p);
        if (!exponential(words, u, p))
            continue;
        uint64_t v = 0;
        while (exponential(words, 1, 1))
            v++;
        const uint64_t y = (u + p * v) / SECAGG_SIGMA_STEP;
        const int negative = bernoulli(words, 1, 2);
        if (negative && y == 0)
            continue;
        const int64_t z = (int64_t)(SECAGG_SIGMA_STEP * y) - (int64_t)p;
        uint128 n = (uint128)((int128)z * z);
        int accepted = 1;
        for (; accepted && n >= d; n -= d)
            accepted = exponential(words, 1, 1);
        if (accepted && exponential(words, n, d))
            return negative ? -(int64_t)y : (int64_t)y;
    }
}

size_t secagg_discrete_gaussian(int64_t *out, size_t d, const uint64_t *words, size_t m,
                                uint64_t p, size_t *used)
{
    stream rest = {words, words + m, 0};
    *used = 0;
    for (size_t i = 0; i < d; i++) {
        out[i] = sample(&rest, p);
        if (rest.dry)
            return i;
        *used = (size_t)(rest.at - words);
    }
    return d;
}
