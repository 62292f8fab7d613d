/* objects.c - the rows of loaded objects, and keeping them up to date.
 *
 * Floor 0. A refresh first looks at what the loader has (objects_scan.c: under the loader's list lock, taken
 * by dl_iterate_phdr, and the lock that keeps forks away), then merges what it saw into the rows (under our
 * lock, and none of the loader's): what it costs is in proportion to what was loaded since, and to what is
 * loaded where something was unloaded. Rows are found by objects_index.c. The loader holds that list lock
 * only while it links an object in or out, never while constructors run, so a thread that a constructor waits
 * for can refresh. */
#include <errno.h>
#include <link.h>
#include <stddef.h>
#include <string.h>

#include "base/thread/guard.h"
#include "base/lock.h"
#include "base/objects/objects.h"
#include "base/objects/objects_index.h"
#include "base/objects/objects_scan.h"
#include "base/thread/aux_stack.h"
#include "base/store/store.h"
#include "base/thread/slow_path.h"

_Static_assert(sizeof(struct ms_object) == MS_TABLE_OBJECTS_ROW_BYTES, "a row of the ledger");

static struct ms_lock merge_lock = MS_LOCK_INIT(MS_RANK_MODULE);
static struct ms_lock loader_lock = MS_LOCK_INIT(MS_RANK_LOADER);
static MS_TLS bool held_for_fork;

/* Under merge_lock: what was merged last; the rows of what is loaded, and in which look at all each was seen
 * last. */
static struct {
    struct ms_objects_since since;
    uint32_t live[MS_TABLE_OBJECTS_ROWS], live_count;
    uint32_t seen_in[MS_TABLE_OBJECTS_ROWS], looks;
} merged;

/* Some row was ever unloaded; and the index has every row, or else all are gone through. */
static _Atomic bool any_gone, is_indexed;

/* with those of `merged`, for readers without the lock */
struct ms_objects_counts ms_objects_counts = {.changes = 1};

int ms_each_object(int (*callback)(struct dl_phdr_info *, size_t, void *), void *arg)
{
    int result;

    ms_lock(&loader_lock);
    result = dl_iterate_phdr(callback, arg);
    ms_unlock(&loader_lock);
    return result;
}

int ms_each_object_since(struct ms_objects_since *since, void (*anew)(void *arg),
                         int (*callback)(struct dl_phdr_info *, size_t, void *), void *arg)
{
    ms_lock(&loader_lock);
    int result = ms_objects_go_since(since, anew, callback, arg);
    ms_unlock(&loader_lock);
    return result;
}

/* Not without bound: the holder may wait for the loader, and the loader for whoever forks. */
void ms_objects_before_fork(void)
{
    held_for_fork = ms_thread.depth == 0 && ms_lock_within(&loader_lock, 1000);
}

void ms_objects_after_fork_parent(void)
{
    if (held_for_fork)
        ms_unlock(&loader_lock);
    held_for_fork = false;
}

void ms_objects_after_fork_child(void)
{
    ms_lock_reset(&loader_lock);
    held_for_fork = false;
}

static struct ms_object *row_at(uint32_t index)
{
    return &MS_ROWS(OBJECTS, struct ms_object)[index];
}

/* The first object is enough to see the loader's counters. */
static int read_state_word(struct dl_phdr_info *info, size_t bytes, void *arg)
{
    struct ms_objects_since *state_word = arg;
    (void)bytes;
    *state_word = (struct ms_objects_since){info->dlpi_adds, info->dlpi_subs, NULL};
    return 1;
}

static bool overlaps(const struct ms_object *a, const struct ms_object *b)
{
    return a->start < b->end && b->start < a->end;
}

/* The rows of objects that lie, or lay, in the place where an object appears. */
struct place {
    const struct ms_object *object;
    uint32_t newest, generation; /* of the rows there; MS_OBJECTS_NONE; the next one's */
};

static void objects_visit(void *arg, uint32_t index)
{
    struct place *place = arg;
    const struct ms_object *row = row_at(index);
    if (!overlaps(row, place->object))
        return;
    if (place->newest == MS_OBJECTS_NONE || index > place->newest)
        place->newest = index;
    if (row->generation >= place->generation)
        place->generation = row->generation + 1;
}

