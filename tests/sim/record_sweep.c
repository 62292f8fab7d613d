/* One call after another of the driver's, with arguments that are good and bad, as the record has them. See
 * record.h. */
#include <dlfcn.h>

#include "vendor/abi/cuda_graph_fn.h"
#include "tests/sim/record.h"

static CUcontext ctx;
static CUstream stream;
static CUevent event;
static CUmodule module;
static CUfunction function;
static CUlibrary library;
static CUdeviceptr plain, managed;
static const CUmemLocation here = {CU_MEM_LOCATION_TYPE_DEVICE, 0},
                           nowhere = {CU_MEM_LOCATION_TYPE_DEVICE, 9};

/* A function that our headers do not declare; pointers and small numbers alone. */
typedef CUresult (*any_func_t)(void *, void *, void *, void *, void *);

static CUresult any(const char *name, void *a, void *b, void *c, void *d, void *e)
{
    any_func_t found = (any_func_t)dlsym(RTLD_DEFAULT, name);

    return found ? found(a, b, c, d, e) : CUDA_ERROR_NOT_FOUND;
}

static void prepare(void)
{
    ctx = begin();
    must(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
    must(cuEventCreate(&event, 0));
    must(cuModuleLoadData(&module, image));
    must(cuModuleGetFunction(&function, module, "first"));
    must(cuLibraryLoadData(&library, image, NULL, NULL, 0, NULL, NULL, 0));
    must(cuMemAlloc_v2(&plain, MIB));
    must(cuMemAllocManaged(&managed, MIB, CU_MEM_ATTACH_GLOBAL));
}

static void atomics(void)
{
    CUatomicOperation operations[3] = {CU_ATOMIC_OPERATION_INTEGER_ADD, CU_ATOMIC_OPERATION_FLOAT_ADD,
                                       CU_ATOMIC_OPERATION_CAS};
    unsigned can[3] = {9, 9, 9};
    CUresult status = cuDeviceGetHostAtomicCapabilities(can, operations, 3, 0);

    told("atomic operations on the host's memory", status, "%u %u %u", can[0], can[1], can[2]);
    can[0] = 9;
    status = cuDeviceGetP2PAtomicCapabilities(can, operations, 1, 0, 1);
    told("atomic operations on a peer's memory", status, "%u", can[0]);
    TOLD("atomic operations on a device's own memory",
         cuDeviceGetP2PAtomicCapabilities(can, operations, 1, 0, 0));
    TOLD("flushing remote writes", cuFlushGPUDirectRDMAWrites(0, 100));
    TOLD("flushing remote writes of an unknown target", cuFlushGPUDirectRDMAWrites(5, 100));
    TOLD("flushing remote writes for an unknown scope", cuFlushGPUDirectRDMAWrites(0, 7));
}

static void contexts(void)
{
    CUdevice device = 77;
    CUresult status = cuCtxGetDevice_v2(&device, ctx);

    told("the device of a context", status, "%d", device);
    device = 77;
    status = cuCtxGetDevice_v2(&device, NULL);
    told("the device of the current context", status, "%d", device);
    TOLD("the device of a context, to nowhere", cuCtxGetDevice_v2(NULL, ctx));
    TOLD("waiting for a context", cuCtxSynchronize_v2(ctx));
    TOLD("waiting for the current context", cuCtxSynchronize_v2(NULL));
    TOLD("resetting lines that persist", cuCtxResetPersistingL2Cache());
    TOLD("a context's event", cuCtxRecordEvent(ctx, event));
    TOLD("the event of no context", cuCtxRecordEvent(NULL, event));
    TOLD("a context's event that is none", cuCtxRecordEvent(ctx, NULL));
    must(cuEventRecord(event, NULL));
    TOLD("a context waits for an event", cuCtxWaitEvent(ctx, event));
    must(cuEventCreate(&event, 0));
    TOLD("a context waits for an event that was never recorded", cuCtxWaitEvent(ctx, event));
    TOLD("a context waits for no event", cuCtxWaitEvent(ctx, NULL));
}

static void modules(void)
{
    CUfunction all[8] = {NULL};
    unsigned count = 77;
    CUresult status = cuModuleGetFunctionCount(&count, module);

    told("how many functions a module has", status, "%u", count);
    TOLD("how many functions, to nowhere", cuModuleGetFunctionCount(NULL, module));
    TOLD("how many functions no module has", cuModuleGetFunctionCount(&count, NULL));
    status = cuModuleEnumerateFunctions(all, 3, module);
    told("a module's functions", status, "%d %d %d", all[0] != NULL, all[1] != NULL, all[2] != NULL);
    TOLD("none of a module's functions", cuModuleEnumerateFunctions(all, 0, module));
    TOLD("the functions of no module", cuModuleEnumerateFunctions(all, 3, NULL));
}

static void loading(void)
{
    const char *path = image_file();
    CUlibrary loaded = NULL;
    CUkernel kernel = NULL, all[8];
    unsigned count = 77;

    CUresult status = cuLibraryLoadFromFile(&loaded, path, NULL, NULL, 0, NULL, NULL, 0);
    told("a library from a file", status, "%d", loaded != NULL);
    TOLD("a library from no file",
         cuLibraryLoadFromFile(&loaded, "/nonexistent", NULL, NULL, 0, NULL, NULL, 0));
    TOLD("a library from no path", cuLibraryLoadFromFile(&loaded, NULL, NULL, NULL, 0, NULL, NULL, 0));
    TOLD("a library to nowhere", cuLibraryLoadFromFile(NULL, path, NULL, NULL, 0, NULL, NULL, 0));
    unlink(path);
    status = cuLibraryGetKernelCount(&count, library);
    told("how many kernels a library has", status, "%u", count);
    TOLD("how many kernels no library has", cuLibraryGetKernelCount(&count, NULL));
    TOLD("the kernels of no library", cuLibraryEnumerateKernels(all, 3, NULL));
    must(cuLibraryGetKernel(&kernel, library, "first"));
    loaded = NULL;
    status = cuKernelGetLibrary(&loaded, kernel);
    told("a kernel's library", status, "%d", loaded != NULL);
    TOLD("no kernel's library", cuKernelGetLibrary(&loaded, NULL));
}

static void variables(void)
{
    CUdeviceptr p = 0;
    size_t bytes = 77;
    void *pointer;
    CUresult status = cuLibraryGetGlobal(&p, &bytes, library, "table");

    told("a library's variable", status, "%zu %d", bytes, p != 0);
    TOLD("a library's variable that it does not have", cuLibraryGetGlobal(&p, &bytes, library, "none"));
    TOLD("a library's variable without a name", cuLibraryGetGlobal(&p, &bytes, library, NULL));
    TOLD("no library's variable", cuLibraryGetGlobal(&p, &bytes, NULL, "table"));
    TOLD("a library's variable, told to nowhere", cuLibraryGetGlobal(NULL, NULL, library, "table"));
    TOLD("a library's variable that is a kernel", cuLibraryGetGlobal(&p, &bytes, library, "first"));
    p = 0;
    status = cuLibraryGetManaged(&p, &bytes, library, "shared_word");
    told("a library's managed variable", status, "%zu %d", bytes, p != 0);
    TOLD("a library's managed variable that is not managed",
         cuLibraryGetManaged(&p, &bytes, library, "table"));
    TOLD("a library's managed variable that it does not have",
         cuLibraryGetManaged(&p, &bytes, library, "none"));
    TOLD("no library's unified function", cuLibraryGetUnifiedFunction(&pointer, NULL, "first"));
}

static void functions(void)
{
    CUmodule own = NULL;
    const char *name = NULL;
    size_t offset = 77, bytes = 77;
    CUresult status = cuFuncGetModule(&own, function);

    told("a function's module", status, "%d", own != NULL);
    TOLD("no function's module", cuFuncGetModule(&own, NULL));
    status = cuFuncGetName(&name, function);
    told("a function's name", status, "%s", name ? (strcmp(name, "first") ? "another" : "its own") : "none");
    TOLD("no function's name", cuFuncGetName(&name, NULL));
    status = cuFuncGetParamInfo(function, 0, &offset, &bytes);
    told("a function's first parameter", status, "at %zu, %zu bytes", offset, bytes);
    TOLD("a function's sixth parameter of one", cuFuncGetParamInfo(function, 5, &offset, &bytes));
}

static void notify(void)
{
}

static void notifications(void)
{
    void *handle = NULL;
    CUresult status = any("cuDeviceRegisterAsyncNotification", NULL, (void *)notify, NULL, &handle, NULL);
    CUresult ended =
        status ? status : any("cuDeviceUnregisterAsyncNotification", NULL, handle, NULL, NULL, NULL);

    told("a notification of a device's", status, "%d, ended %d", handle != NULL, (int)ended);
    TOLD("a notification without a function",
         any("cuDeviceRegisterAsyncNotification", NULL, NULL, NULL, &handle, NULL));
    TOLD("the end of no notification",
         any("cuDeviceUnregisterAsyncNotification", NULL, NULL, NULL, NULL, NULL));
}

/* --- batches of copies: the second form has no index of the copy that failed --- */

struct batch {
    CUdeviceptr to[2], from[2];
    size_t bytes[2], first[2];
    CUmemcpyAttributes how[2];
};

static char host[16];

static struct batch good(void)
{
    struct batch b = {.to = {plain, plain + 64},
                      .from = {(CUdeviceptr)(uintptr_t)host, (CUdeviceptr)(uintptr_t)host},
                      .bytes = {16, 16}};

    b.how[0].srcAccessOrder = b.how[1].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
    return b;
}

static void batch(const char *fact, struct batch b, size_t count, size_t hows, CUstream on)
{
    size_t failed = 77;
    CUresult status = cuMemcpyBatchAsync(b.to, b.from, b.bytes, count, b.how, b.first, hows, &failed, on);

    must(cuCtxSynchronize());
    told(fact, status, "failed at %lld", (long long)failed);
}

static void batches_without_index(void)
{
    CUDA_MEMCPY3D_BATCH_OP op = {.flags = 0};
    struct batch b = good();

    TOLD("a copy of nothing between peers", cuMemcpy3DPeer(&(CUDA_MEMCPY3D_PEER){.srcXInBytes = 0}));
    TOLD("copies: none", cuMemcpyBatchAsync_v2(b.to, b.from, b.bytes, 0, b.how, b.first, 1, stream));
    TOLD("copies: no lists", cuMemcpyBatchAsync_v2(NULL, NULL, b.bytes, 1, b.how, b.first, 1, stream));
    b.how[0].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_INVALID;
    TOLD("copies: no order", cuMemcpyBatchAsync_v2(b.to, b.from, b.bytes, 1, b.how, b.first, 1, stream));
    TOLD("shaped copies: none", cuMemcpy3DBatchAsync_v2(0, &op, 0, stream));
    TOLD("shaped copies: no list", cuMemcpy3DBatchAsync_v2(1, NULL, 0, stream));
    TOLD("shaped copies: a flag", cuMemcpy3DBatchAsync_v2(1, &op, 1, stream));
}

static void batches(void)
{
    struct batch b = good();
    size_t failed = 77;
    char back[16] = "";
    CUresult status;

    for (unsigned i = 0; i < sizeof host; i++)
        host[i] = (char)(i + 1);
    batch("copies, indexed: none", b, 0, 1, stream);
    status = cuMemcpyBatchAsync(NULL, NULL, b.bytes, 1, b.how, b.first, 1, &failed, stream);
    told("copies, indexed: no lists", status, "failed at %lld", (long long)failed);
    TOLD("copies, indexed: no place for the index",
         cuMemcpyBatchAsync(b.to, b.from, b.bytes, 1, b.how, b.first, 1, NULL, stream));
    batch("copies, indexed: in the legacy stream", b, 1, 1, NULL);
    b.how[0].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_INVALID;
    batch("copies, indexed: no order", b, 1, 1, stream);
    b = good();
    b.bytes[0] = 0;
    batch("copies, indexed: the first of no bytes", b, 1, 1, stream);
    b = good();
    failed = 77;
    status = cuMemcpyBatchAsync(b.to, b.from, b.bytes, 2, b.how, b.first, 1, &failed, stream);
    must(cuStreamSynchronize(stream));
    must(cuMemcpyDtoH_v2(back, plain + 64, sizeof back));
    told("copies, indexed: two", status, "failed at %lld, back %d and %d", (long long)failed, back[0],
         back[15]);
    b.bytes[1] = 0;
    batch("copies, indexed: the second of no bytes", b, 2, 1, stream);
    b = good();
    b.how[0].flags = 2;
    batch("copies, indexed: a flag", b, 1, 1, stream);
    b = good();
    b.first[1] = 5;
    batch("copies, indexed: attributes from the sixth of one", b, 1, 2, stream);
}

static CUDA_MEMCPY3D_BATCH_OP shaped(void)
{
    CUDA_MEMCPY3D_BATCH_OP op = {.extent = {4, 1, 1}, .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};

    op.src.type = op.dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
    op.src.op.ptr.ptr = plain;
    op.dst.op.ptr.ptr = plain + 256;
    return op;
}

static void shape(const char *fact, CUDA_MEMCPY3D_BATCH_OP op, size_t count, unsigned long long flags,
                  CUstream on)
{
    CUDA_MEMCPY3D_BATCH_OP all[2] = {shaped(), op};
    size_t failed = 77;
    CUresult status = cuMemcpy3DBatchAsync(count, count > 1 ? all : &op, &failed, flags, on);

    must(cuCtxSynchronize());
    told(fact, status, "failed at %lld", (long long)failed);
}

static void shapes(void)
{
    CUDA_MEMCPY3D_BATCH_OP op = shaped(), none = shaped();
    size_t failed = 77;

    none.extent = (CUextent3D){0, 0, 0};
    shape("shaped copies, indexed: none", op, 0, 0, stream);
    told("shaped copies, indexed: no list", cuMemcpy3DBatchAsync(1, NULL, &failed, 0, stream),
         "failed at %lld", (long long)failed);
    shape("shaped copies, indexed: a flag", op, 1, 1, stream);
    shape("shaped copies, indexed: the first of no bytes", none, 1, 0, stream);
    shape("shaped copies, indexed: in the legacy stream", op, 1, 0, NULL);
    op.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_INVALID;
    shape("shaped copies, indexed: no order", op, 1, 0, stream);
    op = shaped();
    op.src.type = (CUmemcpy3DOperandType)9;
    shape("shaped copies, indexed: of an unknown kind", op, 1, 0, stream);
    op = shaped();
    op.flags = 2;
    shape("shaped copies, indexed: a flag of the first", op, 1, 0, stream);
    op = shaped();
    op.extent.depth = 0;
    shape("shaped copies, indexed: the second of no bytes", op, 2, 0, stream);
}

static void arrays(void)
{
    CUDA_ARRAY_DESCRIPTOR as = {.Width = 64, .Height = 16, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
    char answer[256];
    CUarray array, plane;
    int fd = -1;
    size_t failed = 77;

    must(cuArrayCreate_v2(&array, &as));
    TOLD("the memory that an array needs", cuArrayGetMemoryRequirements((void *)answer, array, 0));
    TOLD("the memory that no array needs", cuArrayGetMemoryRequirements((void *)answer, NULL, 0));
    TOLD("the tiles of an array that is not sparse", cuArrayGetSparseProperties((void *)answer, array));
    TOLD("the plane of no array", cuArrayGetPlane(&plane, NULL, 0));
    TOLD("memory as a DMA-BUF",
         cuMemGetHandleForAddressRange(&fd, plain, MIB, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
    TOLD("memory as a DMA-BUF, to nowhere",
         cuMemGetHandleForAddressRange(NULL, plain, MIB, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
    TOLD("memory as an unknown kind of descriptor",
         cuMemGetHandleForAddressRange(&fd, plain, MIB, (CUmemRangeHandleType)5, 0));
    CUresult status = any("cuMemBatchDecompressAsync", answer, (void *)1, NULL, &failed, NULL);
    told("decompressing", status, "failed at %zu", failed);
    TOLD("mapping an array's tiles", cuMemMapArrayAsync(&(CUarrayMapInfo){0}, 1, NULL));
    TOLD("mapping no list of tiles", cuMemMapArrayAsync(NULL, 1, NULL));
}

static void pools(void)
{
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = here};
    CUmemLocation at = here, far = nowhere;
    CUmemoryPool pool = NULL, first = NULL, own;
    CUresult status = cuMemGetDefaultMemPool(&first, &at, CU_MEM_ALLOCATION_TYPE_PINNED);

    told("the default pool of a place", status, "%d", first != NULL);
    TOLD("the default pool of memory of no kind",
         cuMemGetDefaultMemPool(&pool, &at, CU_MEM_ALLOCATION_TYPE_INVALID));
    TOLD("the default pool of managed memory",
         cuMemGetDefaultMemPool(&pool, &at, CU_MEM_ALLOCATION_TYPE_MANAGED));
    TOLD("the default pool of no device", cuMemGetDefaultMemPool(&pool, &far, CU_MEM_ALLOCATION_TYPE_PINNED));
    TOLD("the default pool, to nowhere", cuMemGetDefaultMemPool(NULL, &at, CU_MEM_ALLOCATION_TYPE_PINNED));
    TOLD("the default pool of no place", cuMemGetDefaultMemPool(&pool, NULL, CU_MEM_ALLOCATION_TYPE_PINNED));
    status = cuMemGetMemPool(&pool, &at, CU_MEM_ALLOCATION_TYPE_PINNED);
    told("the pool of a place", status, "%s", pool == first ? "the default one" : "another");
    must(cuMemPoolCreate(&own, &props));
    status = cuMemSetMemPool(&at, CU_MEM_ALLOCATION_TYPE_PINNED, own);
    must(cuMemGetMemPool(&pool, &at, CU_MEM_ALLOCATION_TYPE_PINNED));
    told("another pool for a place", status, "%s", pool == own ? "taken" : "not taken");
    TOLD("no pool for a place", cuMemSetMemPool(&at, CU_MEM_ALLOCATION_TYPE_PINNED, NULL));
}

static void managed_memory(void)
{
    size_t bytes[1] = {MIB}, firsts[1] = {0}, sizes[2] = {4, 4};
    CUdeviceptr all[1] = {managed};
    CUmemLocation at[1] = {here};
    int value = -9, users[2] = {-9, -9}, second = -9;
    void *data[2] = {&value, &second};
    CUmem_range_attribute asked[2] = {CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY,
                                      CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION};

    TOLD("prefetching a batch", cuMemPrefetchBatchAsync(all, bytes, 1, at, firsts, 1, 0, NULL));
    TOLD("discarding a batch", cuMemDiscardBatchAsync(all, bytes, 1, 0, NULL));
    TOLD("discarding and prefetching a batch",
         cuMemDiscardAndPrefetchBatchAsync(all, bytes, 1, at, firsts, 1, 0, NULL));
#define ASK(fact, attribute)                                                                                 \
    do {                                                                                                     \
        CUresult ask_status = cuMemRangeGetAttribute(&value, sizeof value, attribute, managed, MIB);         \
        told(fact, ask_status, "%d", value);                                                                 \
    } while (0)
    ASK("mostly read?", CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY);
    ASK("at which place?", CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION);
    ASK("last prefetched where?", CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION);
    CUresult status =
        cuMemRangeGetAttribute(users, sizeof users, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, managed, MIB);
    told("used by whom?", status, "%d %d", users[0], users[1]);
    TOLD("an answer of a byte",
         cuMemRangeGetAttribute(&value, 1, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, managed, MIB));
    TOLD("an answer for device memory",
         cuMemRangeGetAttribute(&value, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, plain, MIB));
    TOLD("an answer to an unknown question",
         cuMemRangeGetAttribute(&value, 4, (CUmem_range_attribute)99, managed, MIB));
    TOLD("an answer to nowhere",
         cuMemRangeGetAttribute(NULL, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, managed, MIB));
    value = -9;
    status = cuMemRangeGetAttributes(data, sizes, asked, 2, managed, MIB);
    told("two answers", status, "%d %d", value, second);
    TOLD("no answers", cuMemRangeGetAttributes(NULL, NULL, NULL, 0, managed, MIB));
    TOLD("answers to no list", cuMemRangeGetAttributes(NULL, NULL, NULL, 1, managed, MIB));
}

static void streams(void)
{
    CUstream second;
    CUdevice device = 77;
    unsigned long long id = 0;
    CUstreamAttrValue value;
    CUresult status = cuStreamGetDevice(stream, &device);

    told("a stream's device", status, "%d", device);
    device = 77;
    status = cuStreamGetDevice(NULL, &device);
    told("the legacy stream's device", status, "%d", device);
    TOLD("a stream's device, to nowhere", cuStreamGetDevice(stream, NULL));
    status = cuStreamGetId(stream, &id);
    told("a stream's number", status, "%s", id > 0 ? "above 0" : "0");
    id = 77;
    status = cuStreamGetId(NULL, &id);
    told("the legacy stream's number", status, "%s", id != 77 ? "told" : "not told");
    TOLD("a stream's number, to nowhere", cuStreamGetId(stream, NULL));
    must(cuStreamCreate(&second, CU_STREAM_DEFAULT));
    TOLD("a stream's attributes for another", cuStreamCopyAttributes(second, stream));
    memset(&value, 0x55, sizeof value);
    status = cuStreamGetAttribute(stream, 8 /* CU_LAUNCH_ATTRIBUTE_PRIORITY */, &value);
    told("a stream's priority, as an attribute", status, "%d", value.priority);
    TOLD("a stream's attribute of an unknown kind", cuStreamGetAttribute(stream, (CUstreamAttrID)99, &value));
    TOLD("a stream's attribute of an unknown kind, set",
         cuStreamSetAttribute(stream, (CUstreamAttrID)99, &value));
}

static void external(void)
{
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC as = {
        .type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD, .handle.fd = 5, .size = 4096};
    CUexternalMemory memory;
    CUdeviceptr p;

    TOLD("external memory of a descriptor", cuImportExternalMemory(&memory, &as));
    TOLD("external memory of nothing", cuImportExternalMemory(&memory, NULL));
    as.type = (CUexternalMemoryHandleType)99;
    TOLD("external memory of an unknown kind", cuImportExternalMemory(&memory, &as));
    TOLD("a buffer of no external memory",
         cuExternalMemoryGetMappedBuffer(&p, NULL, &(CUDA_EXTERNAL_MEMORY_BUFFER_DESC){.size = 0}));
    TOLD("the end of no external memory", cuDestroyExternalMemory(NULL));
    TOLD("the end of no external semaphore", any("cuDestroyExternalSemaphore", NULL, NULL, NULL, NULL, NULL));
}

static void green(void)
{
    CUdevResource resource;
    CUcontext view;
    CUstream made;
    unsigned long long handle = 0;

    TOLD("a condition of no graph",
         any("cuGraphConditionalHandleCreate", &handle, NULL, ctx, (void *)1, NULL));
    TOLD("a device's resource of an unknown kind",
         cuDeviceGetDevResource(0, &resource, (CUdevResourceType)99));
    TOLD("the resource of no device", cuDeviceGetDevResource(9, &resource, CU_DEV_RESOURCE_TYPE_SM));
    TOLD("the end of no green context", cuGreenCtxDestroy(NULL));
    TOLD("the view of no green context", cuCtxFromGreenCtx(&view, NULL));
    TOLD("the resource of no green context",
         cuGreenCtxGetDevResource(NULL, &resource, CU_DEV_RESOURCE_TYPE_SM));
    TOLD("the event of no green context", cuGreenCtxRecordEvent(NULL, event));
    TOLD("no green context waits", cuGreenCtxWaitEvent(NULL, event));
    TOLD("a stream of no green context", cuGreenCtxStreamCreate(&made, NULL, CU_STREAM_NON_BLOCKING, 0));
}

static void others(void)
{
    unsigned position = 777;
    void *handle = NULL;
    int state = 77;
    CUresult status = any("cuLogsCurrent", &position, NULL, NULL, NULL, NULL);

    told("the end of the log", status, "%u", position);
    TOLD("the log told to no function", any("cuLogsRegisterCallback", NULL, NULL, &handle, NULL, NULL));
    status = any("cuLogsRegisterCallback", (void *)notify, NULL, &handle, NULL, NULL);
    told("the log told to a function", status, "%d", handle != NULL);
    status = any("cuCheckpointProcessGetState", (void *)(uintptr_t)getpid(), &state, NULL, NULL, NULL);
    told("the state of the process", status, "%d", state);
    TOLD("no texture's anisotropy", any("cuTexRefSetMaxAnisotropy", NULL, (void *)4, NULL, NULL, NULL));
}

int main(void)
{
    prepare();
    atomics();
    contexts();
    modules();
    loading();
    variables();
    functions();
    notifications();
    batches_without_index();
    batches();
    shapes();
    arrays();
    pools();
    managed_memory();
    streams();
    external();
    green();
    others();
    return 0;
}
