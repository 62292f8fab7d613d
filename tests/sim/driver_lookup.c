/* The simulated driver: every export exists, every row of the lookup table leads to the export it names. */
#include <dlfcn.h>

#include "driver.h"

static const struct {
    const char *name;
    int version;
    int per_thread;
    const char *symbol;
} rows[] = {
#define X(name, version, twin, symbol) {#name, version, twin, #symbol},
#include "sim/cuda/exports.def"
#undef X
};

static void *own(const char *name)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    void *function = library ? dlsym(library, name) : NULL;

    if (library)
        dlclose(library);
    return function;
}

static void exports(void)
{
    size_t missing = 0, count = sizeof rows / sizeof rows[0];

    for (size_t i = 0; i < count; i++)
        if (!own(rows[i].symbol)) {
            missing++;
            diag("%s is not exported", rows[i].symbol);
        }
    is_u64(count, 637, "the list is that of the real library");
    is_u64(missing, 0, "every function of the list is exported");
}

static void table(void)
{
    size_t wrong = 0;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
        void *function = NULL;
        cuuint64_t flags = rows[i].per_thread ? CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM : 0;
        CUresult status = cuGetProcAddress_v2(rows[i].name, &function, rows[i].version, flags, &found);
        if (status || found != CU_GET_PROC_ADDRESS_SUCCESS || !function || function != own(rows[i].symbol)) {
            wrong++;
            diag("%s %d %d does not lead to %s", rows[i].name, rows[i].version, rows[i].per_thread,
                 rows[i].symbol);
        }
    }
    is_u64(wrong, 0, "each of %zu rows leads to its export", sizeof rows / sizeof rows[0]);
}

static void *look(const char *name, int version, cuuint64_t flags)
{
    void *function = (void *)0x1;

    must(cuGetProcAddress_v2(name, &function, version, flags, NULL));
    return function;
}

static void semantics(void)
{
    CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SUCCESS;
    void *function = (void *)0x1;

    is_ptr(look("cuMemAlloc", 2000, 0), own("cuMemAlloc"), "an old version is an old function");
    is_ptr(look("cuMemAlloc", 3019, 0), own("cuMemAlloc"), "until the new one came");
    is_ptr(look("cuMemAlloc", 13000, 0), own("cuMemAlloc_v2"), "the newest that is not too new");
    is_ptr(look("cuMemAllocAsync", 12000, 2), own("cuMemAllocAsync_ptsz"), "per-thread twins on demand");
    is_ptr(look("cuMemAllocAsync", 12000, 1), own("cuMemAllocAsync"), "not with the legacy flag");
    is_ptr(look("cuMemFree", 12000, 2), own("cuMemFree_v2"), "where there is no twin the plain one serves");
    is_ptr(look("cuGetProcAddress", 11030, 0), own("cuGetProcAddress"),
           "the lookup finds itself, of four arguments");
    is_ptr(look("cuGetProcAddress", 12000, 0), own("cuGetProcAddress_v2"), "and of five");
    answers(cuGetProcAddress_v2("", &function, 0, 0, NULL), CUDA_SUCCESS);
    is_ptr(function, NULL, "nothing is called by no name");
    answers(cuGetProcAddress_v2("cuNoSuchThing", &function, 13000, 0, &found), CUDA_SUCCESS);
    is_int(found, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND, "an unknown name is not found");
    answers(cuGetProcAddress_v2("cuMemAllocAsync", &function, 11010, 0, &found), CUDA_SUCCESS);
    is_int(found, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT, "a later function is not for that version");
    is_ptr(function, NULL, "and has no address");
    answers(cuGetProcAddress_v2("cuInit", &function, 13001, 0, &found), CUDA_ERROR_INVALID_VALUE);
    answers(cuGetProcAddress_v2("cuInit", &function, 12000, 8, &found), CUDA_ERROR_INVALID_VALUE);
    answers(cuGetProcAddress_v2(NULL, &function, 12000, 0, &found), CUDA_ERROR_INVALID_VALUE);
    answers(cuGetProcAddress("cuNoSuchThing", &function, 13000, 0), CUDA_ERROR_NOT_FOUND);
    answers(cuGetProcAddress("cuInit", &function, 13000, 0), CUDA_SUCCESS);
    is_ptr(function, own("cuInit"), "the older lookup finds the same");
}

static void unsupported(void)
{
    const char *path = getenv("MEMSIM_LOG");
    CUmulticastObjectProp prop = {0};
    size_t granularity;
    char line[256] = "";
    const void *table_p;
    CUuuid id = {{0}};

    begin();
    answers(cuMulticastGetGranularity(&granularity, &prop, CU_MULTICAST_GRANULARITY_MINIMUM),
            CUDA_ERROR_NOT_SUPPORTED);
    answers(cuGetExportTable(&table_p, &id), CUDA_ERROR_NOT_FOUND);
    FILE *log = fopen(path, "r");
    ok(log && fgets(line, sizeof line, log) && strstr(line, " unsupported cuMulticastGetGranularity 1"),
       "the call is in MEMSIM_LOG");
    if (log)
        fclose(log);
}

int main(void)
{
    char path[512];
    const char *dir = getenv("TEST_TMP");

    plan(0);
    snprintf(path, sizeof path, "%s/memsim.%d.log", dir ? dir : "/tmp", (int)getpid());
    setenv("MEMSIM_LOG", path, 1);
    exports();
    table();
    semantics();
    unsupported();
    unlink(path);
    return done();
}
