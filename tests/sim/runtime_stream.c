/*
 * Streams, events and host functions of the simulated runtime: order within a stream, none between streams,
 * statuses.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "vendor/abi/cuda_runtime_fn.h"
#include "tests/tap.h"

static atomic_int gate, steps;

static void wait_at_gate(void *argument)
{
    (void)argument;
    while (!atomic_load(&gate))
        usleep(200);
}

static void step(void *argument)
{
    int *place = argument;

    *place = atomic_fetch_add(&steps, 1) + 1;
}

static cudaStream_t called_stream;
static cudaError_t called_status = cudaErrorUnknown;

static void callback(cudaStream_t stream, cudaError_t status, void *argument)
{
    called_stream = stream;
    called_status = status;
    step(argument);
}

static void test_order(void)
{
    int first = 0, second = 0, third = 0;
    cudaStream_t stream;
    cudaEvent_t event;

    is_int(cudaStreamCreate(&stream), cudaSuccess, "cudaStreamCreate");
    is_int(cudaStreamCreate(NULL), cudaErrorInvalidValue, "cudaStreamCreate into nowhere");
    is_int(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess, "cudaEventCreateWithFlags");
    is_int(cudaStreamQuery(stream), cudaSuccess, "an idle stream is ready");
    atomic_store(&gate, 0);
    is_int(cudaLaunchHostFunc(stream, wait_at_gate, NULL), cudaSuccess, "cudaLaunchHostFunc");
    is_int(cudaLaunchHostFunc(stream, step, &first), cudaSuccess, "a second one");
    is_int(cudaStreamAddCallback(stream, callback, &second, 0), cudaSuccess, "cudaStreamAddCallback");
    is_int(cudaEventRecord(event, stream), cudaSuccess, "cudaEventRecord");
    is_int(cudaLaunchHostFunc(stream, step, &third), cudaSuccess, "and one behind it");
    is_int(cudaStreamQuery(stream), cudaErrorNotReady, "the stream is busy");
    is_int(cudaEventQuery(event), cudaErrorNotReady, "so is the event");
    is_int(atomic_load(&steps), 0, "nothing behind the gate has run");
    atomic_store(&gate, 1);
    is_int(cudaEventSynchronize(event), cudaSuccess, "cudaEventSynchronize");
    ok(first == 1 && second == 2, "what came before the event has run, in order");
    is_int(cudaStreamSynchronize(stream), cudaSuccess, "cudaStreamSynchronize");
    is_int(third, 3, "and the rest");
    ok(called_stream == stream && called_status == cudaSuccess,
       "the callback was told its stream and a status");
    is_int(cudaStreamAddCallback(stream, callback, &second, 1), cudaErrorInvalidValue,
           "callback flags must be 0");
    is_int(cudaEventDestroy(event), cudaSuccess, "cudaEventDestroy");
    is_int(cudaStreamDestroy(stream), cudaSuccess, "cudaStreamDestroy");
    is_int(cudaStreamDestroy(NULL), cudaErrorInvalidResourceHandle, "the default stream cannot be destroyed");
    (void)cudaGetLastError();
}

static void test_two_streams(void)
{
    int behind = 0, free_one = 0;
    cudaStream_t held, other;
    cudaEvent_t event;

    cudaStreamCreateWithFlags(&held, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
    cudaEventCreate(&event);
    atomic_store(&gate, 0);
    atomic_store(&steps, 0);
    cudaLaunchHostFunc(held, wait_at_gate, NULL);
    cudaEventRecord(event, held);
    is_int(cudaLaunchHostFunc(other, step, &free_one), cudaSuccess, "work on another stream");
    is_int(cudaStreamSynchronize(other), cudaSuccess, "does not wait for the held one");
    is_int(free_one, 1, "and ran");
    is_int(cudaStreamWaitEvent(other, event, 0), cudaSuccess, "cudaStreamWaitEvent");
    cudaLaunchHostFunc(other, step, &behind);
    is_int(cudaStreamQuery(other), cudaErrorNotReady, "now it waits");
    atomic_store(&gate, 1);
    is_int(cudaDeviceSynchronize(), cudaSuccess, "cudaDeviceSynchronize");
    is_int(behind, 2, "waits for both");
    cudaStreamDestroy(held);
    cudaStreamDestroy(other);
    cudaEventDestroy(event);
    (void)cudaGetLastError();
}

static void test_questions(void)
{
    int least = 99, greatest = 99, priority = 99, device = -1;
    unsigned long long a = 0, b = 0;
    enum cudaStreamCaptureStatus capture = cudaStreamCaptureStatusActive;
    unsigned int flags = 99;
    cudaStream_t stream;
    float milliseconds = -1;
    cudaEvent_t start, end;

    is_int(cudaDeviceGetStreamPriorityRange(&least, &greatest), cudaSuccess,
           "cudaDeviceGetStreamPriorityRange");
    ok(greatest <= least, "the greatest priority is the least number");
    is_int(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest), cudaSuccess,
           "cudaStreamCreateWithPriority");
    is_int(cudaStreamGetPriority(stream, &priority), cudaSuccess, "cudaStreamGetPriority");
    is_int(priority, greatest, "tells it");
    is_int(cudaStreamGetFlags(stream, &flags), cudaSuccess, "cudaStreamGetFlags");
    is_int(flags, cudaStreamNonBlocking, "tells them");
    is_int(cudaStreamGetId(stream, &a), cudaSuccess, "cudaStreamGetId");
    is_int(cudaStreamGetId(NULL, &b), cudaSuccess, "of the default stream too");
    ok(a != b, "and they differ");
    is_int(cudaStreamGetDevice(stream, &device), cudaSuccess, "cudaStreamGetDevice");
    is_int(device, 0, "tells it");
    is_int(cudaStreamIsCapturing(stream, &capture), cudaSuccess, "cudaStreamIsCapturing");
    is_int(capture, cudaStreamCaptureStatusNone, "it is not");
    cudaEventCreate(&start);
    cudaEventCreate(&end);
    cudaEventRecord(start, stream);
    cudaEventRecordWithFlags(end, stream, cudaEventRecordDefault);
    cudaEventSynchronize(end);
    is_int(cudaEventElapsedTime(&milliseconds, start, end), cudaSuccess, "cudaEventElapsedTime");
    ok(milliseconds >= 0, "does not run backwards");
    cudaEventDestroy(start);
    cudaEventDestroy(end);
    cudaStreamDestroy(stream);
}

static void *other_thread(void *argument)
{
    unsigned long long *id = argument;

    if (cudaStreamGetId_ptsz(NULL, id) != cudaSuccess)
        *id = 0;
    return NULL;
}

static void test_per_thread(void)
{
    unsigned long long mine = 0, theirs = 0, legacy = 0, named = 0;
    pthread_t thread;

    is_int(cudaStreamGetId_ptsz(NULL, &mine), cudaSuccess, "the thread's own stream");
    is_int(cudaStreamGetId(NULL, &legacy), cudaSuccess, "the legacy stream");
    is_int(cudaStreamGetId(cudaStreamPerThread, &named), cudaSuccess,
           "the thread's own stream by its handle");
    pthread_create(&thread, NULL, other_thread, &theirs);
    pthread_join(thread, NULL);
    ok(mine != legacy, "is not the legacy one");
    is_u64(named, mine, "is the same");
    ok(theirs && theirs != mine, "another thread has another");
}

int main(void)
{
    plan(0);
    test_order();
    test_two_streams();
    test_questions();
    test_per_thread();
    return done();
}
