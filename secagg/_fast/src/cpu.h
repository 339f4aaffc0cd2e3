/* The instructions of an x86-64 CPU, asked once, when the extension is loaded.
 *
 * __builtin_cpu_supports would do, but zig's run-time library, part of the wheels, has a stub that
 * always answers "no".
 */
#ifndef SECAGG_CPU_H
#define SECAGG_CPU_H

/* Instructions that a CPU may lack are compiled only where the tests run them. */
#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__)
#define SECAGG_X86_64

enum {
    SECAGG_AES = 1, /* with SSE4.1 */
    SECAGG_AVX2 = 2,
    SECAGG_AVX512 = 4, /* F, BW, DQ and VL */
    SECAGG_IFMA = 8, /* of AVX-512 */
    SECAGG_VAES = 16,
    SECAGG_SHA = 32, /* with SSE4.1 */
    SECAGG_CLMUL = 64,
};

/* 1 if this CPU has all that is `wanted` and the system keeps the registers, else 0. */
int secagg_cpu_has(unsigned wanted);

#endif
#endif
