/* Memory of one process in another, through hipIpcGetMemHandle. The importer is a second process of this
 * program, started before either has called HIP. Prints, in the exporter's order, what must be the same with
 * and without memshim.
 *
 *   ipc            two processes
 *   ipc strange    the importer runs without memshim (LD_PRELOAD is taken away): it must get an error, never
 * a neighbour's bytes */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vendor/abi/hip.h"
#include "vendor/abi/hip_fn.h"

struct order {
    hipIpcMemHandle_t handle;
    size_t bytes;
    int expect; /* the value of every byte */
};

struct answer {
    int opened, wrong, closed;
};

/* An order a time: open, compare, write the next value, close. */
static int import_all(int in, int out)
{
    struct order order;

    while (read(in, &order, sizeof order) == (ssize_t)sizeof order) {
        struct answer answer = {.wrong = -1, .closed = -1};
        void *p = NULL;

        answer.opened = hipIpcOpenMemHandle(&p, order.handle, hipIpcMemLazyEnablePeerAccess);
        if (answer.opened == hipSuccess) {
            unsigned char *bytes = malloc(order.bytes);
            answer.wrong = hipMemcpy(bytes, p, order.bytes, hipMemcpyDeviceToHost) != hipSuccess;
            for (size_t i = 0; i < order.bytes; i++)
                answer.wrong += bytes[i] != order.expect;
            hipMemset(p, order.expect + 1, order.bytes);
            hipDeviceSynchronize();
            answer.closed = hipIpcCloseMemHandle(p);
            free(bytes);
        }
        if (write(out, &answer, sizeof answer) != (ssize_t)sizeof answer)
            return 1;
    }
    return 0;
}

static int to_importer, from_importer;
static size_t inside; /* where the handle is of, in the block that is shared */

static void share(const char *what, void *p, size_t bytes, int value)
{
    struct order order = {.bytes = bytes, .expect = value};
    struct answer answer = {-1, -1, -1};
    unsigned char *read_back = malloc(bytes);
    int status, changed = 0;

    status = hipIpcGetMemHandle(&order.handle, (char *)p + inside);
    if (status == hipSuccess && (write(to_importer, &order, sizeof order) != (ssize_t)sizeof order ||
                                 read(from_importer, &answer, sizeof answer) != (ssize_t)sizeof answer))
        exit(1);
    hipMemcpy(read_back, p, bytes, hipMemcpyDeviceToHost);
    for (size_t i = 0; i < bytes; i++)
        changed += read_back[i] != value;
    printf("%s: exported %d, opened %d, wrong %d, closed %d, changed %d\n", what, status, answer.opened != 0,
           answer.wrong, answer.closed, changed);
    free(read_back);
}

/* Of an address inside: what is opened is the block, at its first byte, which has another value than the
 * rest. */
static void share_inside(const char *what, void *p, size_t offset, int value, int rest)
{
    if (hipMemset(p, value, 16) != hipSuccess || hipMemset((char *)p + 16, rest, offset) != hipSuccess ||
        hipDeviceSynchronize() != hipSuccess)
        exit(1);
    inside = offset;
    share(what, p, 16, value);
    inside = 0;
}

static void *block(size_t bytes, int value)
{
    void *p = NULL;

    if (hipMalloc(&p, bytes) != hipSuccess || hipMemset(p, value, bytes) != hipSuccess ||
        hipDeviceSynchronize() != hipSuccess)
        exit(1);
    return p;
}

int main(int argc, char **argv)
{
    const size_t mib = (size_t)1 << 20;
    int there[2], back[2], status;

    if (argc > 3 && !strcmp(argv[1], "import"))
        return import_all(atoi(argv[2]), atoi(argv[3]));
    if (pipe(there) || pipe(back))
        return 1;
    pid_t child = fork();
    if (child == 0) {
        char in[16], out[16];
        if (argc > 1 && !strcmp(argv[1], "strange"))
            unsetenv("LD_PRELOAD");
        snprintf(in, sizeof in, "%d", there[0]);
        snprintf(out, sizeof out, "%d", back[1]);
        close(there[1]);
        close(back[0]);
        execl(argv[0], argv[0], "import", in, out, (char *)NULL);
        _exit(127);
    }
    close(there[0]);
    close(back[1]);
    to_importer = there[1];
    from_importer = back[0];

    void *neighbour = block(3000, 1), *small = block(3000, 10), *other = block(3000, 2);
    void *middle = block(3 * mib, 20), *large = block(40 * mib, 30);
    share("small", small, 3000, 10);
    share("middle", middle, 3 * mib, 20);
    share("large", large, 40 * mib, 30);
    share_inside("inside a small one", small, 1000, 10, 11);
    share_inside("inside a large one", large, 5 * mib, 31, 32);
    unsigned char before[3000], after[3000];
    int touched = hipMemcpy(before, neighbour, 3000, hipMemcpyDeviceToHost) ||
                  hipMemcpy(after, other, 3000, hipMemcpyDeviceToHost);
    for (int i = 0; i < 3000; i++)
        touched += before[i] != 1 || after[i] != 2;
    printf("neighbours touched: %d\n", touched);
    printf("freed %d %d %d %d %d\n", hipFree(neighbour), hipFree(small), hipFree(other), hipFree(middle),
           hipFree(large));
    close(to_importer);
    waitpid(child, &status, 0);
    return status != 0;
}
