/*
 * facts_lookups.c: question 2: what cuGetProcAddress answers for every function of the public headers, beside
 * dlsym.
 */
#include "facts.h"

#include <dlfcn.h>
#include <string.h>

static const struct known {
    const char *name;
    int version;
    unsigned per_thread;
    const char *symbol;
} known[] = {
#define X(name, version, per_thread, symbol) {#name, version, per_thread, #symbol},
#include "sim/cuda/exports.def"
#undef X
};

static void *look_up(const char *name, int version, unsigned flags)
{
    void *p = NULL;

    return cuGetProcAddress_v2(name, &p, version, flags, NULL) == CUDA_SUCCESS ? p : NULL;
}

static void compare(void *driver)
{
    size_t found = 0, equal = 0, used = 0;
    char differ[4096] = "";

    for (size_t i = 0; i < KIT_COUNT(known); i++) {
        unsigned flags =
            known[i].per_thread ? CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM : CU_GET_PROC_ADDRESS_DEFAULT;
        void *p = look_up(known[i].name, known[i].version, flags), *exported = dlsym(driver, known[i].symbol);
        found += p != NULL;
        equal += p != NULL && p == exported;
        if (p && p != exported && used < sizeof differ - 100)
            used += (size_t)snprintf(differ + used, sizeof differ - used, "%s%s@%d%s", used ? "," : "",
                                     known[i].name, known[i].version, exported ? "" : "(not exported)");
    }
    fact(lookups_found, "%zu of %zu", found, KIT_COUNT(known));
    fact(lookups_equal_dlsym, "%zu of %zu", equal, found);
    fact(lookups_differ, "%s", used ? differ : "none");
}

void facts_lookups(int argc, char **argv)
{
    void *p = (void *)1, *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);

    (void)argc;
    (void)argv;
    if (!driver)
        kit_give_up("%s", dlerror());
    kit_begin();
    int status = (int)cuGetProcAddress_v2("", &p, 0, 0, NULL);
    fact(empty_name_answers, "%s", fact_status(status, p));
    compare(driver);
    fact(self_lookup_is_v2, "%s",
         look_up("cuGetProcAddress", 12000, 0) == dlsym(driver, "cuGetProcAddress_v2") ? "yes" : "no");
    p = NULL;
    status = cudaGetDriverEntryPointByVersion("cuMemAlloc", &p, 3020, 0, NULL);
    if (status == 0)
        fact(entry_point_equals_lookup, "%s", p == look_up("cuMemAlloc", 3020, 0) ? "yes" : "no");
    else
        fact(entry_point_equals_lookup, "- cudaGetDriverEntryPointByVersion answers %d", status);
    p = look_up("cuMemAllocAsync", 11020, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
    fact(per_thread_lookup_is_twin, "%s", p && p == dlsym(driver, "cuMemAllocAsync_ptsz") ? "yes" : "no");
}
