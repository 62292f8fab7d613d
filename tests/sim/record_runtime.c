/* One call after another of the runtime's, with arguments that are good and bad, as the record has them of
 * CUDA 13's. What our headers do not declare is looked up: it takes pointers and small numbers alone. See
 * record.h. */
#include <dlfcn.h>

#include "vendor/abi/cuda_runtime_fn.h"
#include "tests/sim/record.h"

#define NONE (-99) /* what a refused call leaves */

/* What compiled code would have: a stub on the host for each kernel, and a shadow of the variable. */
static const char first_stub, second_stub;
static char table_shadow[32];
static void *plain;
static struct cudaMemLocation here = {cudaMemLocationTypeDevice, 0}, far = {cudaMemLocationTypeDevice, 9},
                              nowhere;

typedef int (*any_func_t)(void *, void *, void *, void *, void *, void *, void *, void *);

static int any(const char *name, void *a, void *b, void *c, void *d)
{
    any_func_t found = (any_func_t)dlsym(RTLD_DEFAULT, name);

    return found ? found(a, b, c, d, NULL, NULL, NULL, NULL) : NONE;
}

#define NUMBER(n) ((void *)(intptr_t)(n))

static void prepare(void)
{
    static struct {
        int magic, version;
        const void *data, *file;
    } wrapper = {0x466243b1, 1, image, NULL};
    void **handle = __cudaRegisterFatBinary(&wrapper);

    __cudaRegisterFunction(handle, &first_stub, NULL, "first", -1, NULL, NULL, NULL, NULL, NULL);
    __cudaRegisterFunction(handle, &second_stub, NULL, "second", -1, NULL, NULL, NULL, NULL, NULL);
    __cudaRegisterVar(handle, table_shadow, NULL, "table", 0, sizeof table_shadow, 0, 0);
    __cudaRegisterFatBinaryEnd(handle);
    if (cudaSetDevice(0) != cudaSuccess || cudaMalloc(&plain, MIB) != cudaSuccess)
        bail("there is no device");
}

static void banks(void)
{
    enum cudaSharedMemConfig config = 77;
    char local;
    int status = cudaDeviceGetSharedMemConfig(&config);

    told("banks of shared memory", status, "%d", (int)config);
    status = cudaDeviceSetSharedMemConfig(cudaSharedMemBankSizeEightByte);
    config = 77;
    cudaDeviceGetSharedMemConfig(&config);
    told("wider banks of shared memory", status, "%d", (int)config);
    TOLD("banks of an unknown width", cudaDeviceSetSharedMemConfig((enum cudaSharedMemConfig)7));
    TOLD("banks of shared memory, to nowhere", cudaDeviceGetSharedMemConfig(NULL));
    TOLD("banks for a kernel", any("cudaFuncSetSharedMemConfig", (void *)&first_stub, NUMBER(1), NULL, NULL));
    TOLD("banks of an unknown width for a kernel",
         any("cudaFuncSetSharedMemConfig", (void *)&first_stub, NUMBER(7), NULL, NULL));
    TOLD("banks for no kernel", any("cudaFuncSetSharedMemConfig", NULL, NUMBER(1), NULL, NULL));
    TOLD("banks for what lies on the stack",
         any("cudaFuncSetSharedMemConfig", &local, NUMBER(1), NULL, NULL));
}

static void valid_devices(void)
{
    int both[2] = {1, 0}, absent[2] = {0, 9};

    TOLD("which devices may be taken: both", any("cudaSetValidDevices", both, NUMBER(2), NULL, NULL));
    TOLD("which devices may be taken: none named", any("cudaSetValidDevices", both, NUMBER(0), NULL, NULL));
    TOLD("which devices may be taken: no list", any("cudaSetValidDevices", NULL, NUMBER(2), NULL, NULL));
    TOLD("which devices may be taken: one that is not there",
         any("cudaSetValidDevices", absent, NUMBER(2), NULL, NULL));
    TOLD("which devices may be taken: fewer than none",
         any("cudaSetValidDevices", both, NUMBER(-1), NULL, NULL));
}

