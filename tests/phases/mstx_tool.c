/* mstx_tool.c - a profiler that is MSTX's injection: it is loaded like any library, and MSTX finds it by
 * name. It counts ranges that end under the number and in the domain that it gave them. With MSTX_TOOL=idle
 * it answers nothing, as the vendor's does while nobody profiles. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "vendor/abi/mstx.h"

int InitInjectionMstx(ms_mstx_tables_t tables);
unsigned mstx_tool_ranges(void);
unsigned mstx_tool_faults(void);

enum { RANGES = 1 << 16, TOOL = 0x1000 };
static _Atomic uint64_t latest;
static atomic_uchar open[RANGES];
static atomic_uint ended, faults;
static int domain_of_ours, is_idle;

static void mark(const char *message, void *stream)
{
    (void)message, (void)stream;
}

static uint64_t start(const char *message, void *stream)
{
    (void)message, (void)stream;
    if (is_idle)
        return 0;
    uint64_t id = ++latest;
    open[id % RANGES] = 1;
    return id;
}

static void end(uint64_t id)
{
    if (is_idle ? id != 0 : id > latest || !atomic_exchange(&open[id % RANGES], 0))
        faults++;
    else
        ended++;
}

static void tool_id(uint64_t *id_p)
{
    *id_p = TOOL;
}

static void *create(const char *name)
{
    (void)name;
    return is_idle ? NULL : &domain_of_ours;
}

static void destroy(void *domain)
{
    if (domain != &domain_of_ours)
        faults++;
}

static void domain_mark(void *domain, const char *message, void *stream)
{
    destroy(domain);
    mark(message, stream);
}

static uint64_t domain_start(void *domain, const char *message, void *stream)
{
    destroy(domain);
    return start(message, stream);
}

static void domain_end(void *domain, uint64_t id)
{
    destroy(domain);
    end(id);
}

int InitInjectionMstx(ms_mstx_tables_t tables)
{
    const char *how = getenv("MSTX_TOOL");
    ms_mstx_function_t **table;
    unsigned size;
    is_idle = how && strcmp(how, "idle") == 0;
    if (tables(MS_MSTX_MODULE_CORE, &table, &size) != MS_MSTX_SUCCESS)
        return MS_MSTX_FAIL;
    *table[MS_MSTX_MARK_A] = (ms_mstx_function_t)mark;
    *table[MS_MSTX_RANGE_START_A] = (ms_mstx_function_t)start;
    *table[MS_MSTX_RANGE_END] = (ms_mstx_function_t)end;
    *table[MS_MSTX_GET_TOOL_ID] = (ms_mstx_function_t)tool_id;
    if (tables(MS_MSTX_MODULE_DOMAIN, &table, &size) != MS_MSTX_SUCCESS)
        return MS_MSTX_FAIL;
    *table[MS_MSTX_DOMAIN_CREATE_A] = (ms_mstx_function_t)create;
    *table[MS_MSTX_DOMAIN_DESTROY] = (ms_mstx_function_t)destroy;
    *table[MS_MSTX_DOMAIN_MARK_A] = (ms_mstx_function_t)domain_mark;
    *table[MS_MSTX_DOMAIN_RANGE_START_A] = (ms_mstx_function_t)domain_start;
    *table[MS_MSTX_DOMAIN_RANGE_END] = (ms_mstx_function_t)domain_end;
    return MS_MSTX_SUCCESS;
}

unsigned mstx_tool_ranges(void)
{
    return ended;
}

unsigned mstx_tool_faults(void)
{
    return faults;
}
