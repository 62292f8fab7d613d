/*
 * Ends in one of many ways, each after some memory was taken and some given back; tests/ledger/ends.py
 * compares the records.
 *
 * Usage: ends MODE. For each process that touches the GPU it prints a line "PID REASON CODE LIVE": how the
 * record must say that it ended, its exit code (-1: none), and the bytes that must be live.
 */
#include <assert.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vendor/abi/cuda_driver.h"
#include "vendor/abi/cuda_driver_fn.h"

enum { UNIT = 4096 };

static void say(const char *reason, int code, int units)
{
    char line[100];
    int bytes = snprintf(line, sizeof line, "%d %s %d %d\n", (int)getpid(), reason, code, units * UNIT);

    if (write(STDOUT_FILENO, line, (size_t)bytes) != bytes)
        _exit(99);
}

static void use(int units)
{
    CUcontext context;
    CUdeviceptr kept, freed;

    if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS ||
        cuCtxSetCurrent(context) != CUDA_SUCCESS ||
        cuMemAlloc_v2(&kept, (size_t)units * UNIT) != CUDA_SUCCESS ||
        cuMemAlloc_v2(&freed, UNIT) != CUDA_SUCCESS || cuMemFree_v2(freed) != CUDA_SUCCESS)
        _exit(98);
}

static int status_of(pid_t pid)
{
    int status = -1;

    while (waitpid(pid, &status, 0) < 0)
        ;
    return status;
}

static void end_return(void)
{
    say("exit", 0, 1);
}

static void end_exit(void)
{
    say("exit", 5, 1);
    exit(5);
}

static void end__exit(void)
{
    say("exit", 6, 1);
    _exit(6);
}

static void end__Exit(void)
{
    say("exit", 7, 1);
    _Exit(7);
}

static void end_quick(void)
{
    say("exit", 8, 1);
    quick_exit(8);
}

static void take_more(void)
{
    CUdeviceptr more;

    cuMemAlloc_v2(&more, UNIT);
}

static void end_quick_handler(void)
{
    at_quick_exit(take_more);
    say("exit", 8, 2);
    quick_exit(8);
}

static void *leave(void *arg)
{
    (void)arg;
    say("exit", 9, 1);
    _exit(9);
}

/* As a worker of Python's multiprocessing does. */
static void end_thread(void)
{
    pthread_t thread;

    pthread_create(&thread, NULL, leave, NULL);
    pthread_join(thread, NULL);
}

static void end_abort(void)
{
    say("signal", -1, 1);
    abort();
}

static void end_assert(void)
{
    say("killed", -1, 1);
    assert(!"this holds");
}

static sigjmp_buf before_abort;

static void jump(int signal)
{
    (void)signal;
    siglongjmp(before_abort, 1);
}

static void end_abort_caught(void)
{
    CUdeviceptr more;

    signal(SIGABRT, jump);
    if (sigsetjmp(before_abort, 1) == 0)
        abort();
    cuMemAlloc_v2(&more, UNIT);
    say("killed", -1, 2);
    raise(SIGKILL);
}

static volatile int *volatile nowhere;

static void end_segv(void)
{
    say("killed", -1, 1);
    *nowhere = 0;
}

static void end_term(void)
{
    say("killed", -1, 1);
    raise(SIGTERM);
}

static void in_handler(int signal)
{
    (void)signal;
    say("exit", 10, 1);
    _exit(10);
}

static void end_handler(void)
{
    signal(SIGSEGV, in_handler);
    *nowhere = 0;
}

static char *const arguments[] = {(char *)"true", NULL};
static char *const no_environment[] = {NULL};

static void end_execve(void)
{
    say("exec", -1, 1);
    execve("/bin/true", arguments, no_environment);
}

static void end_execv(void)
{
    say("exec", -1, 1);
    execv("/bin/true", arguments);
}

static void end_execvp(void)
{
    say("exec", -1, 1);
    execvp("true", arguments);
}

static void end_execvpe(void)
{
    say("exec", -1, 1);
    execvpe("true", arguments, no_environment);
}

static void end_execl(void)
{
    say("exec", -1, 1);
    execl("/bin/sh", "sh", "-c", "test \"$1$2\" = onetwo", "sh", "one", "two", (char *)NULL);
}

static void end_execlp(void)
{
    say("exec", -1, 1);
    execlp("sh", "sh", "-c", "test \"$1\" = one && exit 11", "sh", "one", (char *)NULL);
}

