/* Marks of secrets for valgrind's memcheck, after Langley's ctgrind, and for clang's
 * MemorySanitizer: both report a branch or an address that depends on undefined memory.
 * Every source of the kernels is compiled with `-include secret.h`. */
#ifndef SECRET_H
#define SECRET_H

#include <stddef.h>
#include <stdint.h>

#if defined(__has_feature)
#if __has_feature(memory_sanitizer)
#define WITH_MSAN 1
#endif
#endif

#ifdef WITH_MSAN
#include <sanitizer/msan_interface.h>
static inline void hide(const void *at, size_t bytes) { __msan_poison(at, bytes); }
static inline void show(const void *at, size_t bytes) { __msan_unpoison(at, bytes); }
static inline unsigned findings(void) { return 0; } /* the first one ends the process */
#else
#define WITH_MSAN 0
#include <valgrind/memcheck.h>
static inline void hide(const void *at, size_t bytes)
{
    (void)VALGRIND_MAKE_MEM_UNDEFINED(at, bytes);
}
static inline void show(const void *at, size_t bytes)
{
    (void)VALGRIND_MAKE_MEM_DEFINED(at, bytes);
}
static inline unsigned findings(void) { return (unsigned)VALGRIND_COUNT_ERRORS; }
#endif

static inline int shown(int bit)
{
    show(&bit, sizeof bit);
    return bit;
}
#define SECAGG_PUBLIC(bit) shown(bit)

#endif
