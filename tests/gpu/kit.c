/*
 * kit.c: parts in processes of their own, and a device to begin with. The parent of the parts never touches a
 * GPU.
 */
#include "kit.h"

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kernels.h"

#define PART_SECONDS_DEFAULT 100

uint64_t kit_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

void kit_pause_ms(unsigned ms)
{
    struct timespec pause = {ms / 1000, (long)(ms % 1000) * 1000000L};

    while (nanosleep(&pause, &pause) && errno == EINTR)
        ;
}

void kit_give_up(const char *format, ...)
{
    va_list arguments;

    fflush(stdout);
    fputs("# ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    _exit(3);
}

/* --- parts ---------------------------------------------------------------------------------------------- */

/* Starts this program again as one part; its output comes through *fd_p if that is asked for. */
static int start(const char *name, const char *argument, int *fd_p)
{
    int ends[2] = {-1, -1};

    fflush(stdout);
    if (fd_p && pipe(ends) != 0)
        return -1;
    pid_t pid = fork();
    if (pid == 0) {
        if (fd_p) {
            setpgid(0, 0);
            dup2(ends[1], STDOUT_FILENO);
            close(ends[0]);
            close(ends[1]);
        }
        execl("/proc/self/exe", program_invocation_name, "--part", name, argument, (char *)NULL);
        _exit(127);
    }
    if (fd_p) {
        close(ends[1]);
        *fd_p = ends[0];
    }
    return pid;
}

static const char *reason_of(int status, bool late)
{
    static char text[64];

    if (late)
        return "it took too long";
    if (WIFSIGNALED(status))
        snprintf(text, sizeof text, "signal %d ended it", WTERMSIG(status));
    else if (WEXITSTATUS(status) != 0)
        snprintf(text, sizeof text, "it ended with %d", WEXITSTATUS(status));
    else
        return NULL;
    return text;
}

/* Hands out whole lines; what is left of the last one stays in the buffer. */
static size_t hand_out(char *buffer, size_t used, void (*line)(const char *text))
{
    char *begin = buffer, *end;

    while ((end = memchr(begin, '\n', used - (size_t)(begin - buffer))) != NULL) {
        *end = '\0';
        line(begin);
        begin = end + 1;
    }
    used -= (size_t)(begin - buffer);
    memmove(buffer, begin, used);
    return used;
}

/* Reads what a part prints until it closes its output. False if it was not done in time. */
static bool follow(int fd, void (*line)(const char *text), uint64_t until_ns)
{
    static char buffer[65536];
    size_t used = 0;

    for (;;) {
        struct pollfd in = {.fd = fd, .events = POLLIN};
        uint64_t now = kit_now_ns();
        if (now >= until_ns)
            return false;
        if (poll(&in, 1, (int)((until_ns - now) / 1000000 + 1)) <= 0)
            continue;
        ssize_t got = read(fd, buffer + used, sizeof buffer - used);
        if (got <= 0)
            return true;
        used = hand_out(buffer, used + (size_t)got, line);
        if (used == sizeof buffer)
            used = 0; /* no line of ours is that long */
    }
}

static const char *run_part(const struct kit_part *part, unsigned seconds, void (*line)(const char *text))
{
    int fd, status = 0;
    pid_t pid = start(part->name, NULL, &fd);

    if (pid < 0)
        return "it could not be started";
    bool whole = follow(fd, line, kit_now_ns() + seconds * 1000000000ULL);
    if (!whole)
        kill(-pid, SIGKILL); /* its own group: with what it started */
    close(fd);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return reason_of(status, !whole);
}

static const struct kit_part *find(const struct kit_part *parts, const char *name)
{
    while (parts->name && strcmp(parts->name, name) != 0)
        parts++;
    return parts->name ? parts : NULL;
}

static bool is_wanted(const char *name, int argc, char **argv)
{
    bool all = true;

    if (name[0] == '.')
        return false;
    for (int i = 1; i < argc; i++) {
        all = false;
        if (strcmp(argv[i], name) == 0)
            return true;
    }
    return all;
}

int kit_main(int argc, char **argv, const struct kit_part *parts, void (*line)(const char *text),
             void (*ended)(const char *part, const char *reason))
{
    const char *limit = getenv("GPU_PART_SECONDS");
    unsigned seconds = limit && atoi(limit) > 0 ? (unsigned)atoi(limit) : PART_SECONDS_DEFAULT;
    int failed = 0;

    if (argc >= 3 && strcmp(argv[1], "--part") == 0) {
        const struct kit_part *part = find(parts, argv[2]);
        if (!part)
            return 2;
        setvbuf(stdout, NULL, _IOLBF, 0);
        part->run(argc - 3, argv + 3);
        fflush(stdout);
        return 0;
    }
    for (int i = 1; i < argc; i++) {
        if (!find(parts, argv[i]) || argv[i][0] == '.') {
            fprintf(stderr, "usage: %s [--list] [PART...]\n", argv[0]);
            return 2;
        }
    }
    for (; parts->name; parts++) {
        if (!is_wanted(parts->name, argc, argv))
            continue;
        const char *reason = run_part(parts, seconds, line);
        failed |= reason != NULL;
        ended(parts->name, reason);
    }
    return failed;
}

int kit_child_start(const char *role, const char *argument)
{
    return start(role, argument, NULL);
}

int kit_child_end(int pid)
{
    int status = -1;

    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int kit_child(const char *role, const char *argument)
{
    int pid = kit_child_start(role, argument);

    return pid < 0 ? -1 : kit_child_end(pid);
}

/* --- a device ------------------------------------------------------------------------------------------- */

static CUmodule module;

CUcontext kit_begin(void)
{
    CUcontext ctx = NULL;

    /* Kernels are loaded now: loading one later may wait for the device, which a stream may hold then. */
    setenv("CUDA_MODULE_LOADING", "EAGER", 0);
    kit_must(cuInit(0));
    kit_must(cuDevicePrimaryCtxRetain(&ctx, 0));
    kit_must(cuCtxSetCurrent(ctx));
    if (cuModuleLoadData(&module, kit_ptx) != CUDA_SUCCESS)
        module = NULL;
    kit_kernel("memsim_hold");
    kit_fill(0, 0, 0, NULL);
    kit_must(cuCtxSynchronize());
    return ctx;
}

CUfunction kit_kernel(const char *name)
{
    CUfunction kernel = NULL;

    if (!module || cuModuleGetFunction(&kernel, module, name) != CUDA_SUCCESS)
        return NULL;
    return kernel;
}

CUresult kit_fill(CUdeviceptr address, uint32_t value, uint64_t words, CUstream stream)
{
    CUfunction kernel = kit_kernel("memsim_fill");
    void *parameters[] = {&address, &value, &words};

    return kernel ? cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL)
                  : CUDA_ERROR_NOT_FOUND;
}

bool kit_has(const char *name)
{
    return dlsym(RTLD_DEFAULT, name) != NULL;
}

int kit_devices(void)
{
    int count = 0;

    return cuDeviceGetCount(&count) == CUDA_SUCCESS ? count : 0;
}
