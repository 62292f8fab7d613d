/*
 * facts_ipc.c: question 10: what legacy IPC hands out for small blocks, and what another process makes of it.
 * The importer is a part of its own; the handles travel on its command line.
 */
#include "facts.h"

#include <string.h>
#include <unistd.h>

#define SMALL 1000

static void to_hex(const CUipcMemHandle *handles, size_t count, char *text)
{
    const unsigned char *bytes = (const unsigned char *)handles;

    for (size_t i = 0; i < count * sizeof *handles; i++)
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
}

static bool from_hex(const char *text, CUipcMemHandle *handles, size_t count)
{
    unsigned char *bytes = (unsigned char *)handles;

    if (strlen(text) != 2 * count * sizeof *handles)
        return false;
    for (size_t i = 0; i < count * sizeof *handles; i++)
        if (sscanf(text + 2 * i, "%2hhx", &bytes[i]) != 1)
            return false;
    return true;
}

static int export_status(CUdeviceptr d)
{
    CUipcMemHandle handle;

    return (int)cuIpcGetMemHandle(&handle, d);
}

static void other_memory(void)
{
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    CUmemAccessDesc access = {.location = prop.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle handle;
    CUdeviceptr d = 0;
    size_t bytes;

    kit_must(cuMemGetAllocationGranularity(&bytes, &prop, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
    kit_must(cuMemCreate(&handle, bytes, &prop, 0));
    kit_must(cuMemAddressReserve(&d, bytes, 0, 0, 0));
    kit_must(cuMemMap(d, bytes, 0, handle, 0));
    kit_must(cuMemSetAccess(d, bytes, &access, 1));
    fact(ipc_mapped_export, "status %d", export_status(d));
    kit_must(cuMemAllocAsync(&d, KIT_MIB, NULL));
    kit_must(cuCtxSynchronize());
    fact(ipc_pool_export, "status %d", export_status(d));
    kit_must(cuMemFreeAsync(d, NULL));
    kit_must(cuMemAllocManaged(&d, KIT_MIB, CU_MEM_ATTACH_GLOBAL));
    fact(ipc_managed_export, "status %d", export_status(d));
    kit_must(cuMemFree_v2(d));
    kit_must(cuMemAlloc_v2(&d, 4 * KIT_MIB));
    kit_must(cuMemFree_v2(d));
    fact(ipc_freed_export, "status %d", export_status(d));
}

void facts_ipc(int argc, char **argv)
{
    CUipcMemHandle handles[2], inner;
    char text[sizeof handles * 2 + 1];
    CUdeviceptr one, two, opened = 0;

    (void)argc;
    (void)argv;
    kit_begin();
    kit_must(cuMemAlloc_v2(&one, SMALL));
    kit_must(cuMemAlloc_v2(&two, SMALL));
    kit_must(cuMemsetD8_v2(one, 1, SMALL));
    kit_must(cuMemsetD8_v2(two, 2, SMALL));
    kit_must(cuCtxSynchronize());
    CUresult status = cuIpcGetMemHandle(&handles[0], one);
    fact(ipc_small_export, "status %d", (int)status);
    if (status != CUDA_SUCCESS || cuIpcGetMemHandle(&handles[1], two) != CUDA_SUCCESS)
        kit_give_up("small blocks cannot be exported here");
    fact(ipc_small_handles_equal, "%s", memcmp(&handles[0], &handles[1], sizeof inner) == 0 ? "yes" : "no");
    status = cuIpcGetMemHandle(&inner, one + 256);
    fact(ipc_interior_export, "status %d", (int)status);
    if (status == CUDA_SUCCESS)
        fact(ipc_interior_handle_equal, "%s", memcmp(&handles[0], &inner, sizeof inner) == 0 ? "yes" : "no");
    else
        fact(ipc_interior_handle_equal, "- it is refused with %d", (int)status);
    fact(ipc_open_own, "status %d",
         (int)cuIpcOpenMemHandle_v2(&opened, handles[0], CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    to_hex(handles, 2, text);
    kit_child(".importer", text);
    other_memory();
}

static size_t offset_of(CUdeviceptr d)
{
    CUdeviceptr base = d;
    size_t bytes;

    kit_must(cuMemGetAddressRange_v2(&base, &bytes, d));
    return (size_t)(d - base);
}

/* As src/record/ipc/token.c makes them, of a process that there is: the one that asks. */
static CUipcMemHandle make_token(void)
{
    static const unsigned char mark[] = {0xf5, 'm', 's', 'h', 'i', 'p', 'c', 0x9d};
    CUipcMemHandle token;
    int pid = (int)getpid();

    for (size_t i = 0; i < sizeof token; i++)
        ((unsigned char *)&token)[i] = (unsigned char)(i * 37 + 11);
    memcpy(&token, mark, sizeof mark);
    memcpy((char *)&token + sizeof mark, &pid, sizeof pid);
    return token;
}

struct visit {
    CUipcMemHandle handle;
    CUdeviceptr opened;
};

static void open_it(void *data)
{
    struct visit *visit = data;

    kit_must(cuIpcOpenMemHandle_v2(&visit->opened, visit->handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
}

static void close_it(void *data)
{
    kit_must(cuIpcCloseMemHandle(((struct visit *)data)->opened));
}

static const char *close_waits(CUipcMemHandle handle)
{
    struct visit visit = {.handle = handle};
    struct kit_question question = {.prepare = open_it, .call = close_it, .data = &visit};
    CUstream stream;

    kit_must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    return kit_waits(stream, &question);
}

void facts_ipc_importer(int argc, char **argv)
{
    CUipcMemHandle handles[2];
    CUdeviceptr opened[3] = {0}, base;
    unsigned char seen[2] = {0};
    size_t bytes = 0;

    if (argc < 1 || !from_hex(argv[0], handles, 2))
        kit_give_up("no handles");
    kit_begin();
    fact(ipc_token_open, "status %d",
         (int)cuIpcOpenMemHandle_v2(&opened[0], make_token(), CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    int status = (int)cuIpcOpenMemHandle_v2(&opened[0], handles[0], CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
    fact(ipc_import_small, "status %d", status);
    if (status != 0)
        return;
    status = (int)cuIpcOpenMemHandle_v2(&opened[1], handles[0], CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
    fact(ipc_import_twice_same, "%s, status %d", opened[0] == opened[1] ? "yes" : "no", status);
    kit_must(cuMemGetAddressRange_v2(&base, &bytes, opened[0]));
    fact(ipc_import_range, "%zu", bytes);
    status = (int)cuIpcOpenMemHandle_v2(&opened[2], handles[1], CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
    if (status != 0) {
        fact(ipc_import_offset, "- the second handle is refused with %d", status);
        fact(ipc_import_content, "- the second handle is refused with %d", status);
        fact(ipc_close_waits, "- the second handle is refused with %d", status);
        return;
    }
    fact(ipc_import_offset, "%zu %zu", offset_of(opened[0]), offset_of(opened[2]));
    kit_must(cuMemcpyDtoH_v2(&seen[0], opened[0], 1));
    kit_must(cuMemcpyDtoH_v2(&seen[1], opened[2], 1));
    fact(ipc_import_content, "%d %d", seen[0], seen[1]);
    kit_must(cuIpcCloseMemHandle(opened[2])); /* the next close is the last one of this block */
    fact(ipc_close_waits, "%s", close_waits(handles[1]));
}
