/*
 * Copies and fills through the simulated runtime really move the bytes, in every direction and shape.
 */
#include <stdint.h>
#include <stdlib.h>

#include "vendor/abi/cuda_runtime_fn.h"
#include "tests/tap.h"

enum { BYTES = 100000 };

static unsigned char pattern(size_t i)
{
    return (unsigned char)(i * 7 + i / 251);
}

static void fill(unsigned char *to, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        to[i] = pattern(i);
}

static bool holds(const unsigned char *from, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        if (from[i] != pattern(i))
            return false;
    }
    return true;
}

static void *device_block(size_t bytes)
{
    void *p;

    if (cudaMalloc(&p, bytes) != cudaSuccess)
        bail("cudaMalloc");
    return p;
}

static void test_linear(void)
{
    unsigned char *from = malloc(BYTES), *to = calloc(1, BYTES);
    void *a = device_block(BYTES), *b = device_block(BYTES);

    fill(from, BYTES);
    is_int(cudaMemcpy(a, from, BYTES, cudaMemcpyHostToDevice), cudaSuccess, "host to device");
    is_int(cudaMemcpy(b, a, BYTES, cudaMemcpyDeviceToDevice), cudaSuccess, "device to device");
    is_int(cudaMemcpy(to, b, BYTES, cudaMemcpyDeviceToHost), cudaSuccess, "device to host");
    ok(holds(to, BYTES), "the bytes are right");
    memset(to, 0, BYTES);
    is_int(cudaMemset(b, 0, BYTES), cudaSuccess, "cudaMemset");
    is_int(cudaMemcpy(to, b, 10, cudaMemcpyDefault), cudaSuccess, "default direction, from the device");
    ok(to[0] == 0 && to[9] == 0, "reads the fill");
    is_int(cudaMemcpy(b, from, BYTES, cudaMemcpyDefault), cudaSuccess, "default direction, to the device");
    is_int(cudaMemcpy_ptds(to, b, BYTES, cudaMemcpyDefault), cudaSuccess, "and back, per thread");
    ok(holds(to, BYTES), "the bytes are right");
    memset(to, 0, BYTES);
    is_int(cudaMemcpy(to, from, BYTES, cudaMemcpyHostToHost), cudaSuccess, "host to host");
    ok(holds(to, BYTES), "the bytes are right");
    is_int(cudaMemcpy(to, b, 1, (enum cudaMemcpyKind)9), cudaErrorInvalidMemcpyDirection,
           "an unknown direction");
    is_int(cudaMemcpy(to, b, 0, cudaMemcpyDeviceToHost), cudaSuccess, "nothing");
    is_int(cudaMemcpy(to, (char *)b + BYTES - 5, 10 << 20, cudaMemcpyDeviceToHost), cudaErrorInvalidValue,
           "more than the block has");
    cudaFree(a);
    cudaFree(b);
    free(from);
    free(to);
    (void)cudaGetLastError();
}

static void test_async(void)
{
    unsigned char *from, *to;
    cudaStream_t stream;
    void *a = device_block(BYTES);

    cudaMallocHost((void **)&from, BYTES);
    cudaMallocHost((void **)&to, BYTES);
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    fill(from, BYTES);
    memset(to, 0, BYTES);
    is_int(cudaMemsetAsync(a, 9, BYTES, stream), cudaSuccess, "cudaMemsetAsync");
    is_int(cudaMemcpyAsync(a, from, BYTES / 2, cudaMemcpyHostToDevice, stream), cudaSuccess,
           "half of it, later");
    is_int(cudaMemcpyAsync(to, a, BYTES, cudaMemcpyDeviceToHost, stream), cudaSuccess,
           "all of it back, later");
    is_int(cudaStreamSynchronize(stream), cudaSuccess, "wait");
    ok(holds(to, BYTES / 2) && to[BYTES / 2] == 9 && to[BYTES - 1] == 9, "in the order they were given");
    is_int(cudaMemcpyAsync_ptsz(to, a, BYTES, cudaMemcpyDefault, NULL), cudaSuccess,
           "on the thread's own stream");
    is_int(cudaStreamSynchronize(cudaStreamPerThread), cudaSuccess, "wait");
    cudaStreamDestroy(stream);
    cudaFreeHost(from);
    cudaFreeHost(to);
    cudaFree(a);
}

enum { WIDTH = 30, HEIGHT = 11, DEPTH = 3 };

