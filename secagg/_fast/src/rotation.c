/* Randomised Walsh-Hadamard rotation of bounded vectors; specified by reference_rotation.py.
 *
 * Elements are secret, so nothing branches on them, and no arithmetic sees a subnormal number:
 * the least element of `widen` leaves room for the differences of `rotate`. Contraction to fused
 * multiply-add, which would change the rounding, is switched off in setup.py.
 */
#include "kernels.h"

#include <string.h>

enum { LANES = 8, BLOCK = 1 << 11 /* 16 KiB: half of the first cache */ };

static const uint64_t LEAST = 0x2d30000000000000;   /* 2^-300 */
static const uint64_t LARGEST = 0x52b0000000000000; /* 2^300 */

/* The bits of an element of 8 bytes, or of 4; subnormals of 4 bytes are zero. */
static inline uint64_t bits_of(const uint8_t *x, size_t i, size_t width)
{
    uint64_t bits;
    if (width == sizeof(double)) {
        memcpy(&bits, x + 8 * i, sizeof bits);
        return bits;
    }
    uint32_t narrow;
    memcpy(&narrow, x + 4 * i, sizeof narrow);
    narrow &= 0 - (((narrow & 0x7f800000) + 0x7f800000) >> 31);
    float each;
    memcpy(&each, &narrow, sizeof each);
    const double wide = (double)each;
    memcpy(&bits, &wide, sizeof bits);
    return bits;
}

static inline uint64_t widen(double *out, const uint8_t *x, size_t n, size_t width)
{
    uint64_t infinite = 0;
    for (size_t i = 0; i < n; i++) {
        const uint64_t bits = bits_of(x, i, width), sign = bits & (uint64_t)INT64_MIN;
        uint64_t size = bits ^ sign;
        infinite |= size + ((uint64_t)1 << 52); /* the sign, if the exponent is all ones */
        const uint64_t above = 0 - ((LARGEST - size) >> 63);
        size = (size & ~above) | (LARGEST & above);
        const uint64_t keep = ((size - LEAST) >> 63) - 1;
        size = (size | sign) & keep;
        memcpy(out + i, &size, sizeof size);
    }
    return infinite >> 63;
}

double secagg_widen(double *out, size_t size, const void *x, size_t n, size_t width, int *finite)
{
    const uint64_t infinite = width == sizeof(float) ? widen(out, x, n, sizeof(float))
                                                     : widen(out, x, n, sizeof(double));
    *finite = SECAGG_PUBLIC((int)(infinite ^ 1));
    for (size_t i = n; i < size; i++)
        out[i] = 0.0;
    double lanes[LANES] = {0};
    const size_t whole = size - size % LANES;
    for (size_t first = 0; first < whole; first += LANES)
        for (size_t j = 0; j < LANES; j++)
            lanes[j] += out[first + j] * out[first + j];
    for (size_t i = whole; i < size; i++)
        lanes[i - whole] += out[i] * out[i];
    for (size_t half = LANES / 2; half > 0; half /= 2)
        for (size_t j = 0; j < half; j++)
            lanes[j] += lanes[j + half];
    return lanes[0];
}

static inline void butterflies(double *a, size_t n, size_t h)
{
    for (size_t i = 0; i < n; i += 2 * h)
        for (size_t j = i; j < i + h; j++) {
            const double x = a[j], y = a[j + h];
            a[j] = x + y;
            a[j + h] = x - y;
        }
}

/* Two steps at once, h and 2 h, with the additions of both. */
static inline void double_butterflies(double *a, size_t n, size_t h)
{
    for (size_t i = 0; i < n; i += 4 * h)
        for (size_t j = i; j < i + h; j++) {
            const double p = a[j] + a[j + h], q = a[j] - a[j + h];
            const double r = a[j + 2 * h] + a[j + 3 * h], s = a[j + 2 * h] - a[j + 3 * h];
            a[j] = p + r;
            a[j + h] = q + s;
            a[j + 2 * h] = p - r;
            a[j + 3 * h] = q - s;
        }
}

/* Steps 1, 2, 4 … n / 2; parts that fit the cache first. */
static void transform(double *a, size_t n)
{
    if (n > BLOCK) {
        for (size_t i = 0; i < 4; i++)
            transform(a + i * (n / 4), n / 4);
        double_butterflies(a, n, n / 4);
        return;
    }
    size_t h = 1;
    for (; 4 * h <= n; h *= 4)
        double_butterflies(a, n, h);
    if (h < n)
        butterflies(a, n, h);
}

static void flip(double *values, size_t n, const uint64_t *signs)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t bits;
        memcpy(&bits, values + i, sizeof bits);
        bits ^= (signs[i / 64] >> i % 64) << 63;
        memcpy(values + i, &bits, sizeof bits);
    }
}

void secagg_rotate(double *values, size_t n, const uint64_t *signs, int inverse)
{
    double scale = 1.0;
    size_t left = n;
    for (; left > 2; left /= 4)
        scale *= 0.5;
    if (left == 2)
        scale *= 0x1.6a09e667f3bcdp-1; /* sqrt(1 / 2) */
    if (!inverse)
        flip(values, n, signs);
    transform(values, n);
    for (size_t i = 0; i < n; i++)
        values[i] *= scale;
    if (inverse)
        flip(values, n, signs);
}