static void texture(const char *format, struct cudaChannelFormatDesc desc)
{
    size_t width = 0;
    char fact[96];
    int status = any("cudaDeviceGetTexture1DLinearMaxWidth", &width, &desc, NUMBER(0), NULL);

    snprintf(fact, sizeof fact, "how wide a linear texture may be: %s", format);
    if (status)
        told(fact, status, "-");
    else
        told(fact, status, "%zu", width);
}

static void textures(void)
{
    struct cudaChannelFormatDesc number = {32, 0, 0, 0, cudaChannelFormatKindFloat};
    size_t width = 0;

    texture("float", number);
    texture("four bytes", (struct cudaChannelFormatDesc){8, 8, 8, 8, cudaChannelFormatKindUnsigned});
    texture("four floats", (struct cudaChannelFormatDesc){32, 32, 32, 32, cudaChannelFormatKindFloat});
    texture("a byte", (struct cudaChannelFormatDesc){8, 0, 0, 0, cudaChannelFormatKindUnsigned});
    texture("three bytes", (struct cudaChannelFormatDesc){8, 8, 8, 0, cudaChannelFormatKindUnsigned});
    texture("two bytes", (struct cudaChannelFormatDesc){8, 8, 0, 0, cudaChannelFormatKindUnsigned});
    texture("nothing", (struct cudaChannelFormatDesc){0, 0, 0, 0, cudaChannelFormatKindFloat});
    TOLD("how wide a linear texture may be, to nowhere",
         any("cudaDeviceGetTexture1DLinearMaxWidth", NULL, &number, NUMBER(0), NULL));
    TOLD("how wide a linear texture of no format may be",
         any("cudaDeviceGetTexture1DLinearMaxWidth", &width, NULL, NUMBER(0), NULL));
    TOLD("how wide a linear texture of no device may be",
         any("cudaDeviceGetTexture1DLinearMaxWidth", &width, &number, NUMBER(9), NULL));
}

static void occupancy(void)
{
    static const int asked[][2] = {{1, 128},   {2, 128}, {4, 256},  {8, 128},  {12, 128}, {6, 256},
                                   {100, 128}, {0, 128}, {1, 0},    {1, 2048}, {1, 1024}, {3, 512},
                                   {16, 64},   {32, 32}, {-1, 128}, {1, -5},   {2, 1024}, {3, 1024}};
    struct cudaFuncAttributes attributes = {0};
    size_t bytes = 77;
    char fact[96];

    /* The simulator's kernels have none of their own, the recorded one had 256 bytes: the row has both
     * together. */
    cudaFuncGetAttributes(&attributes, &first_stub);
    for (unsigned i = 0; i < sizeof asked / sizeof asked[0]; i++) {
        bytes = 77;
        int status = cudaOccupancyAvailableDynamicSMemPerBlock(&bytes, &first_stub, asked[i][0], asked[i][1]);
        snprintf(fact, sizeof fact, "shared memory for each of %d blocks of %d threads", asked[i][0],
                 asked[i][1]);
        told(fact, status, "%zu", status ? bytes : bytes + attributes.sharedSizeBytes);
    }
    TOLD("shared memory left, to nowhere",
         cudaOccupancyAvailableDynamicSMemPerBlock(NULL, &first_stub, 1, 128));
    TOLD("shared memory left for no kernel", cudaOccupancyAvailableDynamicSMemPerBlock(&bytes, NULL, 1, 128));
}

static void tables(void)
{
    static const unsigned char unknown[16] = {1, 2, 3};
    const void *found = NULL;
    char answer[256];

    TOLD("how to signal other engines",
         any("cudaDeviceGetNvSciSyncAttributes", answer, NUMBER(0), NUMBER(1), NULL));
    TOLD("how to signal other engines, to nowhere",
         any("cudaDeviceGetNvSciSyncAttributes", NULL, NUMBER(0), NUMBER(1), NULL));
    TOLD("how to signal other engines of no device",
         any("cudaDeviceGetNvSciSyncAttributes", answer, NUMBER(9), NUMBER(1), NULL));
    TOLD("an export table that nobody knows", cudaGetExportTable(&found, (const void *)unknown));
    TOLD("an export table, to nowhere", cudaGetExportTable(NULL, (const void *)unknown));
    TOLD("an export table without a name", cudaGetExportTable(&found, NULL));
}