static void test_rows(void)
{
    unsigned char from[HEIGHT][64], to[HEIGHT][WIDTH];
    size_t pitch;
    void *p;
    bool right = true;

    for (int y = 0; y < HEIGHT; y++)
        fill(from[y], 64);
    cudaMallocPitch(&p, &pitch, WIDTH, HEIGHT);
    is_int(cudaMemset2D(p, pitch, 0xee, WIDTH, HEIGHT), cudaSuccess, "cudaMemset2D");
    is_int(cudaMemcpy2D(p, pitch, from, 64, WIDTH - 1, HEIGHT, cudaMemcpyHostToDevice), cudaSuccess,
           "rows in");
    is_int(cudaMemcpy2D(to, WIDTH, p, pitch, WIDTH, HEIGHT, cudaMemcpyDeviceToHost), cudaSuccess, "rows out");
    for (int y = 0; y < HEIGHT; y++)
        right = right && holds(to[y], WIDTH - 1) && to[y][WIDTH - 1] == 0xee;
    ok(right, "each row is right and what was not copied is the fill");
    is_int(cudaMemcpy2D(p, pitch, from, 8, WIDTH, HEIGHT, cudaMemcpyHostToDevice), cudaErrorInvalidPitchValue,
           "a pitch less than the width");
    is_int(cudaMemcpy2DAsync(to, WIDTH, p, pitch, WIDTH, HEIGHT, cudaMemcpyDefault, cudaStreamPerThread),
           cudaSuccess, "rows, later");
    is_int(cudaStreamSynchronize(cudaStreamPerThread), cudaSuccess, "wait");
    cudaFree(p);
    (void)cudaGetLastError();
}

static void test_box(void)
{
    unsigned char from[DEPTH][HEIGHT][WIDTH], to[DEPTH][HEIGHT][WIDTH];
    struct cudaExtent extent = {WIDTH, HEIGHT, DEPTH}, inner = {4, 3, 2};
    struct cudaMemcpy3DParms in = {.extent = {WIDTH, HEIGHT, DEPTH}, .kind = cudaMemcpyHostToDevice};
    struct cudaMemcpy3DParms out = {.extent = {WIDTH, HEIGHT, DEPTH}, .kind = cudaMemcpyDeviceToHost};
    struct cudaPitchedPtr box, part;
    int filled = 0;

    fill(&from[0][0][0], sizeof(from));
    memset(to, 0, sizeof(to));
    cudaMalloc3D(&box, extent);
    in.srcPtr = (struct cudaPitchedPtr){from, WIDTH, WIDTH, HEIGHT};
    in.dstPtr = box;
    is_int(cudaMemcpy3D(&in), cudaSuccess, "a box in");
    part = box;
    part.ptr = (char *)box.ptr + box.pitch * box.ysize; /* from the second layer on */
    is_int(cudaMemset3D(part, 0xaa, inner), cudaSuccess, "a small box filled inside it");
    out.srcPtr = box;
    out.dstPtr = (struct cudaPitchedPtr){to, WIDTH, WIDTH, HEIGHT};
    is_int(cudaMemcpy3D(&out), cudaSuccess, "the box out");
    for (size_t i = 0; i < sizeof(to); i++) {
        size_t x = i % WIDTH, y = i / WIDTH % HEIGHT, z = i / WIDTH / HEIGHT;
        bool inside = x < 4 && y < 3 && z >= 1;

        filled += inside && ((unsigned char *)to)[i] == 0xaa;
        if (!inside && ((unsigned char *)to)[i] != pattern(i)) {
            filled = -1;
            break;
        }
    }
    is_int(filled, 4 * 3 * 2, "the small box holds the fill and the rest is as it was");
    cudaFree(box.ptr);
}

static void test_array(void)
{
    struct cudaChannelFormatDesc desc = cudaCreateChannelDesc(32, 0, 0, 0, cudaChannelFormatKindSigned);
    struct cudaMemcpy3DParms out = {.extent = {8, 4, 1}, .kind = cudaMemcpyDeviceToHost};
    int from[4][8], to[4][8];
    cudaArray_t a, b;

    for (int i = 0; i < 32; i++)
        (&from[0][0])[i] = i * i;
    memset(to, 0, sizeof(to));
    cudaMallocArray(&a, &desc, 8, 4, 0);
    cudaMallocArray(&b, &desc, 8, 4, 0);
    is_int(cudaMemcpy2DToArray(a, 0, 0, from, 32, 32, 4, cudaMemcpyHostToDevice), cudaSuccess,
           "rows to an array");
    is_int(cudaMemcpy2DArrayToArray(b, 0, 0, a, 0, 0, 32, 4, cudaMemcpyDeviceToDevice), cudaSuccess,
           "array to array");
    is_int(cudaMemcpy2DFromArray(to, 32, b, 0, 0, 32, 4, cudaMemcpyDeviceToHost), cudaSuccess,
           "rows from an array");
    ok(memcmp(from, to, sizeof(to)) == 0, "the elements are right");
    memset(to, 0, sizeof(to));
    out.srcArray = b;
    out.srcPos.x = 2; /* elements at this end */
    out.extent.width = 6;
    out.dstPtr = (struct cudaPitchedPtr){to, 32, 32, 4};
    is_int(cudaMemcpy3D(&out), cudaSuccess, "part of an array by the 3D call");
    ok(to[1][0] == from[1][2] && to[3][5] == from[3][7] && to[0][6] == 0, "counts elements, not bytes");
    cudaFreeArray(a);
    cudaFreeArray(b);
}

