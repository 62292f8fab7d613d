/*
 * What becomes of physical handles under memshim, seen by what the vendor is asked: each part of this program
 * runs alone, in the surroundings that recycle.sh gives it. MEMSIM_COUNT has the simulator count its
 * calls. */
#include <dlfcn.h>
#include <time.h>

#include "tests/acl/acl_test.h"

#define COUNT 8

static long long (*counted)(const char *name);

/* Calls of the vendor's that make or free handles. */
static long long vendor_calls(void)
{
    return counted("aclrtMallocPhysical") + counted("aclrtFreePhysical");
}

static aclrtDrvMemHandle make(size_t bytes)
{
    aclrtPhysicalMemProp prop = physical_of(0);
    aclrtDrvMemHandle handle = NULL;

    must(aclrtMallocPhysical(&handle, bytes, &prop, 0));
    return handle;
}

static char *map(aclrtDrvMemHandle handle, size_t bytes)
{
    void *va = NULL;

    must(aclrtReserveMemAddress(&va, bytes, 0, NULL, 1));
    must(aclrtMapMem(va, bytes, 0, handle, 0));
    return va;
}

static void unmap(char *va)
{
    must(aclrtUnmapMem(va));
    must(aclrtReleaseMemAddress(va));
}

static unsigned char first_byte(const char *va)
{
    unsigned char byte = 0;

    must(aclrtMemcpy(&byte, 1, va, 1, ACL_MEMCPY_DEVICE_TO_HOST));
    return byte;
}

/* A loop of a program's: some handles, mapped side by side, used, and given back. */
static void round_of(size_t bytes)
{
    aclrtDrvMemHandle handles[COUNT];
    char *va;

    must(aclrtReserveMemAddress((void **)&va, COUNT * bytes, 0, NULL, 1));
    for (int i = 0; i < COUNT; i++) {
        handles[i] = make(bytes);
        must(aclrtMapMem(va + (size_t)i * bytes, bytes, 0, handles[i], 0));
    }
    must(aclrtMemset(va + bytes / 2, bytes, 7, bytes)); /* across two of them */
    for (int i = 0; i < COUNT; i++) {
        must(aclrtUnmapMem(va + (size_t)i * bytes));
        must(aclrtFreePhysical(handles[i]));
    }
    must(aclrtReleaseMemAddress(va));
}

static void loop(void)
{
    round_of(20 * MIB);
    long long first = vendor_calls();
    is_u64((uint64_t)first, COUNT, "the first round asks the vendor for each handle, and gives none back");
    round_of(20 * MIB);
    round_of(20 * MIB);
    is_u64((uint64_t)(vendor_calls() - first), 0, "later rounds ask for none");
    is_u64((uint64_t)taken(), 0, "what waits is free to the program");
    must(aclrtSynchronizeDevice());
}

/* What may not be recycled: the vendor gets it back, and makes another. */
static void never(void)
{
    aclrtPhysicalMemProp prop = physical_of(0);
    aclrtDrvMemHandle handle = make(4 * MIB), again = NULL;
    long long before = vendor_calls();
    uint64_t shared = 0;

    char *va = map(handle, 4 * MIB);
    must(aclrtFreePhysical(handle));
    is_u64((uint64_t)(vendor_calls() - before), 1, "what is mapped goes to the vendor");
    is_u64(first_byte(va), 0, "and its memory lives on where it is mapped");
    unmap(va);

    handle = make(4 * MIB);
    must(aclrtMemExportToShareableHandle(handle, ACL_MEM_HANDLE_TYPE_NONE, 0, &shared));
    before = vendor_calls();
    must(aclrtFreePhysical(handle));
    is_u64((uint64_t)(vendor_calls() - before), 1, "what was exported goes to the vendor");

    handle = make(4 * MIB);
    va = map(handle, 4 * MIB);
    must(aclrtMemRetainAllocationHandle(va, &again));
    unmap(va);
    must(aclrtFreePhysical(again));
    before = vendor_calls();
    must(aclrtFreePhysical(handle));
    is_u64((uint64_t)(vendor_calls() - before), 1, "what was retained goes to the vendor");

    must(aclrtMallocPhysical(&handle, 3 * MIB, &prop, 0));
    before = vendor_calls();
    must(aclrtFreePhysical(handle));
    is_u64((uint64_t)(vendor_calls() - before), 1, "a size that the vendor rounds up goes to the vendor");

    must(aclrtFreePhysical(make(4 * MIB)));
    before = vendor_calls();
    handle = make(6 * MIB);
    is_u64((uint64_t)(vendor_calls() - before), 1, "another size is another handle");
    must(aclrtFreePhysical(handle));
    prop.memAttr = ACL_HBM_MEM_NORMAL;
    before = vendor_calls();
    must(aclrtMallocPhysical(&handle, 4 * MIB, &prop, 0));
    is_u64((uint64_t)(vendor_calls() - before), 1, "and so are other properties");
    must(aclrtFreePhysical(handle));
    prop = physical_of(1);
    before = vendor_calls();
    must(aclrtMallocPhysical(&handle, 4 * MIB, &prop, 0));
    is_u64((uint64_t)(vendor_calls() - before), 1, "and another device's");
    must(aclrtFreePhysical(handle));
    prop.location = (aclrtMemLocation){0, ACL_MEM_LOCATION_TYPE_HOST};
    must(aclrtMallocPhysical(&handle, 4 * MIB, &prop, 0));
    before = vendor_calls();
    must(aclrtFreePhysical(handle));
    is_u64((uint64_t)(vendor_calls() - before), 1, "what lies on the host goes to the vendor");
}

