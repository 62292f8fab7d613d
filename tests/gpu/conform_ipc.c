/*
 * conform_ipc.c: memory shared with another process by legacy handles. The importer is a part of its own; the
 * two take turns, as the exporter waits for it.
 */
#include "conform.h"

#include <stdlib.h>
#include <string.h>

#define LARGE (3 * KIT_MIB)
#define SMALL 1000

static void to_hex(const void *data, size_t bytes, char *text)
{
    for (size_t i = 0; i < bytes; i++)
        snprintf(text + 2 * i, 3, "%02x", ((const unsigned char *)data)[i]);
}

static void from_hex(const char *text, void *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (sscanf(text + 2 * i, "%2hhx", (unsigned char *)data + i) != 1)
            kit_give_up("no handles");
}

static void bad_exports(void)
{
    CUipcMemHandle handle;
    CUdeviceptr d = conform_get(LARGE), pooled, managed;
    void *pinned;
    int local;

    say_status("export_no_pointer", cuIpcGetMemHandle(NULL, d));
    say_status("export_null", cuIpcGetMemHandle(&handle, 0));
    say_status("export_stack", cuIpcGetMemHandle(&handle, (uintptr_t)&local));
    kit_must(cuMemFree_v2(d));
    say_status("export_freed", cuIpcGetMemHandle(&handle, d));
    kit_must(cuMemAllocAsync(&pooled, KIT_MIB, NULL));
    kit_must(cuCtxSynchronize());
    say_status("export_pooled", cuIpcGetMemHandle(&handle, pooled));
    kit_must(cuMemFreeAsync(pooled, NULL));
    kit_must(cuMemAllocManaged(&managed, KIT_MIB, CU_MEM_ATTACH_GLOBAL));
    say_status("export_managed", cuIpcGetMemHandle(&handle, managed));
    kit_must(cuMemFree_v2(managed));
    kit_must(cuMemHostAlloc(&pinned, 4096, 0));
    say_status("export_pinned", cuIpcGetMemHandle(&handle, (uintptr_t)pinned));
    kit_must(cuMemFreeHost(pinned));
    memset(&handle, 0x5a, sizeof handle);
    say_status("open_garbage", cuIpcOpenMemHandle_v2(&d, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    say_status("close_unknown", cuIpcCloseMemHandle((uintptr_t)&local));
}

void conform_ipc(int argc, char **argv)
{
    CUipcMemHandle handles[3], again;
    char text[sizeof handles * 2 + 1];
    CUdeviceptr large, small[2], own;

    (void)argc;
    (void)argv;
    kit_begin();
    large = conform_get(LARGE);
    small[0] = conform_get(SMALL);
    small[1] = conform_get(SMALL);
    kit_must(cuMemsetD8_v2(large, 1, LARGE));
    kit_must(cuMemsetD8_v2(small[0], 2, SMALL));
    kit_must(cuMemsetD8_v2(small[1], 3, SMALL));
    kit_must(cuCtxSynchronize());
    say_status("export", cuIpcGetMemHandle(&handles[0], large));
    say_status("export_small", cuIpcGetMemHandle(&handles[1], small[0]));
    kit_must(cuIpcGetMemHandle(&handles[2], small[1]));
    say_status("export_again", cuIpcGetMemHandle(&again, large));
    say_yes("export_again_is_same", memcmp(&again, &handles[0], sizeof again) == 0);
    say_status("open_own", cuIpcOpenMemHandle_v2(&own, handles[0], CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    to_hex(handles, sizeof handles, text);
    say("importer_ends", "%d", kit_child(".importer", text));
    say("importer_wrote", "%d %d", conform_byte(large), conform_byte(large + LARGE - 1));
    say("importer_wrote_small", "%d", conform_byte(small[0]));
    say("neighbour_untouched", "%d", conform_byte(small[1]));
    say_status("free_after", cuMemFree_v2(large));
    bad_exports();
}

void conform_importer(int argc, char **argv)
{
    CUipcMemHandle handles[3];
    CUdeviceptr large = 0, again = 0, small = 0, other = 0, base = 0;
    size_t bytes = 0;
    unsigned value = 0;

    if (argc < 1 || strlen(argv[0]) != 2 * sizeof handles)
        kit_give_up("no handles");
    from_hex(argv[0], handles, sizeof handles);
    kit_begin();
    say_status("open_bad_flags", cuIpcOpenMemHandle_v2(&large, handles[0], 0x77));
    say_status("open", cuIpcOpenMemHandle_v2(&large, handles[0], CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    say_status("open_again", cuIpcOpenMemHandle_v2(&again, handles[0], CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    say_yes("open_again_is_same", large == again);
    say("content", "%d %d", conform_byte(large), conform_byte(large + LARGE - 1));
    say_status("range", cuMemGetAddressRange_v2(&base, &bytes, large + 100));
    say("range_is", "base %s, %zu", base == large ? "its own" : "another", bytes);
    say_status("memory_type", cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, large));
    say("memory_type_is", "%u", value);
    say_status("open_small", cuIpcOpenMemHandle_v2(&small, handles[1], CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    say("content_small", "%d", conform_byte(small));
    say_status("open_other_small",
               cuIpcOpenMemHandle_v2(&other, handles[2], CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    say("content_other_small", "%d", conform_byte(other));
    say_status("write", cuMemsetD8_v2(large, 11, LARGE));
    say_status("write_small", cuMemsetD8_v2(small, 12, SMALL));
    kit_must(cuCtxSynchronize());
    say_status("plain_free", cuMemFree_v2(large));
    say_status("close", cuIpcCloseMemHandle(large));
    say_status("close_again", cuIpcCloseMemHandle(large));
    say_status("close_once_more", cuIpcCloseMemHandle(large));
    say_status("close_small", cuIpcCloseMemHandle(small));
    say_status("reopen", cuIpcOpenMemHandle_v2(&large, handles[0], CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    say("content_after", "%d", conform_byte(large));
}
