/* CPUID and XGETBV: Intel SDM, volume 1, sections 14.3, 14.7.1 and 15.2 to 15.4. */
#include "cpu.h"

#if defined(SECAGG_X86_64)

#include <cpuid.h>

enum {
    XMM_YMM = 0x06,   /* halves of the registers of AVX that the system keeps, bits of XCR0 */
    OF_AVX512 = 0xe0, /* mask registers, and the rest of ZMM */
};

static unsigned found;

static int all(unsigned word, unsigned bits) { return (word & bits) == bits; }

static unsigned kept_registers(void)
{
    unsigned low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

__attribute__((constructor)) static void ask(void)
{
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d))
        return;
    if (all(c, bit_AES | bit_SSE4_1))
        found |= SECAGG_AES;
    if (all(c, bit_PCLMUL))
        found |= SECAGG_CLMUL;
    const unsigned first = c;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d))
        return;
    if (all(first, bit_SSE4_1) && all(b, bit_SHA))
        found |= SECAGG_SHA;
    if (!all(first, bit_OSXSAVE | bit_AVX))
        return;
    const unsigned kept = kept_registers();
    if (!all(kept, XMM_YMM))
        return;
    if (all(b, bit_AVX2))
        found |= SECAGG_AVX2;
    if (all(c, bit_VAES))
        found |= SECAGG_VAES;
    if (!all(kept, OF_AVX512) ||
        !all(b, bit_AVX512F | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL))
        return;
    found |= SECAGG_AVX512;
    if (all(b, bit_AVX512IFMA))
        found |= SECAGG_IFMA;
}

int secagg_cpu_has(unsigned wanted) { return all(found, wanted); }

#endif /* SECAGG_X86_64 */
