/* footprints.c - see footprints.h.
 *
 * Floor 2. Takings of one place in one context are one row. Which module has what of it is this process's own
 * to know: a list in chunks of the arena, bounded, since modules that are compiled as the program runs come
 * and go without an end. One lock (MS_RANK_TIMELINE). */
#include <string.h>

#include "quota/quota.h"
#include "base/arena.h"
#include "record/footprint/footprints.h"

enum { CHUNK = 128, MODULES_MAX = 1 << 16 };
/* The most that the quota believes one to take: a context takes 523 MiB (docs/user/hardware/facts.md, 7.13).
 */
#define BELIEVED_BYTES ((uint64_t)544 << 20)

/* One module, and what it has of a row. */
struct module {
    struct module *next;
    uint64_t handle, bytes;
    uint32_t row;
};

static struct ms_lock lock = MS_LOCK_INIT(MS_RANK_TIMELINE);
static struct module *modules, *spare;
static uint32_t module_count;

static struct ms_footprint_row *rows_of(void)
{
    return MS_ROWS(FOOTPRINTS, struct ms_footprint_row);
}

static uint64_t get(const _Atomic uint64_t *value)
{
    return atomic_load_explicit(value, memory_order_relaxed);
}

static void footprints_put(_Atomic uint64_t *value, uint64_t to)
{
    atomic_store_explicit(value, to, memory_order_relaxed);
}

static bool is_row_of(const struct ms_footprint_row *row, const struct ms_footprint_event *taking)
{
    return taking->kind == MS_FOOTPRINT_MODULE && row->kind == MS_FOOTPRINT_MODULE &&
           row->api == taking->api && row->context == taking->context && row->device == taking->device &&
           row->stack == taking->stack;
}

/* The row of this place and context, a new one if there is none; UINT32_MAX without room. */
static uint32_t row_for(const struct ms_footprint_event *taking)
{
    uint32_t count = (uint32_t)ms_table_rows(MS_TABLE_FOOTPRINTS);
    struct ms_footprint_row *row;
    for (uint32_t i = 0; i < count; i++) {
        if (is_row_of(&rows_of()[i], taking))
            return i;
    }
    if (!ms_table_reserve(MS_TABLE_FOOTPRINTS, (uint64_t)count + 1))
        return UINT32_MAX;
    row = &rows_of()[count];
    row->kind = taking->kind;
    row->context = taking->context;
    row->first_ns = ms_ledger_now();
    row->stack = taking->stack;
    row->thread = taking->thread;
    row->device = taking->device;
    row->api = taking->api;
    return count;
}

/* Remembers which module it was; false without memory, or of too many. */
static bool footprints_remember(uint64_t handle, uint64_t bytes, uint32_t row)
{
    struct module *module = spare;
    if (!module && module_count < MODULES_MAX && (module = ms_arena_alloc(CHUNK * sizeof *module)) != NULL) {
        module_count += CHUNK;
        for (unsigned i = 0; i < CHUNK; i++)
            module[i].next = i + 1 < CHUNK ? &module[i + 1] : NULL;
    }
    if (!module)
        return false;
    spare = module->next;
    *module = (struct module){.next = modules, .handle = handle, .bytes = bytes, .row = row};
    modules = module;
    return true;
}

/* As much of a row as the limit counts. What a neighbour took of the device before the first context, or just
 * when a module was loaded, cannot be told from what these took. */
static uint64_t believed(const struct ms_footprint_row *row)
{
    uint64_t bytes = get(&row->bytes), most = get(&row->count) * BELIEVED_BYTES;
    return bytes < most ? bytes : most;
}

static void tell_quota(const struct ms_footprint_row *row, uint64_t before)
{
    uint64_t now = believed(row);
    if (now > before)
        ms_quota_came(row->device, now - before);
    else
        ms_quota_went(row->device, before - now);
}

static void count_in(struct ms_footprint_row *row, const struct ms_footprint_event *taking)
{
    uint64_t before = believed(row);
    /* what is now is no more than what ever was, whenever the process is killed */
    atomic_store_explicit(&row->total_bytes, get(&row->total_bytes) + taking->bytes, memory_order_release);
    atomic_store_explicit(&row->total_count, get(&row->total_count) + 1, memory_order_release);
    atomic_store_explicit(&row->bytes, get(&row->bytes) + taking->bytes, memory_order_release);
    atomic_store_explicit(&row->count, get(&row->count) + 1, memory_order_release);
    footprints_put(&row->ended_ns, 0);
    if (!taking->is_exact)
        atomic_store_explicit(&row->is_inferred, 1, memory_order_relaxed);
    tell_quota(row, before);
}

void ms_ledger_footprint_grew(const struct ms_footprint_event *taking)
{
    uint32_t number;
    ms_events_touch();
    ms_lock(&lock);
    number = row_for(taking);
    if (number == UINT32_MAX ||
        (taking->module && !footprints_remember(taking->module, taking->bytes, number))) {
        ms_table_drop(MS_TABLE_FOOTPRINTS);
    } else {
        count_in(&rows_of()[number], taking);
        atomic_store_explicit(&rows_of()[number].state, 1, memory_order_release);
        if (number == ms_table_rows(MS_TABLE_FOOTPRINTS))
            ms_table_publish(MS_TABLE_FOOTPRINTS, (uint64_t)number + 1);
    }
    ms_unlock(&lock);
}

