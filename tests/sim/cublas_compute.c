/*
 * Products that the simulated cuBLAS and cuBLASLt compute (MEMSIM_COMPUTE=1), against a plain loop: types,
 * shapes, transposed matrices, several at once, factors on the device, a bias, graphs; and what they leave
 * alone. The numbers are small whole ones, so that every order of summing gives the same. The same for both
 * versions.
 */
#include "vendor/abi/cublas.h"
#include "tests/sim/driver.h"

cublasStatus_t cublasSgemm_v2(cublasHandle_t, int, int, int, int, int, const float *, const float *, int,
                              const float *, int, const float *, float *, int);
cublasStatus_t cublasDgemm_v2_64(cublasHandle_t, int, int, int64_t, int64_t, int64_t, const double *,
                                 const double *, int64_t, const double *, int64_t, const double *, double *,
                                 int64_t);
cublasStatus_t cublasSgemmStridedBatched(cublasHandle_t, int, int, int, int, int, const float *,
                                         const float *, int, long long, const float *, int, long long,
                                         const float *, float *, int, long long, int);
cublasStatus_t cublasGemmEx(cublasHandle_t, int, int, int, int, int, const void *, const void *, int, int,
                            const void *, int, int, const void *, void *, int, int, int, int);
cublasStatus_t cublasLtMatrixLayoutInit_internal(cublasLtMatrixLayout_t, size_t, int, uint64_t, uint64_t,
                                                 int64_t);
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t, int, const void *, size_t);
cublasStatus_t cublasLtMatmulDescInit_internal(cublasLtMatmulDesc_t, size_t, int, int);
cublasStatus_t cublasLtMatmulPreferenceInit_internal(cublasLtMatmulPreference_t, size_t);
cublasStatus_t cublasLtMatrixTransformDescInit_internal(cublasLtMatrixTransformDesc_t, size_t, int);

enum { ROOM = 64 * 64, COUNT = 3, LD_MORE = 3 };

/* Three matrices on the host and on the device, more than any product here needs. */
static struct side {
    double a[COUNT * ROOM], b[COUNT * ROOM], c[COUNT * ROOM];
} host, want;
static CUdeviceptr device_a, device_b, device_c;

static void send(CUdeviceptr to, const double *from, bool wide)
{
    static float narrow[COUNT * ROOM];

    for (unsigned i = 0; i < COUNT * ROOM; i++)
        narrow[i] = (float)from[i];
    must(cuMemcpyHtoD_v2(to, wide ? (const void *)from : narrow,
                         COUNT * ROOM * (wide ? sizeof(double) : sizeof(float))));
}

static bool same_as(const double *expected, bool wide)
{
    static double back[COUNT * ROOM];
    const float *narrow = (const float *)back;

    must(cuCtxSynchronize());
    must(cuMemcpyDtoH_v2(back, device_c, COUNT * ROOM * (wide ? sizeof(double) : sizeof(float))));
    for (unsigned i = 0; i < COUNT * ROOM; i++)
        if ((wide ? back[i] : narrow[i]) != expected[i]) {
            diag("number %u is %g and should be %g", i, wide ? back[i] : narrow[i], expected[i]);
            return false;
        }
    return true;
}

static void begin_with(bool wide)
{
    for (unsigned i = 0; i < COUNT * ROOM; i++) {
        host.a[i] = (int)(i * 7 % 11) - 5;
        host.b[i] = (int)(i * 5 % 13) - 6;
        host.c[i] = (int)(i % 17) - 8;
    }
    want = host;
    send(device_a, host.a, wide);
    send(device_b, host.b, wide);
    send(device_c, host.c, wide);
}

/* The plain loop, for the matrices that begin so far behind the first. */
static void expect(int turn_a, int turn_b, int m, int n, int k, double alpha, double beta, const int *ld,
                   const int *step, int of)
{
    for (int j = 0; j < n; j++)
        for (int i = 0; i < m; i++) {
            double sum = 0;
            for (int l = 0; l < k; l++)
                sum += host.a[of * step[0] + (turn_a ? i * ld[0] + l : l * ld[0] + i)] *
                       host.b[of * step[1] + (turn_b ? l * ld[1] + j : j * ld[1] + l)];
            want.c[of * step[2] + j * ld[2] + i] = alpha * sum + beta * host.c[of * step[2] + j * ld[2] + i];
        }
}

#define FLOATS(p)  ((float *)(uintptr_t)(p))
#define DOUBLES(p) ((double *)(uintptr_t)(p))

