/*
 * facts: the open questions of memshim's design, each asked of the machine that this runs on.
 *
 *   facts [--list | --machine] [PART...]
 *
 * One line per fact, "fact QUESTION.ITEM NAME VALUE". A fact that cannot be had here has a value that begins
 * with "- " and says why. Facts are never left out: what a part that broke did not say is said for it.
 * docs/user/hardware/facts.md lists them all.
 */
#include "facts.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static const struct known {
    int question, item;
    const char *name, *asked;
} facts[FACT_COUNT] = {
#define X(question, item, name, asked) {question, item, #name, asked},
#include "facts.def"
#undef X
};

/* A part answers whole questions, or 5.23-27 and 5.28, which break the context and so have processes of their
 * own. */
static const struct part_facts {
    const char *part;
    enum fact_id first, last;
} part_facts[] = {
    {"routes", FACT_cudaMalloc_reaches, FACT_compiled_launch_reaches},
    {"lookups", FACT_empty_name_answers, FACT_per_thread_lookup_is_twin},
    {"nothing", FACT_cudaMalloc_zero, FACT_cudaMallocPitch_zero},
    {"async", FACT_cudaFreeAsync_of_cudaMalloc, FACT_cudaFreeAsync_of_cudaMalloc_gives_back},
    {"waits", FACT_cudaFree_waits_legacy_stream, FACT_cuIpcGetMemHandle_waits},
    {"sticky", FACT_cuMemAlloc_after_sticky_error, FACT_cuEventQuery_after_sticky_error},
    {"reset", FACT_cudaDeviceReset_mends_sticky_error, FACT_cudaDeviceReset_mends_sticky_error},
    {"costs", FACT_cudaMalloc_ns, FACT_cudaMemGetInfo_ns},
    {"sizes", FACT_granularity_minimum, FACT_context_takes},
    {"pools", FACT_pool_on_host, FACT_alloc_peer_access},
    {"frees", FACT_cudaFree_twice, FACT_cuMemFree_in_other_context},
    {"ipc", FACT_ipc_small_export, FACT_ipc_freed_export},
    {"capture", FACT_cuCtxRecordEvent_in_global_capture, FACT_cuCtxRecordEvent_in_exchanged_capture},
    {"covers", FACT_cuCtxRecordEvent_covers_legacy, FACT_cuCtxRecordEvent_covers_other_context},
    {"hangs", FACT_streams_run_together, FACT_hold_kind},
};

static const struct kit_part parts[] = {
    {"routes", facts_routes},
    {"lookups", facts_lookups},
    {"nothing", facts_nothing},
    {"async", facts_async},
    {"waits", facts_waits},
    {"sticky", facts_sticky},
    {"reset", facts_reset},
    {"costs", facts_costs},
    {"sizes", facts_sizes},
    {"pools", facts_pools},
    {"frees", facts_frees},
    {"ipc", facts_ipc},
    {".importer", facts_ipc_importer},
    {"capture", facts_capture},
    {"covers", facts_covers},
    {"hangs", facts_hangs},
    {NULL, NULL},
};

static bool said[FACT_COUNT];

void fact_say(enum fact_id id, const char *format, ...)
{
    va_list arguments;

    printf("fact %d.%d %s ", facts[id].question, facts[id].item, facts[id].name);
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    putchar('\n');
}

const char *fact_status(int status, const void *pointer)
{
    static char text[64];

    snprintf(text, sizeof text, "status %d, %s", status,
             pointer == NULL              ? "NULL"
             : pointer == (const void *)1 ? "untouched"
                                          : "a pointer");
    return text;
}

static void line(const char *text)
{
    int question, item;

    puts(text);
    fflush(stdout);
    if (sscanf(text, "fact %d.%d ", &question, &item) != 2)
        return;
    for (size_t i = 0; i < FACT_COUNT; i++)
        if (facts[i].question == question && facts[i].item == item)
            said[i] = true;
}

static void ended(const char *part, const char *reason)
{
    for (size_t i = 0; i < KIT_COUNT(part_facts); i++) {
        if (strcmp(part_facts[i].part, part) != 0)
            continue;
        for (enum fact_id id = part_facts[i].first; id <= part_facts[i].last; id++)
            if (!said[id])
                fact_say(id, "- %s", reason ? reason : "the program did not say");
    }
}

static void list(void)
{
    for (size_t i = 0; i < FACT_COUNT; i++)
        printf("%d.%d %s %s\n", facts[i].question, facts[i].item, facts[i].name, facts[i].asked);
}

/* What this is measured on, "machine KEY VALUE" a line; nothing where there is no device. */
static int machine(void)
{
    char name[256] = "";
    int version = 0, major = 0, minor = 0, runtime = 0;
    size_t bytes = 0;
    CUresult status = cuInit(0);

    if (status != CUDA_SUCCESS || kit_devices() == 0) {
        printf("machine none cuInit answers %d\n", status);
        return 1;
    }
    cuDeviceGetName(name, sizeof name, 0);
    cuDeviceTotalMem_v2(&bytes, 0);
    cuDriverGetVersion(&version);
    cudaRuntimeGetVersion(&runtime);
    cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0);
    cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0);
    printf(
        "machine device %s\nmachine devices %d\nmachine memory_bytes %zu\nmachine compute_capability %d.%d\n",
        name, kit_devices(), bytes, major, minor);
    printf("machine driver_api %d\nmachine runtime %d\n", version, runtime);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        list();
        return 0;
    }
    if (argc == 2 && strcmp(argv[1], "--machine") == 0)
        return machine();
    return kit_main(argc, argv, parts, line, ended);
}
