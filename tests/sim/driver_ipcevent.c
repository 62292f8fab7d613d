/* The simulated driver: events shared between this program and another run of it. */
#include <signal.h>
#include <sys/wait.h>

#include "driver.h"

static void put(int fd, const void *data, size_t bytes)
{
    if (write(fd, data, bytes) != (ssize_t)bytes)
        bail("write: %s", strerror(errno));
}

static void get(int fd, void *data, size_t bytes)
{
    if (read(fd, data, bytes) != (ssize_t)bytes)
        bail("read: %s", strerror(errno));
}

/* The other process: waits for the first event, records the second, then leaves the first pending and is
 * ended. */
static int other(void)
{
    CUipcEventHandle handles[2];
    CUevent first, second, broken;
    CUstream stream;
    atomic_int never = 0;
    char word = 'r';

    begin();
    get(0, handles, sizeof handles);
    if (cuIpcOpenEventHandle(&first, handles[0]) || cuIpcOpenEventHandle(&second, handles[1]))
        return 2;
    handles[0].reserved[10] ^= 1;
    if (cuIpcOpenEventHandle(&broken, handles[0]) == CUDA_SUCCESS)
        return 3;
    must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    if (cuEventQuery(first) != CUDA_ERROR_NOT_READY)
        return 4;
    must(cuStreamWaitEvent(stream, first, 0));
    must(cuEventRecord(second, stream));
    if (cuStreamQuery(stream) != CUDA_ERROR_NOT_READY)
        return 5;
    put(1, &word, 1);
    must(cuStreamSynchronize(stream));
    must(cuEventSynchronize(first));
    get(0, &word, 1);
    must(cuLaunchHostFunc(stream, hold, &never));
    must(cuEventRecord(first, stream));
    put(1, &word, 1);
    get(0, &word, 1); /* until it is ended */
    return 6;
}

int main(int argc, char **argv)
{
    CUipcEventHandle handles[2];
    CUevent first, second, plain;
    CUstream stream;
    atomic_int go = 0;
    int to[2], from[2], status;
    char word;

    if (argc > 1)
        return other();
    plan(0);
    begin();
    must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    must(cuEventCreate(&plain, CU_EVENT_DISABLE_TIMING));
    answers(cuEventCreate(&first, CU_EVENT_INTERPROCESS), CUDA_ERROR_INVALID_VALUE);
    must(cuEventCreate(&first, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
    must(cuEventCreate(&second, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
    answers(cuIpcGetEventHandle(&handles[0], plain), CUDA_ERROR_INVALID_HANDLE);
    answers(cuIpcGetEventHandle(&handles[0], first), CUDA_SUCCESS);
    answers(cuIpcGetEventHandle(&handles[1], second), CUDA_SUCCESS);
    answers(cuIpcOpenEventHandle(&plain, handles[0]), CUDA_ERROR_INVALID_CONTEXT);
    answers(cuEventQuery(first), CUDA_SUCCESS);
    must(cuLaunchHostFunc(stream, hold, &go));
    must(cuEventRecord(first, stream));
    answers(cuEventQuery(first), CUDA_ERROR_NOT_READY);
    if (pipe(to) || pipe(from))
        bail("pipe");
    pid_t child = fork();
    if (!child) {
        dup2(to[0], 0);
        dup2(from[1], 1);
        close(to[1]);
        close(from[0]);
        execl("/proc/self/exe", argv[0], "other", (char *)NULL);
        _exit(127);
    }
    close(to[0]);
    close(from[1]);
    put(to[1], handles, sizeof handles);
    get(from[0], &word, 1);
    answers(cuEventQuery(second), CUDA_ERROR_NOT_READY);
    atomic_store(&go, 1);
    answers(cuEventSynchronize(second), CUDA_SUCCESS);
    answers(cuEventQuery(first), CUDA_SUCCESS);
    put(to[1], &word, 1);
    get(from[0], &word, 1);
    answers(cuStreamWaitEvent(stream, first, 0), CUDA_SUCCESS);
    answers(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    kill(child, SIGKILL);
    is_int(waitpid(child, &status, 0) == child && WIFSIGNALED(status), 1, "the other process went its way");
    answers(cuStreamSynchronize(stream), CUDA_SUCCESS);
    must(cuEventDestroy_v2(first));
    must(cuEventDestroy_v2(second));
    return done();
}