static void end_execle(void)
{
    char *const environment[] = {(char *)"ONLY=this", NULL};

    say("exec", -1, 1);
    execle("/bin/sh", "sh", "-c", "test \"$ONLY\" = this && exit 12", (char *)NULL, environment);
}

static void end_fexecve(void)
{
    say("exec", -1, 1);
    fexecve(open("/bin/true", O_RDONLY), arguments, no_environment);
}

static void end_exec_self(void)
{
    char *const again[] = {(char *)"ends", (char *)"return", NULL};

    say("exec", -1, 1);
    execv("/proc/self/exe", again);
}

static void end_exec_failed(void)
{
    execl("/no/such/program", "program", (char *)NULL);
    execve("/no/such/program", arguments, no_environment);
    execvp("no-such-program", arguments);
    say("killed", -1, 1);
    raise(SIGKILL);
}

static void end_exec_failed_return(void)
{
    execv("/no/such/program", arguments);
    say("exit", 0, 1);
}

/* The child begins with an empty record of its own. */
static void end_fork(void)
{
    pid_t child = fork();

    if (child == 0) {
        use(3);
        say("exit", 0, 3);
        exit(0);
    }
    status_of(child);
    say("exit", 0, 1);
}

static void end_fork_left(void)
{
    pid_t child = fork();

    if (child == 0) {
        use(3);
        say("exit", 13, 3);
        _exit(13);
    }
    status_of(child);
    say("killed", -1, 1);
    raise(SIGKILL);
}

/* A child that never touches the GPU has no record, and says nothing of its parent. */
static void end_fork_idle(void)
{
    pid_t child = fork();

    if (child == 0)
        _exit(3);
    status_of(child);
    child = fork();
    if (child == 0)
        execl("/bin/true", "true", (char *)NULL);
    status_of(child);
    say("killed", -1, 1);
    raise(SIGKILL);
}

static void end_vfork(void)
{
    pid_t child = vfork();

    if (child == 0)
        execve("/bin/true", arguments, no_environment);
    status_of(child);
    child = vfork();
    if (child == 0)
        _exit(0);
    status_of(child);
    child = vfork();
    if (child == 0) {
        execve("/no/such/program", arguments, no_environment);
        _exit(0);
    }
    status_of(child);
    say("killed", -1, 1);
    raise(SIGKILL);
}

static void end_spawn(void)
{
    pid_t child;

    if (posix_spawn(&child, "/bin/true", NULL, NULL, arguments, no_environment) != 0 || system("true") != 0)
        _exit(97);
    status_of(child);
    say("killed", -1, 1);
    raise(SIGKILL);
}

/* A child that no handler of pthread_atfork hears of. */
static void end_clone(void)
{
    long child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);

    if (child == 0) {
        use(3);
        say("exit", 14, 3);
        _exit(14);
    }
    status_of((pid_t)child);
    say("killed", -1, 1);
    raise(SIGKILL);
}

static const struct {
    const char *name;
    void (*end)(void);
} modes[] = {
    {"return", end_return},
    {"exit", end_exit},
    {"_exit", end__exit},
    {"_Exit", end__Exit},
    {"quick_exit", end_quick},
    {"quick_exit-handler", end_quick_handler},
    {"thread", end_thread},
    {"abort", end_abort},
    {"abort-caught", end_abort_caught},
    {"assert", end_assert},
    {"segv", end_segv},
    {"term", end_term},
    {"handler", end_handler},
    {"execve", end_execve},
    {"execv", end_execv},
    {"execvp", end_execvp},
    {"execvpe", end_execvpe},
    {"execl", end_execl},
    {"execlp", end_execlp},
    {"execle", end_execle},
    {"fexecve", end_fexecve},
    {"exec-self", end_exec_self},
    {"exec-failed", end_exec_failed},
    {"exec-failed-return", end_exec_failed_return},
    {"fork", end_fork},
    {"fork-left", end_fork_left},
    {"fork-idle", end_fork_idle},
    {"vfork", end_vfork},
    {"spawn", end_spawn},
    {"clone", end_clone},
};

int main(int argc, char **argv)
{
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        if (argc == 1) {
            puts(modes[i].name);
        } else if (strcmp(argv[1], modes[i].name) == 0) {
            use(1);
            modes[i].end();
        }
    }
    return 0;
}
