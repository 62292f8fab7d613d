/* world.c - the C library as the tasks see it: time, futexes, fences and memory are the engine's; files are
 * in files.c.
 *
 * The linker puts these in the place of the library's functions (--wrap, tests/schedules/local.mk) in all of
 * the program. Memory goes with the schedule; nothing is ever given back within one. */
#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "engine.h"
#include "files.h"
#include "locks.h"
#include "order.h"
#include "real.h"
#include "weak.h"

/* The linker alone knows these names. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

enum { PAGE = 4096, FIRST_TID = 1000, PROCESS = 1234, USER = 1000 };

void *__real_mmap(void *at, size_t bytes, int rights, int flags, int file, off_t offset);
int __real_munmap(void *at, size_t bytes);
int __real_mprotect(void *at, size_t bytes, int rights);
int __real_clock_gettime(clockid_t clock, struct timespec *time_p);
ssize_t __wrap_pwrite(int file, const void *bytes, size_t count, off_t offset);
ssize_t __real_pwrite(int file, const void *bytes, size_t count, off_t offset);
int __real_close(int file);
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

void real_unmap(void *at, size_t bytes)
{
    __real_munmap(at, bytes);
}

void *real_map_shared(size_t bytes)
{
    void *memory = __real_mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        abort();
    return memory;
}

void real_protect(void *at, size_t bytes, bool writable)
{
    if (__real_mprotect(at, bytes, PROT_READ | (writable ? PROT_WRITE : 0)) != 0)
        abort();
}

void real_write(int file, const void *bytes, size_t count, uint64_t offset)
{
    if (__real_pwrite(file, bytes, count, (off_t)offset) != (ssize_t)count)
        abort();
}

void real_close(int file)
{
    __real_close(file);
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
    (void)rights;
    if (file >= 0 && !files_map(at, bytes, file, (uint64_t)offset)) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    if (flags & MAP_FIXED) /* over what was reserved, and never written to */
        return at;
    return freeze_alloc((bytes + PAGE - 1) & ~(size_t)(PAGE - 1), PAGE);
}

/* Naming memory, which would cut the engine's in pieces. */
int __wrap_prctl(int option, ...)
{
    (void)option;
    return 0;
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
    order_access(word, sizeof value, false);
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
    if (engine_current() < 0 && number != SYS_membarrier && number != SYS_pwrite64 && number != SYS_getpid &&
        number != SYS_gettid)
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
    case SYS_pwrite64:
        return __wrap_pwrite((int)a[0], (const void *)a[1], (size_t)a[2], (off_t)a[3]);
    case SYS_getpid:
        return PROCESS;
    case SYS_gettid:
        return FIRST_TID + engine_current();
    case SYS_tgkill: /* whether a thread is there: all are */
        return 0;
    default:
        return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    }
}

/* No signals come. */
int __wrap_pthread_sigmask(int how, const sigset_t *set, sigset_t *before)
{
    (void)how, (void)set;
    if (before)
        sigemptyset(before);
    return 0;
}

int __wrap_sigpending(sigset_t *set)
{
    return sigemptyset(set);
}

int __wrap_sigtimedwait(const sigset_t *set, siginfo_t *info, const struct timespec *time)
{
    (void)set, (void)info, (void)time;
    errno = EAGAIN;
    return -1;
}

ssize_t __wrap_getrandom(void *into, size_t bytes, unsigned flags)
{
    (void)flags;
    order_world();
    for (size_t i = 0; i < bytes; i++)
        ((unsigned char *)into)[i] = (unsigned char)engine_random();
    return (ssize_t)bytes;
}

int __wrap_getpid(void)
{
    return PROCESS;
}

/* What the kernel would write into memory that schedules share (freeze.c), and what would differ by machine.
 */
unsigned __wrap_geteuid(void)
{
    return USER;
}

int __wrap_getrlimit(int resource, struct rlimit *limit)
{
    (void)resource;
    *limit = (struct rlimit){RLIM_INFINITY, RLIM_INFINITY};
    return 0;
}

ssize_t __wrap_readlink(const char *path, char *into, size_t bytes)
{
    (void)path;
    return (ssize_t)strlen(strncpy(into, "/program", bytes));
}

char *__wrap_getcwd(char *into, size_t bytes)
{
    return strncpy(into, "/", bytes);
}

int __wrap_gethostname(char *into, size_t bytes)
{
    strncpy(into, "host", bytes);
    return 0;
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *time_p)
{
    (void)clock;
    uint64_t ns = engine_clock();
    *time_p = (struct timespec){1000 + (time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
    return 0;
}

/* As if the processor counted nanoseconds (subject.h). */
unsigned long long world_ticks(void)
{
    return engine_ticks();
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

int __wrap_pthread_mutex_lock(void *mutex)
{
    (void)mutex;
    engine_point(__builtin_return_address(0));
    order_world();
    return 0;
}

int __wrap_pthread_mutex_unlock(void *mutex)
{
    (void)mutex;
    return 0;
}

/* The driver's of tests/pool/fake.c, in which nobody gives way; who reads only looks at the driver. */
int __wrap_pthread_rwlock_wrlock(void *lock)
{
    (void)lock;
    locks_at_vendor();
    engine_point(__builtin_return_address(0));
    order_world();
    return 0;
}

int __wrap_pthread_rwlock_rdlock(void *lock)
{
    (void)lock;
    locks_at_vendor();
    engine_point(__builtin_return_address(0));
    order_world_looked_at();
    return 0;
}

int __wrap_pthread_rwlock_unlock(void *lock)
{
    (void)lock;
    return 0;
}

int __wrap_sched_yield(void)
{
    engine_wait(NULL, 0, 1, __builtin_return_address(0));
    return 0;
}
