/*
 * An allocator of expandable segments as torch_npu has one, in the order in which that makes its calls:
 * functions are found with dlsym(RTLD_DEFAULT) if LD_PRELOAD is set, else in libascendcl.so, opened by name;
 * a segment is a reserved range into which handles of one size are mapped as it grows; where the vendor says
 * 207001, and only there, what is cached is given back and the call is made again; and plain blocks come from
 * aclrtMallocAlign32, or from aclrtMalloc where a runtime has no such function. Own code; linked with nothing
 * of the vendor's. Prints what it sees; natively and under memshim it sees the same.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vendor/abi/acl.h"
#include "vendor/abi/acl_fn.h"
#include "tests/program.h"

#define MIB     (1024UL * 1024UL)
#define PIECE   (20 * MIB)
#define PIECES  64
#define OLD_ONE 2 * MIB

static void *library;

/* --- the loader --- */

static void *find(const char *name)
{
    void *function = getenv("LD_PRELOAD") ? dlsym(RTLD_DEFAULT, name) : NULL;

    if (!function) {
        if (!library)
            library = dlopen("libascendcl.so", RTLD_LAZY);
        function = library ? dlsym(library, name) : NULL;
    }
    return function;
}

#define GET(name) ((__typeof__(&name))find(#name))

static void check(aclError status, const char *what)
{
    if (status == ACL_SUCCESS)
        return;
    say("%s failed with %d", what, status);
    exit(1);
}

/* --- a segment --- */

struct segment {
    char *begin;
    aclrtDrvMemHandle handles[PIECES]; /* NULL: not mapped */
    bool mapped[PIECES];
};

static void open_segment(struct segment *s)
{
    memset(s, 0, sizeof *s);
    check(GET(aclrtReserveMemAddress)((void **)&s->begin, PIECES * PIECE, 0, NULL, 1),
          "aclrtReserveMemAddress");
}

/* Grows by the pieces [from, to). False, and nothing changed, where there is no memory. */
static bool grow(struct segment *s, int from, int to)
{
    aclrtPhysicalMemProp prop = {.handleType = ACL_MEM_HANDLE_TYPE_NONE,
                                 .allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED,
                                 .memAttr = ACL_HBM_MEM_HUGE,
                                 .location = {0, ACL_MEM_LOCATION_TYPE_DEVICE}};

    for (int i = from; i < to; i++) {
        aclError status = GET(aclrtMallocPhysical)(&s->handles[i], PIECE, &prop, 0);
        if (status == ACL_ERROR_RT_MEMORY_ALLOCATION) {
            say("no memory for piece %d", i);
            while (--i >= from) {
                check(GET(aclrtFreePhysical)(s->handles[i]), "aclrtFreePhysical");
                s->handles[i] = NULL;
            }
            return false;
        }
        check(status, "aclrtMallocPhysical");
    }
    for (int i = from; i < to; i++) {
        check(GET(aclrtMapMem)(s->begin + (size_t)i * PIECE, PIECE, 0, s->handles[i], 0), "aclrtMapMem");
        s->mapped[i] = true;
    }
    return true;
}

/* What is unmapped has no more work: the device is waited for first. */
static void shrink(struct segment *s, int from, int to)
{
    check(GET(aclrtSynchronizeDevice)(), "aclrtSynchronizeDevice");
    for (int i = from; i < to; i++) {
        if (!s->mapped[i])
            continue;
        check(GET(aclrtUnmapMem)(s->begin + (size_t)i * PIECE), "aclrtUnmapMem");
        check(GET(aclrtFreePhysical)(s->handles[i]), "aclrtFreePhysical");
        s->handles[i] = NULL;
        s->mapped[i] = false;
    }
}

static void close_segment(struct segment *s)
{
    shrink(s, 0, PIECES);
    check(GET(aclrtReleaseMemAddress)(s->begin), "aclrtReleaseMemAddress");
}

/* Bytes that were written through one view of a piece come out of it, across the border between two. */
static bool holds(struct segment *s, int piece, char value)
{
    static char out[2 * MIB];
    char *at = s->begin + (size_t)piece * PIECE - MIB;

    check(GET(aclrtMemset)(at, sizeof out, value, sizeof out), "aclrtMemset");
    check(GET(aclrtMemcpy)(out, sizeof out, at, sizeof out, ACL_MEMCPY_DEVICE_TO_HOST), "aclrtMemcpy");
    return out[0] == value && !memcmp(out, out + 1, sizeof out - 1);
}

/* --- plain blocks --- */

static void *plain(size_t bytes)
{
    aclError (*align32)(void **, size_t, aclrtMemMallocPolicy) = GET(aclrtMallocAlign32);
    void *block = NULL;

    if (!align32) {
        say("this runtime has no aclrtMallocAlign32");
        align32 = GET(aclrtMalloc);
    }
    check(align32(&block, bytes, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMallocAlign32");
    return block;
}

static size_t left(void)
{
    size_t free_bytes = 0, total = 0;

    check(GET(aclrtGetMemInfo)(ACL_HBM_MEM, &free_bytes, &total), "aclrtGetMemInfo");
    return free_bytes / MIB;
}

int main(void)
{
    struct segment large, small;

    say("before the library is there: %s", dlsym(RTLD_DEFAULT, "aclrtMallocPhysical") ? "found" : "absent");
    if (!GET(aclInit)) {
        say("there is no libascendcl.so");
        return 3;
    }
    check(GET(aclInit)(NULL), "aclInit");
    check(GET(aclrtSetDevice)(0), "aclrtSetDevice");
    say("free %zu MiB", left());
    open_segment(&large);
    open_segment(&small);
    for (int step = 1; step <= 3; step++) {
        say("step %d: large %s", step, grow(&large, 0, 6) ? "grown" : "refused");
        say("it holds what is written: %d", holds(&large, 3, (char)step));
        /* 280 MiB are more than there are */
        say("small grows by 8: %s", grow(&small, 0, 8) ? "grown" : "refused");
        shrink(&large, 2, 6); /* what is cached goes */
        say("again: %s", grow(&small, 0, 8) ? "grown" : "refused");
        say("free %zu MiB", left());
        void *block = plain(OLD_ONE);
        check(GET(aclrtFree)(block), "aclrtFree");
        shrink(&small, 0, PIECES);
        shrink(&large, 0, PIECES);
        say("free %zu MiB", left());
    }
    close_segment(&small);
    close_segment(&large);
    check(GET(aclrtResetDevice)(0), "aclrtResetDevice");
    check(GET(aclFinalize)(), "aclFinalize");
    return 0;
}