static void symbols(void)
{
    cudaFunction_t one = NULL, same = NULL, other = NULL, kept = (cudaFunction_t)&table_shadow;
    struct cudaFuncAttributes attributes = {0};
    int status = cudaGetFuncBySymbol(&one, &first_stub);

    cudaGetFuncBySymbol(&same, &first_stub);
    cudaGetFuncBySymbol(&other, &second_stub);
    told("a kernel's function", status, "%d, again the same %d, another kernel's another %d", one != NULL,
         one == same, one != other);
    TOLD("a kernel's function, to nowhere", cudaGetFuncBySymbol(NULL, &first_stub));
    one = kept;
    status = cudaGetFuncBySymbol(&one, NULL);
    told("no kernel's function", status, "untouched %d", one == kept);
    status = cudaGetFuncBySymbol(&one, (const void *)symbols);
    told("the function of what is no kernel", status, "untouched %d", one == kept);
    TOLD("the function of a variable", cudaGetFuncBySymbol(&one, table_shadow));
    status = cudaFuncGetAttributes(&attributes, &first_stub);
    told("a kernel's own shared memory", status, "%zu", attributes.sharedSizeBytes);
}

static void arrays(void)
{
    struct cudaChannelFormatDesc number = {32, 0, 0, 0, cudaChannelFormatKindFloat};
    struct cudaArrayMemoryRequirements needs;
    cudaArray_t array = NULL, plane = NULL;
    cudaMipmappedArray_t levels = NULL;
    char answer[256];

    if (cudaMallocArray(&array, &number, 64, 64, 0) ||
        cudaMallocMipmappedArray(&levels, &number, (struct cudaExtent){64, 64, 0}, 3, 0))
        bail("there is no array");
    TOLD("what an array needs", cudaArrayGetMemoryRequirements(&needs, array, 0));
    TOLD("what an array needs, to nowhere", cudaArrayGetMemoryRequirements(NULL, array, 0));
    TOLD("what no array needs", cudaArrayGetMemoryRequirements(&needs, NULL, 0));
    TOLD("what an array needs on no device", cudaArrayGetMemoryRequirements(&needs, array, 5));
    TOLD("what an array of levels needs", cudaMipmappedArrayGetMemoryRequirements(&needs, levels, 0));
    TOLD("what no array of levels needs", cudaMipmappedArrayGetMemoryRequirements(&needs, NULL, 0));
    TOLD("an array's tiles", any("cudaArrayGetSparseProperties", answer, array, NULL, NULL));
    TOLD("an array's tiles, to nowhere", any("cudaArrayGetSparseProperties", NULL, array, NULL, NULL));
    TOLD("no array's tiles", any("cudaArrayGetSparseProperties", answer, NULL, NULL, NULL));
    TOLD("the tiles of an array of levels",
         any("cudaMipmappedArrayGetSparseProperties", answer, levels, NULL, NULL));
    TOLD("the tiles of no array of levels",
         any("cudaMipmappedArrayGetSparseProperties", answer, NULL, NULL, NULL));
    TOLD("an array's plane", cudaArrayGetPlane(&plane, array, 0));
    TOLD("an array's second plane", cudaArrayGetPlane(&plane, array, 1));
    TOLD("an array's plane, to nowhere", cudaArrayGetPlane(NULL, array, 0));
    TOLD("no array's plane", cudaArrayGetPlane(&plane, NULL, 0));
}

/* The graph's copies to a variable are not simulated: only that they answer, whatever they are given. */
static void graphs(void)
{
    static const char *const facts[] = {"a graph's copy to a variable",
                                        "a graph's copy to no variable",
                                        "a graph's copy over a variable's end",
                                        "a graph's copy far over a variable's end",
                                        "a graph's copy from device to host",
                                        "a graph's copy of any direction",
                                        "a graph's copy to a variable, to nowhere"};

    for (unsigned i = 0; i < sizeof facts / sizeof facts[0]; i++)
        TOLD(facts[i], any("cudaGraphAddMemcpyNodeToSymbol", NULL, NULL, NULL, NULL));
    TOLD("another variable for no node", any("cudaGraphMemcpyNodeSetParamsToSymbol", NULL, NULL, NULL, NULL));
    TOLD("another variable in no graph",
         any("cudaGraphExecMemcpyNodeSetParamsToSymbol", NULL, NULL, NULL, NULL));
}