/* A row that is hidden by newer ones is of an earlier generation than each of them. */
static void objects_look_up(struct place *place)
{
    uint32_t count = ms_object_count();
    if (atomic_load_explicit(&is_indexed, memory_order_relaxed) || !count) {
        ms_objects_index_each(place->object->start, place->object->end, objects_visit, place);
        return;
    }
    for (uint32_t i = 0; i < count; i++)
        objects_visit(place, i);
}

/* Its row; MS_OBJECTS_NONE if there is no room. */
static uint32_t objects_append(const struct ms_object *object, uint32_t generation)
{
    uint32_t count = ms_object_count();
    if (!ms_table_reserve(MS_TABLE_OBJECTS, count + 1)) {
        ms_table_drop(MS_TABLE_OBJECTS);
        return MS_OBJECTS_NONE;
    }
    ms_store_hold();
    struct ms_object *row = row_at(count);
    memcpy(row, object, sizeof *row);
    row->generation = generation;
    ms_table_publish(MS_TABLE_OBJECTS, count + 1);
    ms_store_release();
    if (!count)
        atomic_store_explicit(&is_indexed, true, memory_order_release);
    if (!ms_objects_index_put(object->start, object->end, count))
        atomic_store_explicit(&is_indexed, false, memory_order_release);
    return count;
}

static void set_gone(struct ms_object *row, bool gone)
{
    if (atomic_load_explicit(&row->gone, memory_order_relaxed) == gone)
        return;
    ms_store_hold();
    atomic_store_explicit(&row->gone, gone, memory_order_relaxed);
    ms_store_release();
    if (gone)
        atomic_store_explicit(&any_gone, true, memory_order_release);
}

static void note_live(uint32_t index)
{
    merged.seen_in[index] = merged.looks;
    set_gone(row_at(index), false);
    if (merged.live_count < MS_TABLE_OBJECTS_ROWS)
        merged.live[merged.live_count++] = index;
}

/* The row is the newest at its place, and of this very object, perhaps loaded again after it was gone; or a
 * new one. */
static void merge_object(const struct ms_object *object)
{
    struct place place = {object, MS_OBJECTS_NONE, 0};
    objects_look_up(&place);
    uint32_t index = place.newest;
    if (index == MS_OBJECTS_NONE || !ms_object_is(row_at(index), object))
        index = objects_append(object, place.generation);
    if (index != MS_OBJECTS_NONE && (merged.seen_in[index] != merged.looks || row_at(index)->gone))
        note_live(index);
}

/* Objects that were loaded and were not seen in a look at all of them are gone. */
static void merge_all(const struct ms_objects_scan *look)
{
    uint32_t before = merged.live_count;
    merged.live_count = 0;
    merged.looks++;
    for (size_t i = 0; i < look->seen_count; i++)
        merged.seen_in[look->seen[i]] = merged.looks;
    for (uint32_t i = 0; i < before; i++) {
        uint32_t index = merged.live[i];
        if (merged.seen_in[index] != merged.looks)
            set_gone(row_at(index), true);
    }
    for (size_t i = 0; i < look->seen_count; i++)
        note_live(look->seen[i]);
}

static void objects_merge(const struct ms_objects_scan *look)
{
    if (look->is_all)
        merge_all(look);
    for (size_t i = 0; i < look->count; i++)
        merge_object(&look->rows[i]);
    merged.since = look->since;
    atomic_store_explicit(&ms_objects_counts.adds_seen, look->since.adds, memory_order_relaxed);
    atomic_store_explicit(&ms_objects_counts.subs_seen, look->since.subs, memory_order_relaxed);
}

static bool is_up_to_date(void)
{
    struct ms_objects_since state_word = {0};
    ms_each_object(read_state_word, &state_word);
    return state_word.adds == atomic_load_explicit(&ms_objects_counts.adds_seen, memory_order_relaxed) &&
           state_word.subs == atomic_load_explicit(&ms_objects_counts.subs_seen, memory_order_relaxed);
}

