/* Preloaded: a processor of ARM without the AES instructions, of which qemu has none. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/auxv.h>

unsigned long getauxval(unsigned long type)
{
    const unsigned long aes = 1 << 3; /* HWCAP_AES of the kernel */
    unsigned long (*real)(unsigned long);
    *(void **)&real = dlsym(RTLD_NEXT, "getauxval");
    return type == AT_HWCAP ? real(type) & ~aes : real(type);
}