static void count_out(struct ms_footprint_row *row, uint64_t bytes, uint64_t count)
{
    /* what was inferred may have been less (ms_ledger_footprint_shrank) */
    uint64_t before = believed(row);
    footprints_put(&row->bytes, get(&row->bytes) - (bytes < get(&row->bytes) ? bytes : get(&row->bytes)));
    footprints_put(&row->count, get(&row->count) - count);
    tell_quota(row, before);
    if (!get(&row->count))
        footprints_put(&row->ended_ns, ms_ledger_now());
}

/* Takes out of the list what has that handle, or, without one, what belongs to rows of that context. */
static void footprints_forget(uint64_t handle, uint64_t context)
{
    for (struct module **link = &modules, *module; (module = *link) != NULL;) {
        struct ms_footprint_row *row = &rows_of()[module->row];
        if (handle ? module->handle != handle : row->context != context) {
            link = &module->next;
            continue;
        }
        count_out(row, module->bytes, 1);
        *link = module->next;
        module->next = spare;
        spare = module;
    }
}

void ms_ledger_module_gone(uint64_t module)
{
    if (!module)
        return;
    ms_lock(&lock);
    footprints_forget(module, 0);
    ms_unlock(&lock);
}

void ms_ledger_footprints_died(uint64_t context)
{
    if (!context)
        return;
    ms_lock(&lock);
    footprints_forget(0, context);
    for (uint32_t i = 0; i < ms_table_rows(MS_TABLE_FOOTPRINTS); i++) {
        struct ms_footprint_row *row = &rows_of()[i];
        if (row->context == context && get(&row->count))
            count_out(row, get(&row->bytes), get(&row->count));
    }
    ms_unlock(&lock);
}

uint64_t ms_ledger_taken(int device)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < ms_table_rows(MS_TABLE_FOOTPRINTS); i++) {
        if (rows_of()[i].device == device)
            bytes += get(&rows_of()[i].bytes);
    }
    return bytes;
}

static bool is_inferred(const struct ms_footprint_row *row)
{
    return atomic_load_explicit(&row->is_inferred, memory_order_relaxed) && get(&row->bytes);
}

bool ms_ledger_taken_is_inferred(int device)
{
    for (uint32_t i = 0; i < ms_table_rows(MS_TABLE_FOOTPRINTS); i++) {
        if (rows_of()[i].device == device && is_inferred(&rows_of()[i]))
            return true;
    }
    return false;
}

uint64_t ms_ledger_taken_least(int device)
{
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; i < ms_table_rows(MS_TABLE_FOOTPRINTS); i++) {
        const struct ms_footprint_row *row = &rows_of()[i];
        if (row->device == device && row->kind == MS_FOOTPRINT_CONTEXT && get(&row->total_bytes) < least)
            least = get(&row->total_bytes);
    }
    return least;
}

bool ms_ledger_taken_by(int device, uint64_t context)
{
    for (uint32_t i = 0; i < ms_table_rows(MS_TABLE_FOOTPRINTS); i++) {
        const struct ms_footprint_row *row = &rows_of()[i];
        if (row->device == device && row->kind == MS_FOOTPRINT_CONTEXT && row->context == context)
            return true;
    }
    return false;
}

uint64_t ms_ledger_footprint_shrank(int device, uint64_t bytes)
{
    uint64_t left = bytes;
    ms_lock(&lock);
    for (uint32_t i = 0; i < ms_table_rows(MS_TABLE_FOOTPRINTS) && left; i++) {
        struct ms_footprint_row *row = &rows_of()[i];
        uint64_t less = get(&row->bytes) < left ? get(&row->bytes) : left, before = believed(row);
        if (row->device != device || !is_inferred(row))
            continue;
        footprints_put(&row->bytes, get(&row->bytes) - less);
        footprints_put(&row->total_bytes, get(&row->total_bytes) - less);
        tell_quota(row, before);
        left -= less;
    }
    ms_unlock(&lock);
    return bytes - left;
}

bool ms_footprints_copy(struct ms_footprint_row *rows, uint32_t room, uint32_t *count_p, unsigned timeout_ms)
{
    uint32_t there = (uint32_t)ms_table_rows(MS_TABLE_FOOTPRINTS);
    *count_p = 0;
    if (!there)
        return true;
    if (!ms_lock_within(&lock, timeout_ms))
        return false;
    for (uint32_t i = 0; i < there && *count_p < room; i++) {
        if (atomic_load_explicit(&rows_of()[i].state, memory_order_acquire) == 1)
            memcpy((void *)&rows[(*count_p)++], (const void *)&rows_of()[i], sizeof *rows);
    }
    ms_unlock(&lock);
    return true;
}

static void footprints_reset(void)
{
    ms_lock_reset(&lock);
    modules = spare = NULL;
    module_count = 0;
}
MS_AT_FORK(MS_FORK_RECORD, footprints_reset);
