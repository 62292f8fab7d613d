/* ends.c - the ways in which a process ends besides returning from main: _exit, _Exit, quick_exit, abort and
 * every exec.
 *
 * They run in signal handlers, in children of vfork that share the parent's memory, and in processes whose
 * heap is damaged: so they store an end reason in the record and go on to the C library's function. No lock,
 * no allocation, no report: `memshim run` and `memshim recover` write that from the ledger. What never comes
 * by here (a signal that ends the process, abort called inside the C library, a bare system call) leaves a
 * ledger without a reason, which says as much. */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/coverage.h"
#include "hooks/lookup/entry.h"
#include "hooks/init.h"
#include "hooks/lookup/resolve.h"
#include "record/file/journal.h"

typedef void (*exit_func_t)(int) __attribute__((noreturn));
typedef void (*abort_func_t)(void) __attribute__((noreturn));

static void ends_note(enum ms_end_reason reason, int code)
{
    if (!__atomic_load_n(&ms_real_dlsym, __ATOMIC_ACQUIRE))
        ms_resolve_loader();
    if (ms_init_owner())
        ms_journal_end(reason, code);
    ms_coverage_write();
}

/* An exec came back. */
static int failed(int result)
{
    int saved_errno = errno;

    if (ms_init_owner())
        ms_journal_end_taken_back();
    errno = saved_errno;
    return result;
}

MS_EXPORT void _exit(int status)
{
    ends_note(MS_END_EXIT, status & 0xff);
    ((exit_func_t)ms_real_ends[MS_REAL__exit])(status);
}

MS_EXPORT void _Exit(int status)
{
    ends_note(MS_END_EXIT, status & 0xff);
    ((exit_func_t)ms_real_ends[MS_REAL__Exit])(status);
}

MS_EXPORT void quick_exit(int status)
{
    ends_note(MS_END_EXIT, status & 0xff);
    ((exit_func_t)ms_real_ends[MS_REAL_quick_exit])(status);
}

MS_EXPORT void abort(void)
{
    ends_note(MS_END_SIGNAL, SIGABRT);
    ((abort_func_t)ms_real_ends[MS_REAL_abort])();
}

MS_EXPORT int execve(const char *path, char *const argv[], char *const envp[])
{
    ends_note(MS_END_EXEC, -1);
    return failed(((__typeof__(&execve))ms_real_ends[MS_REAL_execve])(path, argv, envp));
}

MS_EXPORT int execv(const char *path, char *const argv[])
{
    ends_note(MS_END_EXEC, -1);
    return failed(((__typeof__(&execv))ms_real_ends[MS_REAL_execv])(path, argv));
}

MS_EXPORT int execvp(const char *file, char *const argv[])
{
    ends_note(MS_END_EXEC, -1);
    return failed(((__typeof__(&execvp))ms_real_ends[MS_REAL_execvp])(file, argv));
}

MS_EXPORT int execvpe(const char *file, char *const argv[], char *const envp[])
{
    ends_note(MS_END_EXEC, -1);
    return failed(((__typeof__(&execvpe))ms_real_ends[MS_REAL_execvpe])(file, argv, envp));
}

MS_EXPORT int fexecve(int fd, char *const argv[], char *const envp[])
{
    ends_note(MS_END_EXEC, -1);
    return failed(((__typeof__(&fexecve))ms_real_ends[MS_REAL_fexecve])(fd, argv, envp));
}

/* Younger than the others: where the C library lacks it, so did the program without us. */
int execveat(int fd, const char *path, char *const argv[], char *const envp[], int flags);
MS_EXPORT int execveat(int fd, const char *path, char *const argv[], char *const envp[], int flags)
{
    ends_note(MS_END_EXEC, -1);
    if (!ms_real_ends[MS_REAL_execveat])
        return failed((int)syscall(SYS_execveat, fd, path, argv, envp, flags));
    return failed(((__typeof__(&execveat))ms_real_ends[MS_REAL_execveat])(fd, path, argv, envp, flags));
}

/* The arguments up to the NULL that ends them, which is counted. */
static size_t count_arguments(va_list args)
{
    size_t count = 2;

    while (va_arg(args, char *))
        count++;
    return count;
}

/* The list goes on the stack, as the C library does it: there is no heap to be had here. */
#define MS_COLLECT(last, argv)                                                                               \
    va_list args;                                                                                            \
    va_start(args, last);                                                                                    \
    size_t count = count_arguments(args);                                                                    \
    va_end(args);                                                                                            \
    char *argv[count];                                                                                       \
    va_start(args, last);                                                                                    \
    argv[0] = (char *)last;                                                                                  \
    for (size_t i = 1; i < count; i++)                                                                       \
        argv[i] = va_arg(args, char *);

#pragma GCC diagnostic ignored "-Wvla"

MS_EXPORT int execl(const char *path, const char *first, ...)
{
    MS_COLLECT(first, argv)
    va_end(args);
    return execv(path, argv);
}

MS_EXPORT int execlp(const char *file, const char *first, ...)
{
    MS_COLLECT(first, argv)
    va_end(args);
    return execvp(file, argv);
}

MS_EXPORT int execle(const char *path, const char *first, ...)
{
    MS_COLLECT(first, argv)
    char *const *envp = va_arg(args, char *const *);
    va_end(args);
    return execve(path, argv, envp);
}