/* A handle that waits is none to the program. */
static void after_free(void)
{
    aclrtPhysicalMemProp prop;
    aclrtDrvMemHandle handle = make(2 * MIB);
    uint64_t shared;
    void *va;

    must(aclrtReserveMemAddress(&va, 2 * MIB, 0, NULL, 1));
    must(aclrtFreePhysical(handle));
    answers(aclrtFreePhysical(handle), ACL_ERROR_RT_INVALID_HANDLE);
    answers(aclrtMapMem(va, 2 * MIB, 0, handle, 0), ACL_ERROR_RT_INVALID_HANDLE);
    answers(aclrtMemGetAllocationPropertiesFromHandle(handle, &prop), ACL_ERROR_RT_INVALID_HANDLE);
    answers(aclrtMemExportToShareableHandle(handle, ACL_MEM_HANDLE_TYPE_NONE, 0, &shared),
            ACL_ERROR_RT_INVALID_HANDLE);
    ok(make(2 * MIB) == handle, "the next of its kind is the same handle");
    must(aclrtFreePhysical(handle));
    must(aclrtReleaseMemAddress(va));
}

/* Work that comes too late finds no mapping, as it would natively, and the next owner's memory is as he left
 * it. */
static void late_work(void)
{
    aclrtDrvMemHandle handle = make(2 * MIB), again;
    atomic_int flag = 0;
    aclrtStream stream;
    char *va = map(handle, 2 * MIB), *next;

    must(aclrtCreateStream(&stream));
    must(aclrtLaunchHostFunc(stream, hold, &flag));
    must(aclrtMemsetAsync(va, 2 * MIB, 0x55, 2 * MIB, stream));
    must(aclrtUnmapMem(va));
    must(aclrtFreePhysical(handle));
    again = make(2 * MIB);
    ok(again == handle, "the handle has a new owner");
    next = map(again, 2 * MIB);
    must(aclrtMemset(next, 2 * MIB, 0x11, 2 * MIB));
    unsigned char *seen = malloc(2 * MIB);
    atomic_store(&flag, 1);
    ok(aclrtSynchronizeStream(stream) != ACL_SUCCESS, "the late work fails");
    must(aclrtReleaseMemAddress(va));
    must(aclrtResetDeviceForce(0)); /* the error stays until then */
    must(aclrtSetDevice(0));
    must(aclrtMemcpy(seen, 2 * MIB, next, 2 * MIB, ACL_MEMCPY_DEVICE_TO_HOST));
    ok(seen[0] == 0x11 && !memcmp(seen, seen + 1, 2 * MIB - 1),
       "and has not touched what is the new owner's");
    free(seen);
}

