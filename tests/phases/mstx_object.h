/* mstx_object.h - what an object with MSTX compiled in does: at the first call it has InitInjectionMstx fill
 * in the places of its functions, which it finds among all that is loaded, or in the library that
 * MSTX_INJECTION_PATH names. Facts of the public header ms_tools_ext.h. MSTX is what its functions are:
 * static, unless the includer says otherwise. */
#ifndef MS_TESTS_PHASES_MSTX_OBJECT_H
#define MS_TESTS_PHASES_MSTX_OBJECT_H

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

#include "vendor/abi/mstx.h"

#ifndef MSTX
#define MSTX __attribute__((unused)) static
#endif

static void mstx_unset(void)
{
}

static ms_mstx_function_t mstx_core[5] = {NULL, mstx_unset, mstx_unset, mstx_unset, mstx_unset};
static ms_mstx_function_t mstx_domain[6] = {NULL, mstx_unset, mstx_unset, mstx_unset, mstx_unset, mstx_unset};
static ms_mstx_function_t *mstx_core_table[6], *mstx_domain_table[7];
static pthread_once_t mstx_once = PTHREAD_ONCE_INIT;

static int mstx_tables(int module, ms_mstx_function_t ***table_p, unsigned *size_p)
{
    *table_p = module == MS_MSTX_MODULE_CORE ? mstx_core_table : mstx_domain_table;
    *size_p = module == MS_MSTX_MODULE_CORE ? 5 : 6;
    return module == MS_MSTX_MODULE_CORE || module == MS_MSTX_MODULE_DOMAIN ? MS_MSTX_SUCCESS : MS_MSTX_FAIL;
}

static void mstx_begin(void)
{
    const char *path = getenv("MSTX_INJECTION_PATH");
    for (int i = 1; i < 5; i++)
        mstx_core_table[i] = &mstx_core[i];
    for (int i = 1; i < 6; i++)
        mstx_domain_table[i] = &mstx_domain[i];
    ms_mstx_init_t init = (ms_mstx_init_t)dlsym(path ? dlopen(path, RTLD_LAZY) : NULL, "InitInjectionMstx");
    int failed = !init || init(mstx_tables) != MS_MSTX_SUCCESS;
    for (int i = 1; i < 5; i++)
        mstx_core[i] = failed || mstx_core[i] == mstx_unset ? NULL : mstx_core[i];
    for (int i = 1; i < 6; i++)
        mstx_domain[i] = failed || mstx_domain[i] == mstx_unset ? NULL : mstx_domain[i];
}

static ms_mstx_function_t mstx_function(const ms_mstx_function_t *functions, int place)
{
    pthread_once(&mstx_once, mstx_begin);
    return functions[place];
}

MSTX void mstxMarkA(const char *message, void *stream)
{
    ms_mstx_function_t function = mstx_function(mstx_core, MS_MSTX_MARK_A);
    if (function)
        ((void (*)(const char *, void *))function)(message, stream);
}

MSTX uint64_t mstxRangeStartA(const char *message, void *stream)
{
    ms_mstx_function_t function = mstx_function(mstx_core, MS_MSTX_RANGE_START_A);
    return function ? ((uint64_t(*)(const char *, void *))function)(message, stream) : 0;
}

MSTX void mstxRangeEnd(uint64_t id)
{
    ms_mstx_function_t function = mstx_function(mstx_core, MS_MSTX_RANGE_END);
    if (function)
        ((void (*)(uint64_t))function)(id);
}

MSTX void mstxGetToolId(uint64_t *id)
{
    ms_mstx_function_t function = mstx_function(mstx_core, MS_MSTX_GET_TOOL_ID);
    *id = 0;
    if (function)
        ((void (*)(uint64_t *))function)(id);
}

MSTX void *mstxDomainCreateA(const char *name)
{
    ms_mstx_function_t function = mstx_function(mstx_domain, MS_MSTX_DOMAIN_CREATE_A);
    return function ? ((void *(*)(const char *))function)(name) : NULL;
}

MSTX void mstxDomainDestroy(void *domain)
{
    ms_mstx_function_t function = mstx_function(mstx_domain, MS_MSTX_DOMAIN_DESTROY);
    if (function)
        ((void (*)(void *))function)(domain);
}

MSTX void mstxDomainMarkA(void *domain, const char *message, void *stream)
{
    ms_mstx_function_t function = mstx_function(mstx_domain, MS_MSTX_DOMAIN_MARK_A);
    if (function)
        ((void (*)(void *, const char *, void *))function)(domain, message, stream);
}

MSTX uint64_t mstxDomainRangeStartA(void *domain, const char *message, void *stream)
{
    ms_mstx_function_t function = mstx_function(mstx_domain, MS_MSTX_DOMAIN_RANGE_START_A);
    return function ? ((uint64_t(*)(void *, const char *, void *))function)(domain, message, stream) : 0;
}

MSTX void mstxDomainRangeEnd(void *domain, uint64_t id)
{
    ms_mstx_function_t function = mstx_function(mstx_domain, MS_MSTX_DOMAIN_RANGE_END);
    if (function)
        ((void (*)(void *, uint64_t))function)(domain, id);
}

#endif
