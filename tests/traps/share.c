/*
 * share.c - traps of memory that another process opens.
 */
#include "traps.h"

#include <sys/wait.h>
#include <unistd.h>

static const char handle_variable[] = "TRAP_HANDLE";

static void put(const cudaIpcMemHandle_t *handle)
{
    char text[2 * sizeof(*handle) + 1];

    for (size_t i = 0; i < sizeof(*handle); i++)
        sprintf(text + 2 * i, "%02x", ((const unsigned char *)handle)[i]);
    setenv(handle_variable, text, 1);
}

static void get(const char *text, cudaIpcMemHandle_t *handle)
{
    for (size_t i = 0; i < sizeof(*handle); i++)
        sscanf(text + 2 * i, "%2hhx", &((unsigned char *)handle)[i]);
}

/* The other process. */
static void import(const char *text)
{
    cudaIpcMemHandle_t handle;
    CUdeviceptr base = 0;
    size_t bytes = 0;
    void *p = NULL;

    get(text, &handle);
    int status = cudaIpcOpenMemHandle(&p, handle, cudaIpcMemLazyEnablePeerAccess);
    say("opened there %d", status);
    if (status != 0)
        return;
    say("range %d", (int)cuMemGetAddressRange_v2(&base, &bytes, (CUdeviceptr)p + 99));
    say("begins at the pointer %d, has %zu bytes", base == (CUdeviceptr)p, bytes);
    say("%d bytes differ", differing(p, bytes < 3000 ? bytes : 3000, 0x5a));
    say("fill %d", cudaMemset(p, 0x6b, 100));
    say("synchronize %d", cudaDeviceSynchronize());
    say("closed %d", cudaIpcCloseMemHandle(p));
    say("closed again %d", cudaIpcCloseMemHandle(p));
}

/* This trap again, in a process of its own. */
static void send(void *p, const char *trap, bool plain)
{
    cudaIpcMemHandle_t handle;
    int status = cudaIpcGetMemHandle(&handle, p);

    say("exported %d", status);
    if (status != 0)
        return;
    put(&handle);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        if (plain)
            unsetenv("LD_PRELOAD");
        execl("/proc/self/exe", "traps", trap, (char *)NULL);
        _exit(127);
    }
    waitpid(child, &status, 0);
    say("it ended with %d", status);
}

static void share(const char *trap, size_t bytes, bool plain)
{
    char *before, *p, *after;

    if (getenv(handle_variable)) {
        import(getenv(handle_variable));
        return;
    }
    before = take(bytes), p = take(bytes), after = take(bytes);
    fill(before, bytes, 0x11, NULL);
    fill(p, bytes, 0x5a, NULL);
    fill(after, bytes, 0x11, NULL);
    cudaDeviceSynchronize();
    send(p, trap, plain);
    say("%d bytes differ at the beginning, %d behind", differing(p, 100, 0x6b),
        differing(p + 100, bytes - 100, 0x5a));
    say("%d and %d of the neighbours'", differing(before, bytes, 0x11), differing(after, bytes, 0x11));
    say("free %d", cudaFree(p));
    say("exported then %d", cudaIpcGetMemHandle(&(cudaIpcMemHandle_t){0}, p));
}

static void small(void)
{
    share("ipc-small", 5000, false);
}

static void part(void)
{
    share("ipc-part-of-a-chunk", 3 * MIB, false);
}

static void whole(void)
{
    share("ipc-whole", 20 * MIB, false);
}

static void odd(void)
{
    share("ipc-range-of-a-whole-block", 18 * MIB + 5, false);
}

static void plain_small(void)
{
    share("ipc-importer-without-memshim", 5000, true);
}

static void plain_whole(void)
{
    share("ipc-whole-without-memshim", 20 * MIB, true);
}

const struct trap traps_share[] = {
    {"ipc-small", small, NULL},
    {"ipc-part-of-a-chunk", part, NULL},
    {"ipc-whole", whole, NULL},
    {"ipc-range-of-a-whole-block", odd, NULL},
    {"ipc-importer-without-memshim", plain_small, NULL},
    {"ipc-whole-without-memshim", plain_whole, NULL},
    {NULL, NULL, NULL},
};
