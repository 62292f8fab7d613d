/* memory.c - reads that cannot fault, and which part of a stack is known to be readable.
 *
 * Floor 1. No lock, no allocation; the only state is the calling thread's. The kernel is asked: a handler for
 * SIGSEGV would be the host's business. */
#include <errno.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/compiler.h"
#include "unwind/native/memory.h"

enum {
    KERNEL_SIGSET_BYTES = 8,
    PAGES_PER_CALL = 16, /* 16 bytes each of the program's stack */
    HOME_BYTES_MAX = 256 << 20,
};

/* The part of the thread's own stack that is known to be readable, and the megabyte that was found to lie
 * elsewhere. */
static MS_TLS struct ms_range home;
static MS_TLS uintptr_t foreign_megabyte;

/* The kernel copies the new mask in before it looks at `how`, which is not a valid one: EFAULT says
 * unreadable, EINVAL readable, and no mask is changed either way. */
bool ms_memory_readable(uintptr_t address)
{
    long result = syscall(SYS_rt_sigprocmask, -1, address, NULL, KERNEL_SIGSET_BYTES);
    return result < 0 && errno == EINVAL;
}

/* Copies where the system call is forbidden: a word of each page is asked for, and then the page is read. */
static MS_RAW bool copy_by_words(uintptr_t address, unsigned char *into, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        if ((i == 0 || (address + i) % MS_PAGE_BYTES == 0) &&
            !ms_memory_readable((address + i) & ~(uintptr_t)7))
            return false;
        into[i] = *(const volatile unsigned char *)(address + i);
    }
    return true;
}

bool ms_memory_copy(uintptr_t address, void *into, size_t bytes)
{
    struct iovec local = {into, bytes};
    struct iovec remote = {(void *)address, bytes};
    long got = syscall(SYS_process_vm_readv, getpid(), &local, 1, &remote, 1, 0);
    if (got >= 0 || errno == EFAULT)
        return got == (long)bytes;
    return copy_by_words(address, into, bytes);
}

bool ms_memory_is_run(uintptr_t lo, uintptr_t hi)
{
    struct iovec remote[PAGES_PER_CALL];
    char bytes[PAGES_PER_CALL];
    struct iovec local = {bytes, sizeof bytes};
    lo &= ~(uintptr_t)(MS_PAGE_BYTES - 1);
    while (lo < hi) {
        unsigned long count = 0;
        for (uintptr_t page = lo; page < hi && count < PAGES_PER_CALL; page += MS_PAGE_BYTES)
            remote[count++] = (struct iovec){(void *)page, 1};
        long got = syscall(SYS_process_vm_readv, getpid(), &local, 1, remote, count, 0);
        if (got < 0 && errno != EFAULT) {
            for (got = 0; got < (long)count && ms_memory_readable((uintptr_t)remote[got].iov_base); got++)
                ;
        }
        if (got != (long)count)
            return false;
        lo += count * MS_PAGE_BYTES;
    }
    return true;
}

static uintptr_t thread_pointer(void)
{
    uintptr_t value;
#if defined(__x86_64__)
    __asm__("mov %%fs:0, %0" : "=r"(value));
#elif defined(__aarch64__)
    __asm__("mrs %0, tpidr_el0" : "=r"(value));
#else
    value = 0;
#endif
    return value;
}

/* The C library puts a thread's control block at the upper end of its stack, and the kernel the random bytes
 * of AT_RANDOM at the upper end of the first thread's. A run of readable pages from `page` up to one of them
 * is that stack: other mappings below it lie beyond its guard pages. */
static bool find_home(uintptr_t page)
{
    uintptr_t tops[] = {thread_pointer(), (uintptr_t)getauxval(AT_RANDOM)};
    for (unsigned i = 0; i < MS_ARRAY_LEN(tops); i++) {
        uintptr_t top = tops[i] & ~(uintptr_t)(MS_PAGE_BYTES - 1);
        if (page >= tops[i] || top - page > HOME_BYTES_MAX || !ms_memory_is_run(page, top))
            continue;
        home = (struct ms_range){page, tops[i]};
        return true;
    }
    return false;
}

/* The stack has grown since, or this is another one. */
static bool extend_home(uintptr_t page)
{
    if (home.hi == 0)
        return find_home(page);
    if (page >= home.lo || home.lo - page > HOME_BYTES_MAX || !ms_memory_is_run(page, home.lo))
        return false;
    home.lo = page;
    return true;
}

struct ms_range ms_memory_range(uintptr_t address)
{
    uintptr_t page = address & ~(uintptr_t)(MS_PAGE_BYTES - 1);
    if (MS_LIKELY(address >= home.lo && address < home.hi))
        return (struct ms_range){address, home.hi};
    if (foreign_megabyte != address >> 20) {
        if (extend_home(page))
            return (struct ms_range){address, home.hi};
        foreign_megabyte = address >> 20;
    }
    if (address % sizeof address != 0 || !ms_memory_readable(address))
        return (struct ms_range){0, 0};
    return (struct ms_range){page, page + MS_PAGE_BYTES};
}

uintptr_t ms_memory_stack_end(void)
{
    return home.hi;
}