static void pools(void)
{
    struct cudaMemPoolProps props = {.allocType = cudaMemAllocationTypePinned, .location = here};
    cudaMemPool_t first = NULL, pool = NULL, own = NULL;
    int status = cudaMemGetDefaultMemPool(&pool, &here, cudaMemAllocationTypePinned);

    cudaDeviceGetDefaultMemPool(&first, 0);
    told("the default pool of a place", status, "the device's %d", pool == first);
    cudaDeviceGetMemPool(&first, 0);
    status = cudaMemGetMemPool(&pool, &here, cudaMemAllocationTypePinned);
    told("the pool of a place", status, "the device's %d", pool == first);
    TOLD("the default pool of a place of no type",
         cudaMemGetDefaultMemPool(&pool, &nowhere, cudaMemAllocationTypePinned));
    TOLD("the default pool of no device", cudaMemGetDefaultMemPool(&pool, &far, cudaMemAllocationTypePinned));
    TOLD("the default pool of memory of no kind",
         cudaMemGetDefaultMemPool(&pool, &here, cudaMemAllocationTypeInvalid));
    TOLD("the default pool of managed memory",
         cudaMemGetDefaultMemPool(&pool, &here, (enum cudaMemAllocationType)2));
    TOLD("the default pool, to nowhere", cudaMemGetDefaultMemPool(NULL, &here, cudaMemAllocationTypePinned));
    TOLD("the default pool of no place", cudaMemGetDefaultMemPool(&pool, NULL, cudaMemAllocationTypePinned));
    if (cudaMemPoolCreate(&own, &props))
        bail("there is no pool");
    status = cudaMemSetMemPool(&here, cudaMemAllocationTypePinned, own);
    cudaDeviceGetMemPool(&pool, 0);
    told("another pool for a place", status, "taken %d", pool == own);
    TOLD("no pool for a place", cudaMemSetMemPool(&here, cudaMemAllocationTypePinned, NULL));
    TOLD("a pool for no place", cudaMemSetMemPool(NULL, cudaMemAllocationTypePinned, own));
    TOLD("a pool for no device", cudaMemSetMemPool(&far, cudaMemAllocationTypePinned, own));
}

static void nodes(void)
{
    char unknown[256] = {0};

    TOLD("parameters for no node", any("cudaGraphNodeSetParams", NULL, unknown, NULL, NULL));
    TOLD("no parameters for a node", any("cudaGraphNodeSetParams", unknown, NULL, NULL, NULL));
    TOLD("parameters of an unknown type for a node",
         any("cudaGraphNodeSetParams", unknown, unknown, NULL, NULL));
    TOLD("parameters in no graph", any("cudaGraphExecNodeSetParams", NULL, unknown, unknown, NULL));
}

static void hear(void)
{
}

static void logs(void)
{
    unsigned iterator = 77;
    size_t bytes = 200;
    char text[256], path[256];
    void *handle = NULL;
    int status = any("cudaLogsCurrent", &iterator, NUMBER(0), NULL, NULL);

    told("the log's end", status, "%u", iterator);
    TOLD("the log's end, to nowhere", any("cudaLogsCurrent", NULL, NUMBER(0), NULL, NULL));
    status = any("cudaLogsDumpToMemory", NULL, text, &bytes, NUMBER(0));
    told("the log", status, "%zu bytes", bytes);
    TOLD("the log, to nowhere", any("cudaLogsDumpToMemory", NULL, NULL, &bytes, NUMBER(0)));
    TOLD("the log, of no size", any("cudaLogsDumpToMemory", NULL, text, NULL, NUMBER(0)));
    snprintf(path, sizeof path, "%s/record.log", getenv("TEST_TMP") ? getenv("TEST_TMP") : "/tmp");
    status = any("cudaLogsDumpToFile", NULL, path, NUMBER(0), NULL);
    told("the log as a file", status, "made %d", access(path, F_OK) == 0);
    unlink(path);
    TOLD("the log as no file", any("cudaLogsDumpToFile", NULL, NULL, NUMBER(0), NULL));
    status = any("cudaLogsRegisterCallback", (void *)hear, NULL, &handle, NULL);
    told("a listener to the log", status, "%d, ended %d", handle != NULL,
         status ? status : any("cudaLogsUnregisterCallback", handle, NULL, NULL, NULL));
    TOLD("no listener to the log", any("cudaLogsRegisterCallback", NULL, NULL, &handle, NULL));
    TOLD("the end of no listener", any("cudaLogsUnregisterCallback", NULL, NULL, NULL, NULL));
}

