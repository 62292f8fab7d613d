/* acl MILLISECONDS CASE - physical handles of the Ascend runtime's, made and given back for so long; for
 * scripts/bench.
 *
 * CASE is `pair`, a handle of 20 MiB made and freed, or `segment`, eight of them mapped side by side,
 * unmapped and freed, as an allocator of expandable segments does. Prints nanoseconds of time and of
 * processor time per handle, the calls of the vendor's that make or free handles in 1000 handles, and how
 * many there were. The simulator counts calls if MEMSIM_COUNT is 1. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "vendor/abi/acl.h"
#include "vendor/abi/acl_fn.h"

#define BYTES (20UL << 20)
enum { PIECES = 8, WARM_UP = 64 };

static char *addresses;

static void must(aclError status)
{
    if (status == ACL_SUCCESS)
        return;
    fprintf(stderr, "acl: status %d\n", status);
    exit(1);
}

static double now_ns(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* One round; returns how many handles were made. */
static int turn(int segment)
{
    static const aclrtPhysicalMemProp prop = {.memAttr = ACL_HBM_MEM_HUGE,
                                              .location = {0, ACL_MEM_LOCATION_TYPE_DEVICE}};
    aclrtDrvMemHandle handles[PIECES];
    int count = segment ? PIECES : 1;

    for (int i = 0; i < count; i++)
        must(aclrtMallocPhysical(&handles[i], BYTES, &prop, 0));
    for (int i = 0; i < count && segment; i++)
        must(aclrtMapMem(addresses + (size_t)i * BYTES, BYTES, 0, handles[i], 0));
    for (int i = 0; i < count; i++) {
        if (segment)
            must(aclrtUnmapMem(addresses + (size_t)i * BYTES));
        must(aclrtFreePhysical(handles[i]));
    }
    return count;
}

int main(int argc, char **argv)
{
    long long (*counted)(const char *) =
        (long long (*)(const char *))dlsym(dlopen("libascendcl.so", RTLD_NOW), "memsim_count");
    double end, cpu, begin, milliseconds = argc > 1 ? atof(argv[1]) : 60;
    int segment = argc > 2 && !strcmp(argv[2], "segment");
    long long handles = 0, calls;

    must(aclInit(NULL));
    must(aclrtSetDevice(0));
    must(aclrtReserveMemAddress((void **)&addresses, PIECES * BYTES, 0, NULL, 1));
    for (int i = 0; i < WARM_UP; i++)
        turn(segment);
    calls = counted("aclrtMallocPhysical") + counted("aclrtFreePhysical");
    begin = now_ns(CLOCK_MONOTONIC);
    cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID);
    do {
        for (int i = 0; i < 16; i++)
            handles += turn(segment);
        end = now_ns(CLOCK_MONOTONIC);
    } while (end - begin < milliseconds * 1e6);
    cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    calls = counted("aclrtMallocPhysical") + counted("aclrtFreePhysical") - calls;
    printf("%.1f %.1f %.1f %lld\n", (end - begin) / (double)handles, cpu / (double)handles,
           1000.0 * (double)calls / (double)handles, handles);
    return 0;
}