static void test_shapes(cublasHandle_t handle)
{
    static const int shapes[][3] = {{1, 1, 1}, {5, 4, 3}, {48, 40, 33}, {61, 2, 61}, {7, 3, 0}};
    const int step[3] = {0};

    for (unsigned s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
        for (int turns = 0; turns < 8; turns++) {
            int m = shapes[s][0], n = shapes[s][1], k = shapes[s][2], turn_a = turns & 1,
                turn_b = turns >> 1 & 1;
            int ld[3] = {(turn_a ? k : m) + LD_MORE, (turn_b ? n : k) + LD_MORE, m + LD_MORE};
            bool wide = turns & 4;
            double two = 2, minus = -1;
            float two_f = 2, minus_f = -1;
            begin_with(wide);
            expect(turn_a, turn_b, m, n, k, 2, -1, ld, step, 0);
            cublasStatus_t status =
                wide ? cublasDgemm_v2_64(handle, turn_a, turn_b, m, n, k, &two, DOUBLES(device_a), ld[0],
                                         DOUBLES(device_b), ld[1], &minus, DOUBLES(device_c), ld[2])
                     : cublasSgemm_v2(handle, turn_a, turn_b, m, n, k, &two_f, FLOATS(device_a), ld[0],
                                      FLOATS(device_b), ld[1], &minus_f, FLOATS(device_c), ld[2]);
            ok(status == CUBLAS_STATUS_SUCCESS && same_as(want.c, wide), "%s, %d by %d by %d, turned %d",
               wide ? "double" : "float", m, n, k, turns & 3);
        }
}

/* Several at once, with factors on the device, where they are read in the stream's order. */
static void test_several(cublasHandle_t handle, CUstream stream)
{
    const int ld[3] = {8, 8, 9}, step[3] = {ROOM / 2, ROOM / 4, ROOM};
    CUdeviceptr factors;

    begin_with(false);
    must(cuMemAlloc_v2(&factors, 8));
    for (int i = 0; i < COUNT; i++)
        expect(1, 0, 8, 6, 5, 3, 0, ld, step, i);
    must(cuMemsetD32Async(factors, 0x40400000, 1, stream)); /* 3 */
    must(cuMemsetD32Async(factors + 4, 0, 1, stream));
    answers(cublasSetPointerMode_v2(handle, CUBLAS_POINTER_MODE_DEVICE), CUBLAS_STATUS_SUCCESS);
    answers(cublasSgemmStridedBatched(handle, 1, 0, 8, 6, 5, FLOATS(factors), FLOATS(device_a), 8, step[0],
                                      FLOATS(device_b), 8, step[1], FLOATS(factors + 4), FLOATS(device_c), 9,
                                      step[2], COUNT),
            CUBLAS_STATUS_SUCCESS);
    ok(same_as(want.c, false), "three products with factors on the device");
    must(cublasSetPointerMode_v2(handle, CUBLAS_POINTER_MODE_HOST) ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS);
    must(cuMemFree_v2(factors));
}

/* Types that are arguments; of others nothing is touched, nor of what is too large. */
static void test_types(cublasHandle_t handle)
{
    const int ld[3] = {8, 8, 8}, step[3] = {0};
    const double one = 1;
    const float one_f = 1;

    begin_with(true);
    expect(0, 1, 8, 8, 8, 1, 1, ld, step, 0);
    answers(cublasGemmEx(handle, 0, 1, 8, 8, 8, &one, DOUBLES(device_a), CUDA_R_64F, 8, DOUBLES(device_b),
                         CUDA_R_64F, 8, &one, DOUBLES(device_c), CUDA_R_64F, 8, 70, -1),
            CUBLAS_STATUS_SUCCESS);
    ok(same_as(want.c, true), "a product whose type is an argument");
    begin_with(false);
    answers(cublasGemmEx(handle, 0, 0, 8, 8, 8, &one_f, FLOATS(device_a), CUDA_R_16F, 8, FLOATS(device_b),
                         CUDA_R_16F, 8, &one_f, FLOATS(device_c), CUDA_R_32F, 8, 68, -1),
            CUBLAS_STATUS_SUCCESS);
    answers(cublasSgemm_v2(handle, 0, 0, 1024, 1024, 1024, &one_f, FLOATS(device_a), 1024, FLOATS(device_b),
                           1024, &one_f, FLOATS(device_c), 1024),
            CUBLAS_STATUS_SUCCESS);
    ok(same_as(host.c, false), "half precision and what is too large touch nothing");
}

/* A product in a graph is computed at each launch. */
static void test_graph(cublasHandle_t handle, CUstream stream)
{
    const int ld[3] = {8, 8, 8}, step[3] = {0};
    const float one = 1;
    CUgraphExec exec;
    CUgraph graph;

    begin_with(false);
    must(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    answers(cublasSgemm_v2(handle, 0, 0, 8, 8, 8, &one, FLOATS(device_a), 8, FLOATS(device_b), 8, &one,
                           FLOATS(device_c), 8),
            CUBLAS_STATUS_SUCCESS);
    must(cuStreamEndCapture(stream, &graph));
    must(cuGraphInstantiateWithFlags(&exec, graph, 0));
    ok(same_as(host.c, false), "nothing is computed while a stream captures");
    must(cuGraphLaunch(exec, stream));
    must(cuGraphLaunch(exec, stream));
    expect(0, 0, 8, 8, 8, 2, 1, ld, step, 0);
    ok(same_as(want.c, false), "and each launch of the graph computes");
    must(cuGraphExecDestroy(exec));
    must(cuGraphDestroy(graph));
}

static cublasLtMatrixLayout_t layout_of(int rows, int columns, int ld)
{
    cublasLtMatrixLayout_t layout;

    must(cublasLtMatrixLayoutCreate(&layout, CUDA_R_32F, (uint64_t)rows, (uint64_t)columns, ld)
             ? CUDA_ERROR_UNKNOWN
             : CUDA_SUCCESS);
    return layout;
}

/* Descriptions in room of the program's own, as large as the vendor's header has it: what they were told they
 * tell. */
static void test_own_room(CUstream stream)
{
    static uint64_t layouts[3][8], kind[32], preference[8], transform[8], none[8];
    const cublasLtMatrixLayout_t a = (void *)layouts[0], b = (void *)layouts[1], c = (void *)layouts[2];
    const cublasLtMatmulDesc_t product = (void *)kind;
    const int ld[3] = {4, 4, 4}, step[3] = {0}, batch = 1;
    const float one = 1, zero = 0;
    int64_t far = INT64_MAX, told = 0;
    cublasLtHandle_t handle;
    uint64_t rows = 0;
    size_t written = 0;

    begin_with(false);
    answers(cublasLtCreate(&handle), CUBLAS_STATUS_SUCCESS);
    for (unsigned i = 0; i < 3; i++)
        answers(cublasLtMatrixLayoutInit_internal((void *)layouts[i], sizeof layouts[i], CUDA_R_32F, 4, 4, 4),
                CUBLAS_STATUS_SUCCESS);
    answers(cublasLtMatmulDescInit_internal(product, sizeof kind, 68, CUDA_R_32F), CUBLAS_STATUS_SUCCESS);
    answers(cublasLtMatmulPreferenceInit_internal((void *)preference, sizeof preference),
            CUBLAS_STATUS_SUCCESS);
    answers(cublasLtMatrixTransformDescInit_internal((void *)transform, sizeof transform, CUDA_R_32F),
            CUBLAS_STATUS_SUCCESS);
    answers(cublasLtMatrixLayoutInit_internal(NULL, 64, CUDA_R_32F, 4, 4, 4), CUBLAS_STATUS_INVALID_VALUE);
    answers(cublasLtMatrixLayoutInit_internal((void *)none, 2, CUDA_R_32F, 4, 4, 4),
            CUBLAS_STATUS_INVALID_VALUE);
    answers(cublasLtMatmul(handle, product, &one, FLOATS(device_a), a, FLOATS(device_b), b, &zero,
                           FLOATS(device_c), c, FLOATS(device_c), c, NULL, NULL, 0, stream),
            CUBLAS_STATUS_SUCCESS);
    expect(0, 0, 4, 4, 4, 1, 0, ld, step, 0);
    ok(same_as(want.c, false), "a product described in the program's own room");
    answers(cublasLtMatrixLayoutSetAttribute(a, 6, &far, sizeof far), CUBLAS_STATUS_SUCCESS);
    answers(cublasLtMatrixLayoutSetAttribute(a, 5, &batch, sizeof batch), CUBLAS_STATUS_SUCCESS);
    answers(cublasLtMatrixLayoutGetAttribute(a, 6, &told, sizeof told, &written), CUBLAS_STATUS_SUCCESS);
    ok(told == far && written == sizeof told, "a value of any size is kept");
    answers(cublasLtMatrixLayoutGetAttribute(a, 2, &rows, sizeof rows, NULL), CUBLAS_STATUS_SUCCESS);
    is_u64(rows, 4, "and leaves the others");
    answers(cublasLtMatrixLayoutGetAttribute(a, 2, &rows, 4, NULL), CUBLAS_STATUS_INVALID_VALUE);
    is_u64(none[1] | layouts[2][7], 0, "nothing is written that is not needed");
    answers(cublasLtDestroy(handle), CUBLAS_STATUS_SUCCESS);
}

/* cuBLASLt, with a transposed matrix and a bias; what else it can be asked for is not computed. */
static void test_lt(CUstream stream)
{
    enum {
        TURN_A = 3,
        EPILOGUE = 7,
        BIAS_POINTER = 8,
        EPILOGUE_RELU = 2,
        EPILOGUE_BIAS = 4,
        COMPUTE_32F = 68
    };
    const int ld[3] = {5, 5, 8}, step[3] = {0}, turn = 1, with_bias = EPILOGUE_BIAS, relu = EPILOGUE_RELU;
    cublasLtMatrixLayout_t a = layout_of(5, 8, 5), b = layout_of(5, 6, 5), c = layout_of(8, 6, 8);
    const float one = 1, zero = 0;
    cublasLtMatmulDesc_t product;
    cublasLtHandle_t handle;
    CUdeviceptr bias = device_b + (CUdeviceptr)ROOM * sizeof(float);

    begin_with(false);
    answers(cublasLtCreate(&handle), CUBLAS_STATUS_SUCCESS);
    answers(cublasLtMatmulDescCreate(&product, COMPUTE_32F, CUDA_R_32F), CUBLAS_STATUS_SUCCESS);
    answers(cublasLtMatmulDescSetAttribute(product, TURN_A, &turn, sizeof turn), CUBLAS_STATUS_SUCCESS);
    answers(cublasLtMatmulDescSetAttribute(product, EPILOGUE, &relu, sizeof relu), CUBLAS_STATUS_SUCCESS);
    answers(cublasLtMatmul(handle, product, &one, FLOATS(device_a), a, FLOATS(device_b), b, &zero,
                           FLOATS(device_c), c, FLOATS(device_c), c, NULL, NULL, 0, stream),
            CUBLAS_STATUS_SUCCESS);
    ok(same_as(host.c, false), "what is more than a product and a bias touches nothing");
    answers(cublasLtMatmulDescSetAttribute(product, EPILOGUE, &with_bias, sizeof with_bias),
            CUBLAS_STATUS_SUCCESS);
    answers(cublasLtMatmulDescSetAttribute(product, BIAS_POINTER, &bias, sizeof bias), CUBLAS_STATUS_SUCCESS);
    answers(cublasLtMatmul(handle, product, &one, FLOATS(device_a), a, FLOATS(device_b), b, &zero,
                           FLOATS(device_c), c, FLOATS(device_c), c, NULL, NULL, 0, stream),
            CUBLAS_STATUS_SUCCESS);
    expect(1, 0, 8, 6, 5, 1, 0, ld, step, 0);
    for (int j = 0; j < 6; j++)
        for (int i = 0; i < 8; i++)
            want.c[j * 8 + i] += host.b[ROOM + i];
    ok(same_as(want.c, false), "a product with a bias");
    answers(cublasLtMatmulDescDestroy(product), CUBLAS_STATUS_SUCCESS);
    cublasLtMatrixLayoutDestroy(a);
    cublasLtMatrixLayoutDestroy(b);
    cublasLtMatrixLayoutDestroy(c);
    answers(cublasLtDestroy(handle), CUBLAS_STATUS_SUCCESS);
}

/* What a product touches has to be there: nothing lies at such an address. */
static void test_gone(cublasHandle_t handle)
{
    const float one = 1;

    answers(cublasSgemm_v2(handle, 0, 0, 8, 8, 8, &one, FLOATS(device_a), 8, FLOATS(4096), 8, &one,
                           FLOATS(device_c), 8),
            CUBLAS_STATUS_SUCCESS);
    answers(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

int main(void)
{
    cublasHandle_t handle;
    CUstream stream;

    plan(0);
    setenv("MEMSIM_COMPUTE", "1", 1);
    begin();
    must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    must(cuMemAlloc_v2(&device_a, 8 * MIB));
    must(cuMemAlloc_v2(&device_b, 8 * MIB));
    must(cuMemAlloc_v2(&device_c, 8 * MIB));
    answers(cublasCreate_v2(&handle), CUBLAS_STATUS_SUCCESS);
    test_shapes(handle);
    answers(cublasSetStream_v2(handle, stream), CUBLAS_STATUS_SUCCESS);
    must(cuCtxSynchronize());
    test_several(handle, stream);
    test_types(handle);
    test_graph(handle, stream);
    test_lt(stream);
    test_own_room(stream);
    test_gone(handle);
    return done();
}
