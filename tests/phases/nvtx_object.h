/* nvtx_object.h - what an object with NVTX compiled in does at its first range: it loads the library that
 * NVTX_INJECTION64_PATH names and has it fill in the places of its functions. Facts of NVTX 3's headers;
 * where those are installed, tests/phases/phases.py compiles the same program with them instead. */
#ifndef MS_TESTS_PHASES_NVTX_OBJECT_H
#define MS_TESTS_PHASES_NVTX_OBJECT_H

#include <dlfcn.h>
#include <stdlib.h>

#include "vendor/abi/nvtx.h"

typedef struct ms_nvtx_attributes nvtxEventAttributes_t;
typedef void *nvtxDomainHandle_t, *nvtxStringHandle_t;
typedef uint64_t nvtxRangeId_t;

static ms_nvtx_function_t nvtx_core[16], nvtx_core2[16];
static ms_nvtx_function_t *nvtx_core_table[16], *nvtx_core2_table[16];

static int nvtx_module(int module, ms_nvtx_function_t ***table_p, unsigned *size_p)
{
    *table_p = module == MS_NVTX_MODULE_CORE ? nvtx_core_table : nvtx_core2_table;
    *size_p = 16;
    return module == MS_NVTX_MODULE_CORE || module == MS_NVTX_MODULE_CORE2;
}

static const void *nvtx_tables(uint32_t table)
{
    static const struct ms_nvtx_callbacks callbacks = {sizeof callbacks, nvtx_module};
    return table == MS_NVTX_TABLE_CALLBACKS ? &callbacks : NULL;
}

static void nvtx_nothing(void)
{
}

static void nvtx_begin_by(const char *name)
{
    const char *path = getenv("NVTX_INJECTION64_PATH");
    void *library = path ? dlopen(path, RTLD_LAZY) : NULL;
    int (*start)(ms_nvtx_tables_t) = library ? (int (*)(ms_nvtx_tables_t))dlsym(library, name) : NULL;
    for (int i = 1; i < 16; i++) {
        nvtx_core[i] = nvtx_core2[i] = nvtx_nothing;
        nvtx_core_table[i] = &nvtx_core[i];
        nvtx_core2_table[i] = &nvtx_core2[i];
    }
    if (start)
        start(nvtx_tables);
}

__attribute__((constructor)) static void nvtx_begin(void)
{
    nvtx_begin_by("InitializeInjectionNvtx2");
}

static inline int nvtxRangePushA(const char *name)
{
    return ((int (*)(const char *))nvtx_core[MS_NVTX_RANGE_PUSH_A])(name);
}

static inline int nvtxRangePop(void)
{
    return ((int (*)(void))nvtx_core[MS_NVTX_RANGE_POP])();
}

static inline uint64_t nvtxRangeStartA(const char *name)
{
    return ((uint64_t(*)(const char *))nvtx_core[MS_NVTX_RANGE_START_A])(name);
}

static inline void nvtxRangeEnd(uint64_t id)
{
    ((void (*)(uint64_t))nvtx_core[MS_NVTX_RANGE_END])(id);
}

static inline void *nvtxDomainCreateA(const char *name)
{
    return ((void *(*)(const char *))nvtx_core2[MS_NVTX_DOMAIN_CREATE_A])(name);
}

static inline void *nvtxDomainRegisterStringA(void *domain, const char *text)
{
    return ((void *(*)(void *, const char *))nvtx_core2[MS_NVTX_DOMAIN_REGISTER_STRING_A])(domain, text);
}

static inline int nvtxDomainRangePushEx(void *domain, const nvtxEventAttributes_t *attributes)
{
    return ((int (*)(void *, const nvtxEventAttributes_t *))nvtx_core2[MS_NVTX_DOMAIN_RANGE_PUSH_EX])(
        domain, attributes);
}

static inline int nvtxDomainRangePop(void *domain)
{
    return ((int (*)(void *))nvtx_core2[MS_NVTX_DOMAIN_RANGE_POP])(domain);
}

static inline void nvtxMarkA(const char *name)
{
    ((void (*)(const char *))nvtx_core[MS_NVTX_MARK_A])(name);
}

#endif
