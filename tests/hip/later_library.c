/*
 * later_library.c - a HIP runtime of times to come: as small as an allocation allows, with captures that
 * begin by a function which nobody has heard of.
 *
 * Whatever asks it for the state of work, or waits for it, destroys every capture, in every mode of the
 * thread, as HIP's does; a free does not. Nothing is ever under way. One thread calls. Addresses count up and
 * are never used twice.
 */
#include "tests/hip/later.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

enum { STREAMS = 8 };

static struct stream {
    bool alive, captures, destroyed;
} streams[STREAMS];
static uintptr_t next_address = (uintptr_t)1 << 46;
static int asked;
static char event;

int later_asked(void)
{
    return asked;
}

hipError_t hipInit(unsigned flags)
{
    return flags ? hipErrorInvalidValue : hipSuccess;
}

hipError_t hipRuntimeGetVersion(int *version)
{
    *version = 90000000;
    return hipSuccess;
}

hipError_t hipGetDeviceCount(int *count)
{
    *count = 1;
    return hipSuccess;
}

hipError_t hipGetDevice(int *device)
{
    *device = 0;
    return hipSuccess;
}

hipError_t hipSetDevice(int device)
{
    return device ? hipErrorInvalidDevice : hipSuccess;
}

/* The block that came last is the only one that anybody asks about. */
static uintptr_t last_address;
static size_t last_bytes;

hipError_t hipMalloc(void **address, size_t bytes)
{
    size_t rounded = (bytes + 4095) & ~(size_t)4095;

    last_address = next_address;
    last_bytes = bytes;
    next_address += rounded;
    *address = (void *)last_address;
    return hipSuccess;
}

hipError_t hipMemGetAddressRange(hipDeviceptr_t *base, size_t *bytes, hipDeviceptr_t address)
{
    if ((uintptr_t)address < last_address || (uintptr_t)address >= last_address + last_bytes)
        return hipErrorNotFound;
    *base = (hipDeviceptr_t)last_address;
    *bytes = last_bytes;
    return hipSuccess;
}

hipError_t hipFree(void *address)
{
    (void)address;
    return hipSuccess;
}

hipError_t hipMemGetInfo(size_t *left, size_t *total)
{
    *total = (size_t)16 << 30;
    *left = *total / 2;
    return hipSuccess;
}

hipError_t hipGetLastError(void)
{
    return hipSuccess;
}

hipError_t hipPeekAtLastError(void)
{
    return hipSuccess;
}

static hipError_t ask(void)
{
    bool any = false;

    asked++;
    for (int i = 0; i < STREAMS; i++) {
        if (streams[i].captures)
            any = streams[i].destroyed = true;
    }
    return any ? hipErrorStreamCaptureUnsupported : hipSuccess;
}

hipError_t hipDeviceSynchronize(void)
{
    return ask();
}

hipError_t hipStreamQuery(hipStream_t stream)
{
    (void)stream;
    return ask();
}

hipError_t hipStreamSynchronize(hipStream_t stream)
{
    (void)stream;
    return ask();
}

hipError_t hipEventQuery(hipEvent_t which)
{
    (void)which;
    return ask();
}

hipError_t hipEventSynchronize(hipEvent_t which)
{
    (void)which;
    return ask();
}

hipError_t hipEventCreateWithFlags(hipEvent_t *created, unsigned flags)
{
    (void)flags;
    *created = (hipEvent_t)&event;
    return hipSuccess;
}

hipError_t hipEventDestroy(hipEvent_t which)
{
    (void)which;
    return hipSuccess;
}

hipError_t hipEventRecord(hipEvent_t which, hipStream_t stream)
{
    (void)which, (void)stream;
    return hipSuccess;
}

hipError_t hipStreamCreateWithFlags(hipStream_t *stream, unsigned flags)
{
    (void)flags;
    for (int i = 0; i < STREAMS; i++) {
        if (streams[i].alive)
            continue;
        streams[i] = (struct stream){.alive = true};
        *stream = (hipStream_t)&streams[i];
        return hipSuccess;
    }
    return hipErrorOutOfMemory;
}

hipError_t hipStreamDestroy(hipStream_t stream)
{
    ((struct stream *)stream)->alive = false;
    return hipSuccess;
}

hipError_t hipStreamIsCapturing(hipStream_t stream, hipStreamCaptureStatus *status)
{
    *status = stream && ((struct stream *)stream)->captures ? hipStreamCaptureStatusActive
                                                            : hipStreamCaptureStatusNone;
    return hipSuccess;
}

hipError_t hipThreadExchangeStreamCaptureMode(hipStreamCaptureMode *mode)
{
    static hipStreamCaptureMode now = hipStreamCaptureModeGlobal;
    hipStreamCaptureMode before = now;

    now = *mode;
    *mode = before;
    return hipSuccess;
}

hipError_t hipStreamBeginLaterCapture(hipStream_t stream, LATER_PARAMETERS)
{
    if (LATER_IS_WRONG)
        return hipErrorInvalidValue;
    *(struct stream *)stream = (struct stream){.alive = true, .captures = true};
    return hipSuccess;
}

hipError_t hipStreamEndCapture(hipStream_t handle, hipGraph_t *graph)
{
    struct stream *stream = (struct stream *)handle;

    *graph = NULL;
    stream->captures = false;
    return stream->destroyed ? hipErrorStreamCaptureInvalidated : hipSuccess;
}

hipError_t hipGetProcAddress(const char *symbol, void **function, int version, uint64_t flags,
                             hipDriverProcAddressQueryResult *status)
{
    (void)version, (void)flags, (void)status;
    *function = strcmp(symbol, "hipStreamBeginLaterCapture") == 0 ? (void *)hipStreamBeginLaterCapture : NULL;
    return *function ? hipSuccess : hipErrorInvalidValue;
}
