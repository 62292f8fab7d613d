/*
 * The simulated cuBLAS and cuBLASLt: handles, their memory and state, what a product is to a stream and to a
 * capture, numbers that come back, copies, and descriptions. The same for both versions.
 */
#include "vendor/abi/cublas.h"
#include "tests/sim/driver.h"

/* Some of those that are rows of a list, and have no prototype there. */
cublasStatus_t cublasSgemm_v2(cublasHandle_t, int, int, int, int, int, const float *, const float *, int,
                              const float *, int, const float *, float *, int);
cublasStatus_t cublasSdot_v2(cublasHandle_t, int, const float *, int, const float *, int, float *);
cublasStatus_t cublasDotEx(cublasHandle_t, int, const void *, int, int, const void *, int, int, void *, int,
                           int);
cublasStatus_t cublasIdamax_v2_64(cublasHandle_t, int64_t, const double *, int64_t, int64_t *);
cublasStatus_t cublasSgeqrfBatched(cublasHandle_t, int, int, float *const *, int, float *const *, int *, int);
cublasStatus_t cublasSgemm(void);
cublasStatus_t cublasSetVector(int, int, const void *, int, void *, int);
cublasStatus_t cublasGetMatrix(int, int, int, const void *, int, void *, int);

static CUcontext ctx;
static CUdeviceptr memory;

static size_t used(void)
{
    size_t left, total;

    must(cuMemGetInfo_v2(&left, &total));
    return total - left;
}

static cublasStatus_t gemm(cublasHandle_t handle)
{
    const float one = 1, zero = 0;
    float *p = (float *)(uintptr_t)memory;

    return cublasSgemm_v2(handle, 0, 0, 8, 8, 8, &one, p, 8, p, 8, &zero, p, 8);
}

static void test_handles(void)
{
    cublasHandle_t handle = NULL, second = NULL;
    size_t before = used();
    int value = 77;

    answers(cublasCreate_v2(NULL), CUBLAS_STATUS_INVALID_VALUE);
    answers(cublasCreate_v2(&handle), CUBLAS_STATUS_SUCCESS);
    is_u64(used() - before, 32 * MIB,
           "a handle has 32 MiB of the device's memory for workspaces, as documented for this architecture");
    setenv("CUBLAS_WORKSPACE_CONFIG", ":16384:1:8192:2", 1);
    answers(cublasCreate_v2(&second), CUBLAS_STATUS_SUCCESS);
    is_u64(used() - before, 64 * MIB, "another one what CUBLAS_WORKSPACE_CONFIG says");
    unsetenv("CUBLAS_WORKSPACE_CONFIG");
    answers(cublasDestroy_v2(second), CUBLAS_STATUS_SUCCESS);
    answers(cublasGetPointerMode_v2(handle, &value), CUBLAS_STATUS_SUCCESS);
    is_int(value, CUBLAS_POINTER_MODE_HOST, "numbers come from the host and go there");
    answers(cublasSetPointerMode_v2(handle, 7), CUBLAS_STATUS_INVALID_VALUE);
    answers(cublasSetMathMode(handle, 3), CUBLAS_STATUS_SUCCESS);
    answers(cublasGetMathMode(handle, &value), CUBLAS_STATUS_SUCCESS);
    is_int(value, 3, "a mode that was set is kept");
    answers(cublasGetVersion_v2(handle, &value), CUBLAS_STATUS_SUCCESS);
    ok(value >= 120000 && value < 140000, "its version is %d", value);
    answers(cublasDestroy_v2(handle), CUBLAS_STATUS_SUCCESS);
    is_u64(used(), before, "and nothing is left of it");
    answers(gemm(NULL), CUBLAS_STATUS_NOT_INITIALIZED);
    answers(cublasSgemm(), CUBLAS_STATUS_NOT_SUPPORTED);
    ok(!strcmp(cublasGetStatusName(CUBLAS_STATUS_ALLOC_FAILED), "CUBLAS_STATUS_ALLOC_FAILED"),
       "statuses have their names");
}

static void test_no_memory(void)
{
    cublasHandle_t handle = NULL;

    setenv("CUBLAS_WORKSPACE_CONFIG", ":1073741824:1", 1);
    answers(cublasCreate_v2(&handle), CUBLAS_STATUS_ALLOC_FAILED);
    ok(!handle, "there is none");
    unsetenv("CUBLAS_WORKSPACE_CONFIG");
}

