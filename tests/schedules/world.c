/* world.c - the C library as the tasks see it: time, futexes, fences and memory are the engine's.
 *
 * The linker puts these in the place of the library's functions (--wrap, tests/schedules/local.mk) in all of
 * the program. Memory goes with the schedule; nothing is ever given back within one. */
#include <errno.h>
#include <linux/futex.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "engine.h"
#include "real.h"
#include "weak.h"

/* The linker alone knows these names. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

enum { PAGE = 4096, FIRST_TID = 1000 };

void *__real_mmap(void *at, size_t bytes, int rights, int flags, int file, off_t offset);
int __real_madvise(void *at, size_t bytes, int advice);
int __real_clock_gettime(clockid_t clock, struct timespec *time_p);
long __real_syscall(long number, ...);

void *real_map(void *at, size_t bytes)
{
    void *memory =
        __real_mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        abort();
    return memory;
}

void *real_map_at(void *at, size_t bytes)
{
    return __real_mmap(at, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
}

void real_map_file(void *at, size_t bytes, int file)
{
    if (__real_mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, file, 0) == MAP_FAILED)
        abort();
}

void real_drop(void *at, size_t bytes)
{
    if (__real_madvise(at, bytes, MADV_DONTNEED) != 0)
        abort();
}

uint64_t real_clock_ns(void)
{
    struct timespec t;
    __real_clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* --- memory ----------------------------------------------------------------------------------------------
 */

void *__wrap_mmap(void *at, size_t bytes, int rights, int flags, int file, off_t offset)
{
    (void)at, (void)rights, (void)offset;
    if (file >= 0 || flags & MAP_FIXED) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return freeze_alloc((bytes + PAGE - 1) & ~(size_t)(PAGE - 1), PAGE);
}

int __wrap_munmap(void *at, size_t bytes)
{
    (void)at, (void)bytes;
    return 0;
}

int __wrap_mprotect(void *at, size_t bytes, int rights)
{
    (void)at, (void)bytes, (void)rights;
    return 0;
}

int __wrap_madvise(void *at, size_t bytes, int advice)
{
    (void)at, (void)bytes, (void)advice;
    return 0;
}

void *__wrap_malloc(size_t bytes)
{
    size_t *memory = freeze_alloc(bytes + 16, 16);
    memory[0] = bytes;
    return memory + 2;
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    return __wrap_malloc(count * bytes);
}

void *__wrap_realloc(void *old, size_t bytes)
{
    void *memory = __wrap_malloc(bytes);
    if (old) {
        size_t had = ((size_t *)old)[-2];
        memcpy(memory, old, had < bytes ? had : bytes);
    }
    return memory;
}

void __wrap_free(void *memory)
{
    (void)memory;
}

/* --- time and threads ------------------------------------------------------------------------------------
 */

static uint64_t in_ns(const struct timespec *time)
{
    return (uint64_t)time->tv_sec * 1000000000u + (uint64_t)time->tv_nsec;
}

static int futex(const uint32_t *word, int operation, uint32_t value, const struct timespec *time,
                 const void *pc)
{
    uint64_t ns = time ? in_ns(time) : 0;
    if ((operation & FUTEX_CMD_MASK) != FUTEX_WAIT || *(const volatile uint32_t *)word != value)
        engine_point(pc);
    else
        engine_wait(word, value, ns ? ns : UINT64_MAX / 4, pc);
    return 0;
}

long __wrap_syscall(long number, ...)
{
    long a[6];
    va_list ap;
    const void *pc = __builtin_return_address(0);
    va_start(ap, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(ap, long);
    va_end(ap);
    if (engine_current() < 0 && number != SYS_membarrier)
        return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    switch (number) {
    case SYS_futex:
        return futex((const uint32_t *)a[0], (int)a[1], (uint32_t)a[2], (const struct timespec *)a[3], pc);
    case SYS_clock_nanosleep:
        engine_wait(NULL, 0, in_ns((const struct timespec *)a[2]), pc);
        return 0;
    case SYS_membarrier:
        engine_point(pc);
        weak_fence_all();
        return 0;
    case SYS_tgkill: /* whether a thread is there: all are */
        return 0;
    default:
        return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    }
}

int __wrap_gettid(void)
{
    return FIRST_TID + engine_current();
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *time_p)
{
    (void)clock;
    uint64_t ns = engine_clock();
    *time_p = (struct timespec){1000 + (time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
    return 0;
}

int __wrap_nanosleep(const struct timespec *time, struct timespec *left)
{
    (void)left;
    engine_wait(NULL, 0, in_ns(time), __builtin_return_address(0));
    return 0;
}

int __wrap_clock_nanosleep(clockid_t clock, int flags, const struct timespec *time, struct timespec *left)
{
    (void)clock, (void)flags;
    return __wrap_nanosleep(time, left);
}

int __wrap_sched_yield(void)
{
    engine_wait(NULL, 0, 1, __builtin_return_address(0));
    return 0;
}