/* Paths are long: on an auxiliary stack. */
static void renew(void *arg)
{
    struct ms_objects_scan look;
    (void)arg;
    ms_lock(&merge_lock);
    ms_objects_learn_executable();
    struct ms_objects_since before = merged.since;
    ms_unlock(&merge_lock);
    if (!ms_objects_scan(&look, &before))
        return;
    ms_lock(&merge_lock);
    /* Another thread may have merged a later look meanwhile, or one that this does not go on from. */
    if (look.since.adds + look.since.subs > merged.since.adds + merged.since.subs)
        objects_merge(&look);
    ms_unlock(&merge_lock);
    ms_objects_scan_end(&look);
}

void ms_objects_refresh(void)
{
    int saved_errno = errno;
    uint64_t seen = atomic_load_explicit(&ms_objects_counts.changes, memory_order_acquire);
    if (!is_up_to_date())
        ms_aux_stack_call_anyway(renew, NULL);
    atomic_store_explicit(&ms_objects_counts.changes_seen, seen, memory_order_release);
    errno = saved_errno;
}

void ms_objects_changed(void)
{
    atomic_fetch_add_explicit(&ms_objects_counts.changes, 1, memory_order_release);
    ms_slow_path_forget();
}

bool ms_objects_any_gone(void)
{
    return atomic_load_explicit(&any_gone, memory_order_relaxed);
}

/* Whatever lies there now, it is not what is gone. */
uint32_t ms_object_generation(uint64_t address)
{
    const struct ms_object *row = ms_object_at(address, &(uint32_t){0});
    return row ? row->generation + atomic_load_explicit(&row->gone, memory_order_relaxed) : 0;
}

static bool holds(const struct ms_object *row, uint64_t address)
{
    return address >= row->start && address < row->end;
}

const struct ms_object *ms_object_at(uint64_t address, uint32_t *index_p)
{
    if (atomic_load_explicit(&is_indexed, memory_order_acquire)) {
        uint32_t index = ms_objects_index_find(address);
        if (index == MS_OBJECTS_NONE || !holds(row_at(index), address))
            return NULL;
        *index_p = index;
        return row_at(index);
    }
    for (uint32_t i = ms_object_count(); i-- > 0;) {
        if (holds(row_at(i), address)) {
            *index_p = i;
            return row_at(i);
        }
    }
    return NULL;
}

const struct ms_object *ms_object_of(uint64_t address, uint32_t generation, uint32_t *index_p)
{
    const struct ms_object *newest = ms_object_at(address, index_p);
    if (!newest || newest->generation == generation)
        return newest;
    for (uint32_t i = *index_p; i-- > 0;) {
        if (row_at(i)->generation == generation && holds(row_at(i), address)) {
            *index_p = i;
            return row_at(i);
        }
    }
    return NULL;
}

const struct ms_object *ms_object(uint32_t index)
{
    return index < ms_object_count() ? row_at(index) : NULL;
}

uint32_t ms_object_count(void)
{
    return (uint32_t)ms_table_rows(MS_TABLE_OBJECTS);
}

uint32_t ms_objects_dropped(void)
{
    return (uint32_t)ms_table_dropped(MS_TABLE_OBJECTS);
}

void ms_objects_reset(void)
{
    atomic_store_explicit(&any_gone, false, memory_order_relaxed);
    atomic_store_explicit(&is_indexed, false, memory_order_relaxed);
    ms_objects_index_reset();
    merged.since = (struct ms_objects_since){0};
    merged.live_count = 0;
    atomic_store_explicit(&ms_objects_counts.adds_seen, 0, memory_order_relaxed);
    atomic_store_explicit(&ms_objects_counts.subs_seen, 0, memory_order_relaxed);
    ms_objects_changed();
    ms_lock_reset(&merge_lock);
    ms_lock_reset(&loader_lock); /* in a child of a raw clone nobody else has */
}
MS_AT_FORK(MS_FORK_BASE, ms_objects_reset);