static void notifications(void)
{
    void *handle = NULL;
    int status = any("cudaDeviceRegisterAsyncNotification", NUMBER(0), (void *)hear, NULL, &handle);

    told("a notification", status, "%d, ended %d", handle != NULL,
         status ? status : any("cudaDeviceUnregisterAsyncNotification", NUMBER(0), handle, NULL, NULL));
    TOLD("a notification without a function",
         any("cudaDeviceRegisterAsyncNotification", NUMBER(0), NULL, NULL, &handle));
    TOLD("a notification of no device",
         any("cudaDeviceRegisterAsyncNotification", NUMBER(9), (void *)hear, NULL, &handle));
    TOLD("the end of no notification",
         any("cudaDeviceUnregisterAsyncNotification", NUMBER(0), NULL, NULL, NULL));
}

static void atomics(void)
{
    int operations[3] = {0, 8, 10}, unknown[1] = {999};
    unsigned can[3] = {9, 9, 9};
    int status = any("cudaDeviceGetHostAtomicCapabilities", can, operations, NUMBER(3), NUMBER(0));

    told("atomic operations on the host's memory", status, "%u %u %u", can[0], can[1], can[2]);
    TOLD("unknown atomic operations on the host's memory",
         any("cudaDeviceGetHostAtomicCapabilities", can, unknown, NUMBER(1), NUMBER(0)));
    TOLD("atomic operations on the host's memory, to nowhere",
         any("cudaDeviceGetHostAtomicCapabilities", NULL, operations, NUMBER(3), NUMBER(0)));
    TOLD("no atomic operations on the host's memory",
         any("cudaDeviceGetHostAtomicCapabilities", can, operations, NUMBER(0), NUMBER(0)));
    TOLD("atomic operations of no device on the host's memory",
         any("cudaDeviceGetHostAtomicCapabilities", can, operations, NUMBER(3), NUMBER(7)));
}

static int peer_atomics(unsigned *can, int *operations, int from, int to)
{
    any_func_t found = (any_func_t)dlsym(RTLD_DEFAULT, "cudaDeviceGetP2PAtomicCapabilities");

    return found ? found(can, operations, NUMBER(3), NUMBER(from), NUMBER(to), NULL, NULL, NULL) : NONE;
}

static void peers(void)
{
    int operations[3] = {0, 8, 10};
    unsigned can[3] = {9, 9, 9};
    int status = peer_atomics(can, operations, 1, 0);

    told("atomic operations on a peer's memory", status, "%u %u %u", can[0], can[1], can[2]);
    TOLD("atomic operations on a device's own memory", peer_atomics(can, operations, 0, 0));
    TOLD("atomic operations on no device's memory", peer_atomics(can, operations, 0, 7));
    TOLD("atomic operations on a peer's memory, to nowhere", peer_atomics(NULL, operations, 1, 0));
}

static cudaLibrary_t from_files(void)
{
    const char *path = image_file();
    cudaLibrary_t library = NULL, none = NULL;

    int status = cudaLibraryLoadFromFile(&library, path, NULL, NULL, 0, NULL, NULL, 0);
    told("a library from a file", status, "%d", library != NULL);
    TOLD("a library from no file",
         cudaLibraryLoadFromFile(&none, "/nonexistent", NULL, NULL, 0, NULL, NULL, 0));
    TOLD("a library to nowhere", cudaLibraryLoadFromFile(NULL, path, NULL, NULL, 0, NULL, NULL, 0));
    TOLD("a library from no path", cudaLibraryLoadFromFile(&none, NULL, NULL, NULL, 0, NULL, NULL, 0));
    unlink(path);
    return library;
}