static void test_order(cublasHandle_t handle, CUstream stream)
{
    atomic_int released = 0;
    CUstream got = NULL;

    answers(cublasSetStream_v2(handle, stream), CUBLAS_STATUS_SUCCESS);
    answers(cublasGetStream_v2(handle, &got), CUBLAS_STATUS_SUCCESS);
    ok(got == stream, "a handle's stream is the one that was set");
    must(cuLaunchHostFunc(stream, hold, &released));
    answers(gemm(handle), CUBLAS_STATUS_SUCCESS);
    is_int(cuStreamQuery(stream), CUDA_ERROR_NOT_READY,
           "a product comes behind what is on the stream, and nobody waits");
    atomic_store(&released, 1);
    must(cuStreamSynchronize(stream));
}

static size_t nodes_of_product(cublasHandle_t handle, CUstream stream)
{
    CUgraph graph;
    size_t count = 0;

    must(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    is_int(gemm(handle), CUBLAS_STATUS_SUCCESS, "a product in a capture");
    must(cuStreamEndCapture(stream, &graph));
    must(cuGraphGetNodes(graph, NULL, &count));
    must(cuGraphDestroy(graph));
    return count;
}

static void test_captures(cublasHandle_t handle, CUstream stream)
{
    is_u64(nodes_of_product(handle, stream), 3, "its workspace is allocated and freed in the graph");
    answers(cublasSetWorkspace_v2(handle, (void *)(uintptr_t)(memory + 8), MIB), CUBLAS_STATUS_INVALID_VALUE);
    answers(cublasSetWorkspace_v2(handle, (void *)(uintptr_t)memory, MIB), CUBLAS_STATUS_SUCCESS);
    is_u64(nodes_of_product(handle, stream), 1, "where the program has given one it is a kernel alone");
    answers(cublasSetStream_v2(handle, stream), CUBLAS_STATUS_SUCCESS);
    is_u64(nodes_of_product(handle, stream), 3, "which the next stream that is set undoes");
}

static void test_results(cublasHandle_t handle, CUstream stream)
{
    const float *p = (const float *)(uintptr_t)memory;
    float *device = (float *)(uintptr_t)(memory + 4096), number = 77;
    double wide = 77;
    int64_t index = 77;
    int info = 77;

    must(cuMemsetD8_v2(memory + 4096, 0x11, 64));
    must(cuCtxSynchronize()); /* the stream does not wait for it */
    answers(cublasSdot_v2(handle, 8, p, 1, p, 1, &number), CUBLAS_STATUS_SUCCESS);
    ok(number == 0, "a number is on the host when the call returns");
    answers(cublasDotEx(handle, 8, p, CUDA_R_64F, 1, p, CUDA_R_64F, 1, &wide, CUDA_R_64F, CUDA_R_64F),
            CUBLAS_STATUS_SUCCESS);
    ok(wide == 0, "a number of another type as well");
    answers(cublasIdamax_v2_64(handle, 8, (const double *)p, 1, &index), CUBLAS_STATUS_SUCCESS);
    is_u64(index, 0, "an index of 64 bits is one");
    answers(cublasSgeqrfBatched(handle, 2, 2, NULL, 2, NULL, &info, 1), CUBLAS_STATUS_SUCCESS);
    is_int(info, 0, "what tells of wrong arguments says that there is none");
    answers(cublasSetPointerMode_v2(handle, CUBLAS_POINTER_MODE_DEVICE), CUBLAS_STATUS_SUCCESS);
    answers(cublasSdot_v2(handle, 8, p, 1, p, 1, device), CUBLAS_STATUS_SUCCESS);
    must(cuStreamSynchronize(stream));
    must(cuMemcpyDtoH_v2(&number, memory + 4096, sizeof number));
    ok(number == 0, "a number for the device is written there");
    must(cuMemcpyDtoH_v2(&number, memory + 4100, sizeof number));
    ok(number != 0, "and nothing behind it");
    answers(cublasSetPointerMode_v2(handle, CUBLAS_POINTER_MODE_HOST), CUBLAS_STATUS_SUCCESS);
}

static void test_copies(void)
{
    static const int from[6] = {1, 2, 3, 4, 5, 6};
    int to[8] = {0};
    void *device = (void *)(uintptr_t)memory;

    must(cuMemsetD8_v2(memory, 0, 4096));
    answers(cublasSetVector(3, sizeof(int), from, 2, device, 1), CUBLAS_STATUS_SUCCESS);
    must(cuMemcpyDtoH_v2(to, memory, 16));
    ok(to[0] == 1 && to[1] == 3 && to[2] == 5 && to[3] == 0, "every second element, one behind the other");
    must(cuMemcpyHtoD_v2(memory, from, sizeof from));
    memset(to, 0, sizeof to);
    answers(cublasGetMatrix(2, 2, sizeof(int), device, 3, to, 4), CUBLAS_STATUS_SUCCESS);
    ok(to[0] == 1 && to[1] == 2 && to[2] == 0 && to[4] == 4 && to[5] == 5,
       "two rows of two columns, of other lengths here and there");
    answers(cublasGetMatrix(4, 2, sizeof(int), device, 3, to, 4), CUBLAS_STATUS_INVALID_VALUE);
    answers(cublasSetVector(-1, sizeof(int), from, 1, device, 1), CUBLAS_STATUS_INVALID_VALUE);
}

static void test_lt(cublasHandle_t handle, CUstream stream)
{
    cublasLtHandle_t own = NULL;
    cublasLtMatmulDesc_t product = NULL;
    cublasLtMatrixLayout_t layout = NULL;
    cublasLtMatmulPreference_t preference = NULL;
    cublasLtMatmulHeuristicResult_t results[4];
    uint64_t bytes = MIB, rows = 0;
    size_t written = 0, before = used();
    float one = 1;
    int count = 0;
    void *p = (void *)(uintptr_t)memory;

    answers(cublasLtCreate(&own), CUBLAS_STATUS_SUCCESS);
    is_u64(used(), before, "a handle has no memory of the device's");
    answers(cublasLtMatmulDescCreate(&product, 68, CUDA_R_32F), CUBLAS_STATUS_SUCCESS);
    answers(cublasLtMatrixLayoutCreate(&layout, CUDA_R_32F, 8, 8, 8), CUBLAS_STATUS_SUCCESS);
    answers(cublasLtMatmulPreferenceCreate(&preference), CUBLAS_STATUS_SUCCESS);
    answers(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes,
                                                 sizeof bytes),
            CUBLAS_STATUS_SUCCESS);
    answers(cublasLtMatrixLayoutGetAttribute(layout, 2, &rows, sizeof rows, &written), CUBLAS_STATUS_SUCCESS);
    ok(rows == 8 && written == sizeof rows, "a layout knows what it was made with");
    answers(cublasLtMatrixLayoutGetAttribute(layout, 2, &rows, 2, &written), CUBLAS_STATUS_INVALID_VALUE);
    answers(cublasLtMatmulDescSetAttribute(product, 3, NULL, 4), CUBLAS_STATUS_INVALID_VALUE);
    answers(cublasLtMatmulAlgoGetHeuristic(own, product, layout, layout, layout, layout, preference, 4,
                                           results, &count),
            CUBLAS_STATUS_SUCCESS);
    ok(count == 1 && results[0].state == CUBLAS_STATUS_SUCCESS && results[0].workspaceSize <= bytes,
       "one algorithm, which fits");
    answers(cublasLtMatmul(own, product, &one, p, layout, p, layout, &one, p, layout, p, layout,
                           &results[0].algo, p, MIB, stream),
            CUBLAS_STATUS_SUCCESS);
    answers(cublasLtMatmul((cublasLtHandle_t)handle, product, &one, p, layout, p, layout, &one, p, layout, p,
                           layout, NULL, NULL, 0, stream),
            CUBLAS_STATUS_SUCCESS);
    answers(cublasLtMatmul(own, NULL, &one, p, layout, p, layout, &one, p, layout, p, layout, NULL, NULL, 0,
                           stream),
            CUBLAS_STATUS_INVALID_VALUE);
    must(cuStreamSynchronize(stream));
    answers(cublasLtMatmulPreferenceDestroy(preference), CUBLAS_STATUS_SUCCESS);
    answers(cublasLtMatrixLayoutDestroy(layout), CUBLAS_STATUS_SUCCESS);
    answers(cublasLtMatmulDescDestroy(product), CUBLAS_STATUS_SUCCESS);
    answers(cublasLtDestroy(own), CUBLAS_STATUS_SUCCESS);
}

/* A handle is its context's. */
static void test_contexts(cublasHandle_t handle)
{
    CUcontext other;

    must(cuCtxCreate_v2(&other, 0, 0));
    answers(gemm(handle), CUBLAS_STATUS_NOT_INITIALIZED);
    must(cuCtxDestroy_v2(other));
    must(cuCtxSetCurrent(ctx));
    answers(gemm(handle), CUBLAS_STATUS_SUCCESS);
}

int main(void)
{
    cublasHandle_t handle;
    CUstream stream;

    plan(0);
    ctx = begin();
    must(cuMemAlloc_v2(&memory, 2 * MIB));
    must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    test_handles();
    test_no_memory();
    is_int(cublasCreate_v2(&handle), CUBLAS_STATUS_SUCCESS, "a handle");
    test_order(handle, stream);
    test_captures(handle, stream);
    test_results(handle, stream);
    test_copies();
    test_lt(handle, stream);
    test_contexts(handle);
    is_int(cublasDestroy_v2(handle), CUBLAS_STATUS_SUCCESS, "its end");
    return done();
}