/* A number of bytes runs on from row to row, at any place in the first and the last. */
static void test_array_by_bytes(void)
{
    struct cudaChannelFormatDesc desc = cudaCreateChannelDesc(8, 0, 0, 0, cudaChannelFormatKindUnsigned);
    unsigned char from[40], to[40];
    cudaArray_t wide, narrow, line;
    cudaStream_t stream;

    for (int i = 0; i < 40; i++)
        from[i] = (unsigned char)(i + 1);
    cudaStreamCreate(&stream);
    cudaMallocArray(&wide, &desc, 8, 5, 0);
    cudaMallocArray(&narrow, &desc, 5, 8, 0);
    cudaMallocArray(&line, &desc, 40, 0, 0);
    is_int(cudaMemcpyToArray(wide, 0, 0, from, 40, cudaMemcpyHostToDevice), cudaSuccess,
           "bytes to a whole array");
    is_int(cudaMemcpyToArray(wide, 3, 1, from + 30, 10, cudaMemcpyHostToDevice), cudaSuccess,
           "bytes beyond the end of a row");
    is_int(cudaMemcpyArrayToArray(narrow, 2, 1, wide, 1, 1, 30, cudaMemcpyDeviceToDevice), cudaSuccess,
           "between arrays of different widths");
    memset(to, 0, sizeof to);
    is_int(cudaMemcpyFromArrayAsync(to, narrow, 2, 1, 30, cudaMemcpyDeviceToHost, stream), cudaSuccess,
           "and back, in a stream");
    cudaStreamSynchronize(stream);
    ok(to[0] == 10 && to[1] == 11 && to[2] == 31 && to[11] == 40 && to[12] == 22 && to[29] == 39 && !to[30],
       "each byte is where it belongs");
    is_int(cudaMemcpyToArrayAsync(line, 4, 0, from, 36, cudaMemcpyHostToDevice, stream), cudaSuccess,
           "an array of one row");
    cudaStreamSynchronize(stream);
    is_int(cudaMemcpyFromArray(to, line, 4, 0, 36, cudaMemcpyDeviceToHost), cudaSuccess,
           "which is read back");
    ok(memcmp(from, to, 36) == 0, "is right");
    is_int(cudaMemcpyToArray(wide, 3, 1, from, 30, cudaMemcpyHostToDevice), cudaErrorInvalidValue,
           "more than the array has left");
    is_int(cudaMemcpyToArray(wide, 8, 0, from, 1, cudaMemcpyHostToDevice), cudaErrorInvalidValue,
           "a place beyond the row");
    is_int(cudaMemcpyToArray(NULL, 0, 0, from, 1, cudaMemcpyHostToDevice), cudaErrorInvalidResourceHandle,
           "no array");
    cudaFreeArray(wide);
    cudaFreeArray(narrow);
    cudaFreeArray(line);
    cudaStreamDestroy(stream);
    (void)cudaGetLastError();
}

static void test_peer(void)
{
    unsigned char *from = malloc(BYTES), *to = calloc(1, BYTES);
    int can = 0;
    void *a, *b;

    fill(from, BYTES);
    a = device_block(BYTES);
    is_int(cudaSetDevice(1), cudaSuccess, "the other device");
    b = device_block(BYTES);
    is_int(cudaMemcpy(a, from, BYTES, cudaMemcpyDefault), cudaSuccess,
           "fill the first one's block from here");
    is_int(cudaMemcpyPeer(b, 1, a, 0, BYTES), cudaSuccess, "cudaMemcpyPeer");
    is_int(cudaMemcpy(to, b, BYTES, cudaMemcpyDeviceToHost), cudaSuccess, "and out");
    ok(holds(to, BYTES), "the bytes are right");
    is_int(cudaMemcpyPeer(b, 5, a, 0, BYTES), cudaErrorInvalidDevice, "a device that is not there");
    is_int(cudaDeviceCanAccessPeer(&can, 1, 0), cudaSuccess, "cudaDeviceCanAccessPeer");
    if (can) {
        is_int(cudaDeviceEnablePeerAccess(0, 0), cudaSuccess, "cudaDeviceEnablePeerAccess");
        is_int(cudaDeviceEnablePeerAccess(0, 0), cudaErrorPeerAccessAlreadyEnabled, "a second time");
        is_int(cudaDeviceDisablePeerAccess(0), cudaSuccess, "cudaDeviceDisablePeerAccess");
        is_int(cudaDeviceDisablePeerAccess(0), cudaErrorPeerAccessNotEnabled, "a second time");
    }
    cudaFree(b);
    cudaSetDevice(0);
    cudaFree(a);
    free(from);
    free(to);
    (void)cudaGetLastError();
}

int main(void)
{
    setenv("MEMSIM_DEVICES", "2", 1);
    plan(0);
    test_linear();
    test_async();
    test_rows();
    test_box();
    test_array();
    test_array_by_bytes();
    test_peer();
    return done();
}