static void libraries(void)
{
    cudaLibrary_t library = from_files();
    cudaKernel_t all[3] = {NULL}, kernel = NULL;
    unsigned count = 77;
    size_t bytes = 77;
    void *p = NULL;
    int status = cudaLibraryGetKernelCount(&count, library);

    told("how many kernels a library has", status, "%u", count);
    TOLD("how many kernels, to nowhere", cudaLibraryGetKernelCount(NULL, library));
    TOLD("how many kernels no library has", cudaLibraryGetKernelCount(&count, NULL));
    status = cudaLibraryEnumerateKernels(all, 3, library);
    told("a library's kernels", status, "%d %d %d", all[0] != NULL, all[1] != NULL, all[2] != NULL);
    TOLD("a library's kernels, to nowhere", cudaLibraryEnumerateKernels(NULL, 3, library));
    TOLD("the kernels of no library", cudaLibraryEnumerateKernels(all, 3, NULL));
    status = cudaLibraryGetGlobal(&p, &bytes, library, "table");
    told("a library's variable", status, "%zu bytes, %d", bytes, p != NULL);
    TOLD("a library's variable that it does not have", cudaLibraryGetGlobal(&p, &bytes, library, "none"));
    TOLD("a library's variable that is managed", cudaLibraryGetGlobal(&p, &bytes, library, "shared_word"));
    TOLD("a library's variable that is a kernel", cudaLibraryGetGlobal(&p, &bytes, library, "first"));
    TOLD("a library's variable without a name", cudaLibraryGetGlobal(&p, &bytes, library, NULL));
    TOLD("no library's variable", cudaLibraryGetGlobal(&p, &bytes, NULL, "table"));
    p = NULL;
    status = cudaLibraryGetManaged(&p, &bytes, library, "shared_word");
    told("a library's managed variable", status, "%zu bytes, %d", bytes, p != NULL);
    TOLD("a library's managed variable that is not managed",
         cudaLibraryGetManaged(&p, &bytes, library, "table"));
    TOLD("a library's unified function", cudaLibraryGetUnifiedFunction(&p, library, "first"));
    TOLD("no library's unified function", cudaLibraryGetUnifiedFunction(&p, NULL, "first"));
    status = cudaGetKernel(&kernel, &first_stub);
    told("a kernel's handle", status, "%d", kernel != NULL);
    TOLD("a kernel's handle, to nowhere", cudaGetKernel(NULL, &first_stub));
}

/* Batches of copies are not simulated. */
static void copies(void)
{
    static const char *const facts[] = {"copies: two",
                                        "copies: none",
                                        "copies: no lists",
                                        "copies: no attributes",
                                        "copies: attributes for none",
                                        "copies: attributes from the second of one",
                                        "copies: no order",
                                        "copies: an unknown order",
                                        "copies: a flag",
                                        "copies: of no bytes",
                                        "copies: from the host's pages and back"};

    for (unsigned i = 0; i < sizeof facts / sizeof facts[0]; i++)
        TOLD(facts[i], any("cudaMemcpyBatchAsync", NULL, NULL, NULL, NULL));
}

static void batches(void)
{
    cudaStream_t stream = NULL;
    void *all[1] = {NULL};
    size_t bytes[1] = {MIB}, firsts[1] = {0};
    struct cudaMemLocation at[1] = {here};

    cudaStreamCreate(&stream);
    cudaMallocManaged(&all[0], MIB, 1);
    TOLD("prefetching a batch", cudaMemPrefetchBatchAsync(all, bytes, 1, at, firsts, 1, 0, stream));
    TOLD("prefetching none", cudaMemPrefetchBatchAsync(all, bytes, 0, at, firsts, 1, 0, stream));
    TOLD("prefetching a batch with a flag",
         cudaMemPrefetchBatchAsync(all, bytes, 1, at, firsts, 1, 1, stream));
    TOLD("discarding a batch", cudaMemDiscardBatchAsync(all, bytes, 1, 0, stream));
    TOLD("discarding no list", cudaMemDiscardBatchAsync(NULL, NULL, 1, 0, stream));
    TOLD("discarding and prefetching a batch",
         cudaMemDiscardAndPrefetchBatchAsync(all, bytes, 1, at, firsts, 1, 0, stream));
}

int main(void)
{
    prepare();
    banks();
    valid_devices();
    textures();
    occupancy();
    tables();
    symbols();
    arrays();
    graphs();
    pools();
    nodes();
    logs();
    notifications();
    atomics();
    peers();
    libraries();
    copies();
    batches();
    return 0;
}