/* Memory is short: what waits goes first, whoever asks. */
static void short_of_memory(void)
{
    aclrtPhysicalMemProp prop = physical_of(0);
    aclrtDrvMemHandle handle = NULL;
    void *p = NULL;

    round_of(6 * MIB); /* 48 of 64 MiB wait */
    answers(aclrtMallocPhysical(&handle, 40 * MIB, &prop, 0), ACL_SUCCESS);
    must(aclrtFreePhysical(handle));
    answers(aclrtMalloc(&p, 50 * MIB, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
    answers(aclrtMallocPhysical(&handle, 40 * MIB, &prop, 0), ACL_ERROR_RT_MEMORY_ALLOCATION);
    must(aclrtFree(p));
    answers(aclrtMallocPhysical(&handle, 40 * MIB, &prop, 0), ACL_SUCCESS);
    must(aclrtFreePhysical(handle));
}

/* MEMSHIM_KEEP is for `kept` handles of 2 MiB: no more wait, however often they are asked for again. */
static void keep(unsigned kept)
{
    round_of(2 * MIB);
    is_u64((uint64_t)counted("aclrtFreePhysical"), COUNT - kept, "what is beyond MEMSHIM_KEEP is given back");
    round_of(2 * MIB);
    long long before = counted("aclrtFreePhysical");
    round_of(2 * MIB);
    is_u64((uint64_t)(counted("aclrtFreePhysical") - before), COUNT - kept, "also of a loop");
}

static void limit(void)
{
    aclrtPhysicalMemProp prop = physical_of(0);
    aclrtDrvMemHandle first = make(16 * MIB), second = NULL;
    size_t left, total;

    must(aclrtGetMemInfo(ACL_HBM_MEM, &left, &total));
    is_u64(left, 16 * MIB, "of a limit of 32 MiB half is left");
    answers(aclrtMallocPhysical(&second, 20 * MIB, &prop, 0), ACL_ERROR_RT_MEMORY_ALLOCATION);
    must(aclrtFreePhysical(first));
    answers(aclrtMallocPhysical(&second, 20 * MIB, &prop, 0), ACL_SUCCESS);
    must(aclrtFreePhysical(second));
}

/* With what memory is filled when it is mapped: poison alloc, free, or nothing. */
static void contents(unsigned fresh, unsigned again)
{
    aclrtDrvMemHandle handle = make(2 * MIB);
    char *va = map(handle, 2 * MIB);

    is_u64(first_byte(va), fresh, "what the vendor made holds %#x", fresh);
    must(aclrtMemset(va, 2 * MIB, 0x33, 2 * MIB));
    unmap(va);
    va = map(handle, 2 * MIB);
    is_u64(first_byte(va), 0x33, "mapped again it holds what it did");
    unmap(va);
    must(aclrtFreePhysical(handle));
    handle = make(2 * MIB);
    va = map(handle, 2 * MIB);
    is_u64(first_byte(va), again, "recycled, it holds %#x", again);
    unmap(va);
    must(aclrtFreePhysical(handle));
}

static void reset(void)
{
    void *p;

    must(aclrtFreePhysical(make(2 * MIB)));
    must(aclrtMalloc(&p, MIB, ACL_MEM_MALLOC_HUGE_FIRST));
    is_u64((uint64_t)counted("aclrtFreePhysical"), 0, "a handle waits");
    must(aclrtResetDevice(0));
    is_u64((uint64_t)counted("aclrtFreePhysical"), 1, "when a device is reset it goes back first");
    aclrtPhysicalMemProp prop = physical_of(0);
    aclrtDrvMemHandle handle = NULL;
    answers(aclrtMallocPhysical(&handle, 2 * MIB, &prop, 0), ACL_ERROR_RT_CONTEXT_NULL);
    must(aclrtSetDevice(0));
    must(aclrtFreePhysical(make(2 * MIB)));
    must(aclFinalize());
    is_u64((uint64_t)counted("aclrtFreePhysical"), 2, "and so it does when the library ends");
}

/* What the vendor has given out; with MEMSHIM_MEMINFO=real. */
static size_t given_out(void)
{
    size_t left, total;

    must(aclrtGetMemInfo(ACL_HBM_MEM, &left, &total));
    return total - left;
}

/* After a second in which nothing is called, the next call leaves no more waiting than a quarter of what is
 * live and 64 MiB. */
static void rest(const char *next)
{
    const struct timespec nap = {1, 200000000};
    aclrtDrvMemHandle stays = make(40 * MIB), goes = make(40 * MIB), fresh = NULL, idle[COUNT];
    size_t live = 80 * MIB;
    void *p = NULL;

    for (int i = 0; i < COUNT; i++)
        idle[i] = make(20 * MIB);
    for (int i = 0; i < COUNT; i++)
        must(aclrtFreePhysical(idle[i]));
    nanosleep(&nap, NULL);
    if (!strcmp(next, "free")) {
        must(aclrtFreePhysical(goes));
        live -= 40 * MIB;
    } else if (!strcmp(next, "make")) {
        fresh = make(6 * MIB);
        live += 6 * MIB;
    } else {
        must(aclrtMalloc(&p, 2 * MIB, ACL_MEM_MALLOC_HUGE_FIRST));
        live += 2 * MIB;
    }
    size_t used = given_out();
    ok(used >= live && used <= live + live / 4 + 64 * MIB,
       "after a rest and a %s %zu MiB are the vendor's, %zu live", next, used / MIB, live / MIB);
    must(aclrtFreePhysical(stays));
    must(p ? aclrtFree(p) : ACL_SUCCESS);
    must(fresh ? aclrtFreePhysical(fresh) : ACL_SUCCESS);
}

int main(int argc, char **argv)
{
    const char *part = argc > 1 ? argv[1] : "";

    counted = (long long (*)(const char *))dlsym(dlopen("libascendcl.so", RTLD_NOW), "memsim_count");
    plan(0);
    begin();
    if (!strcmp(part, "loop"))
        loop();
    else if (!strcmp(part, "never"))
        never();
    else if (!strcmp(part, "after"))
        after_free();
    else if (!strcmp(part, "late"))
        late_work();
    else if (!strcmp(part, "short"))
        short_of_memory();
    else if (!strcmp(part, "keep"))
        keep((unsigned)atoi(argv[2]));
    else if (!strcmp(part, "limit"))
        limit();
    else if (!strcmp(part, "rest"))
        rest(argv[2]);
    else if (!strcmp(part, "contents"))
        contents((unsigned)strtoul(argv[2], NULL, 16), (unsigned)strtoul(argv[3], NULL, 16));
    else
        reset();
    return done();
}
