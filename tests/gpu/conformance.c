/*
 * conformance: what a program can observe of device memory, one line per observation, under names that stay.
 *
 *   conformance [PART...]
 *
 * The same program runs on the simulator, on hardware, and under memshim in each of its modes;
 * tests/gpu/compare.py holds the outputs against each other, line by line. Parts run in processes of their
 * own, since some break their context.
 */
#include "conform.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static const struct kit_part parts[] = {
    {"status", conform_status},
    {"runtime", conform_runtime},
    {"thread", conform_thread},
    {"align", conform_align},
    {"range", conform_range},
    {"attributes", conform_attributes},
    {"meminfo", conform_meminfo},
    {"free", conform_free},
    {"stale", conform_stale},
    {"order", conform_order},
    {"pool", conform_pool},
    {"reuse", conform_reuse},
    {"vmm", conform_vmm},
    {"ipc", conform_ipc},
    {".importer", conform_importer},
    {"share", conform_share},
    {".sharer", conform_sharer},
    {"context", conform_context},
    {"reset", conform_reset},
    {"illegal", conform_illegal},
    {"trap", conform_trap},
    {"capture", conform_capture},
    {"graph", conform_graph},
    {"questions", conform_questions},
    {NULL, NULL},
};

static const char *part = "?";

const CUmemAllocationProp conform_prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                          .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0},
                                          .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR};

void say(const char *name, const char *format, ...)
{
    va_list arguments;

    printf("conform %s.%s ", part, name);
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    putchar('\n');
}

CUdeviceptr conform_get(size_t bytes)
{
    CUdeviceptr d = 0;

    kit_must(cuMemAlloc_v2(&d, bytes));
    return d;
}

size_t conform_free_bytes(void)
{
    size_t left = 0, total = 0;

    kit_must(cuMemGetInfo_v2(&left, &total));
    return left;
}

int conform_byte(CUdeviceptr address)
{
    unsigned char byte = 0;

    return cuMemcpyDtoH_v2(&byte, address, 1) == CUDA_SUCCESS ? byte : -1;
}

CUdeviceptr conform_map(size_t bytes, CUmemGenericAllocationHandle *handle_p)
{
    CUmemAccessDesc access = {.location = conform_prop.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUdeviceptr d = 0;

    kit_must(cuMemCreate(handle_p, bytes, &conform_prop, 0));
    kit_must(cuMemAddressReserve(&d, bytes, 0, 0, 0));
    kit_must(cuMemMap(d, bytes, 0, *handle_p, 0));
    kit_must(cuMemSetAccess(d, bytes, &access, 1));
    return d;
}

static void line(const char *text)
{
    puts(text);
    fflush(stdout);
}

static void ended(const char *name, const char *reason)
{
    printf("conform %s.end %s\n", name, reason ? reason : "whole");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    if (argc >= 3 && strcmp(argv[1], "--part") == 0)
        part = argv[2][0] == '.' ? argv[2] + 1 : argv[2];
    return kit_main(argc, argv, parts, line, ended);
}
