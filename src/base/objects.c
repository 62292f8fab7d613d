/* objects.c - the rows of loaded objects, and keeping them up to date.
 *
 * Floor 0. A refresh first copies what the loader tells into a private mapping (under the loader's list lock,
 * taken by dl_iterate_phdr, and the lock that keeps forks away), then merges the copy into the rows (under
 * our lock, and none of the loader's). The loader holds that list lock only while it links an object in or
 * out, never while constructors run, so a thread that a constructor waits for can refresh. */
#include "config.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/files.h"
#include "base/guard.h"
#include "base/lock.h"
#include "base/objects.h"
#include "base/spare.h"
#include "base/store.h"
#include "base/unusual.h"

enum { GONE_MAX = 4096, COPY_START = 256 };
_Static_assert(sizeof(struct ms_object) == MS_TABLE_OBJECTS_ROW_BYTES, "a row of the ledger");

/* What the loader counts: objects ever added and removed. */
struct stamp {
    unsigned long long adds, subs;
};

/* The loader's list as copied; `count` goes on counting past `capacity`. */
struct copy {
    struct ms_object *rows;
    size_t count, capacity;
    struct stamp stamp;
};

static struct ms_lock merge_lock = MS_LOCK_INIT(MS_RANK_MODULE);
static struct ms_lock loader_lock = MS_LOCK_INIT(MS_RANK_LOADER);
static MS_TLS bool held_for_fork;
static struct stamp merged; /* under merge_lock */

/* Rows that were ever unloaded, so that the usual process (none) pays one load for it. */
static _Atomic uint32_t gone_rows[GONE_MAX];
static _Atomic uint32_t gone_count;

/* with those of `merged`, for readers without the lock */
struct ms_objects_counts ms_objects_counts = {.changes = 1};

static char executable[MS_OBJECT_PATH_BYTES];

int ms_each_object(int (*callback)(struct dl_phdr_info *, size_t, void *), void *arg)
{
    int result;

    ms_lock(&loader_lock);
    result = dl_iterate_phdr(callback, arg);
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

/* Keeps the end of a path that is too long: the file's name says more than the root. */
static void store_path(char *into, const char *path)
{
    size_t length = strlen(path);
    if (length < MS_OBJECT_PATH_BYTES)
        memcpy(into, path, length + 1);
    else
        snprintf(into, MS_OBJECT_PATH_BYTES, "...%s", path + length - (MS_OBJECT_PATH_BYTES - 4));
}

static void name_object(struct ms_object *row, const char *name)
{
    char absolute[2 * MS_OBJECT_PATH_BYTES];
    size_t length;
    if (!name || !*name) {
        store_path(row->path, executable);
        return;
    }
    if (*name != '/' && strchr(name, '/') && getcwd(absolute, MS_OBJECT_PATH_BYTES)) {
        length = strlen(absolute);
        snprintf(absolute + length, sizeof absolute - length, "/%s",
                 strncmp(name, "./", 2) == 0 ? name + 2 : name);
        name = absolute;
    }
    store_path(row->path, name);
}

/* The GNU build-id among the notes of [notes, notes + bytes). */
static void find_build_id(struct ms_object *row, const char *notes, size_t bytes)
{
    while (bytes >= sizeof(ElfW(Nhdr))) {
        const ElfW(Nhdr) *note = (const ElfW(Nhdr) *)notes;
        size_t name_bytes = ((size_t)note->n_namesz + 3) & ~(size_t)3;
        size_t data_bytes = ((size_t)note->n_descsz + 3) & ~(size_t)3;
        if (name_bytes + data_bytes > bytes - sizeof *note)
            return;
        const char *name = notes + sizeof *note;
        if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && memcmp(name, "GNU", 4) == 0) {
            row->build_id_bytes =
                note->n_descsz < sizeof row->build_id ? (uint8_t)note->n_descsz : sizeof row->build_id;
            memcpy(row->build_id, name + name_bytes, row->build_id_bytes);
            return;
        }
        notes += sizeof *note + name_bytes + data_bytes;
        bytes -= sizeof *note + name_bytes + data_bytes;
    }
}

static bool is_loaded_readable(const struct dl_phdr_info *info, const ElfW(Phdr) * part)
{
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *load = &info->dlpi_phdr[i];
        if (load->p_type == PT_LOAD && (load->p_flags & PF_R) && part->p_vaddr >= load->p_vaddr &&
            part->p_vaddr + part->p_memsz <= load->p_vaddr + load->p_filesz)
            return true;
    }
    return false;
}

static void describe(struct ms_object *row, const struct dl_phdr_info *info)
{
    row->bias = info->dlpi_addr;
    row->start = UINT64_MAX;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        uint64_t start = info->dlpi_addr + part->p_vaddr;
        if (part->p_type == PT_LOAD) {
            row->start = start < row->start ? start : row->start;
            row->end = start + part->p_memsz > row->end ? start + part->p_memsz : row->end;
        } else if (part->p_type == PT_NOTE && part->p_align <= 4 && !row->build_id_bytes &&
                   is_loaded_readable(info, part)) {
            find_build_id(row, (const char *)(uintptr_t)start, part->p_memsz);
        }
    }
    name_object(row, info->dlpi_name);
}

static int copy_object(struct dl_phdr_info *info, size_t bytes, void *arg)
{
    struct copy *copy = arg;
    (void)bytes;
    copy->stamp = (struct stamp){info->dlpi_adds, info->dlpi_subs};
    if (copy->count < copy->capacity)
        describe(&copy->rows[copy->count], info);
    copy->count++;
    return 0;
}

/* The first object is enough to see the loader's counters. */
static int read_stamp(struct dl_phdr_info *info, size_t bytes, void *arg)
{
    struct stamp *stamp = arg;
    (void)bytes;
    *stamp = (struct stamp){info->dlpi_adds, info->dlpi_subs};
    return 1;
}

static size_t copy_bytes(const struct copy *copy)
{
    return copy->capacity * sizeof *copy->rows;
}

/* Returns 0, or -1 when there is no memory for it. */
static int copy_objects(struct copy *copy)
{
    copy->capacity = COPY_START;
    for (;;) {
        void *memory =
            mmap(NULL, copy_bytes(copy), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED)
            return -1;
        copy->rows = memory;
        copy->count = 0;
        ms_each_object(copy_object, copy);
        if (copy->count <= copy->capacity)
            return 0;
        munmap(memory, copy_bytes(copy));
        copy->capacity = copy->count + copy->count / 4;
    }
}

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* File names, not paths: a relative path was made absolute with the directory of that moment. */
static bool is_same(const struct ms_object *a, const struct ms_object *b)
{
    return a->start == b->start && a->end == b->end && a->bias == b->bias &&
           a->build_id_bytes == b->build_id_bytes &&
           memcmp(a->build_id, b->build_id, a->build_id_bytes) == 0 &&
           strcmp(file_name(a->path), file_name(b->path)) == 0;
}

/* The generation of what appears at [start, end): one more than the latest row there. */
static uint32_t next_generation(const struct ms_object *object, uint32_t count)
{
    uint32_t next = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct ms_object *row = row_at(i);
        if (row->start < object->end && object->start < row->end && row->generation >= next)
            next = row->generation + 1;
    }
    return next;
}

/* The newest row at that place, if it is this very object (perhaps loaded again after it was gone). */
static struct ms_object *find_same(const struct ms_object *object, uint32_t count)
{
    for (uint32_t i = count; i-- > 0;) {
        struct ms_object *row = row_at(i);
        if (row->start < object->end && object->start < row->end)
            return is_same(row, object) ? row : NULL;
    }
    return NULL;
}

static void append(const struct ms_object *object)
{
    uint32_t count = ms_object_count();
    if (!ms_table_reserve(MS_TABLE_OBJECTS, count + 1)) {
        ms_table_drop(MS_TABLE_OBJECTS);
        return;
    }
    ms_store_hold();
    struct ms_object *row = row_at(count);
    memcpy(row, object, sizeof *row);
    row->generation = next_generation(object, count);
    ms_table_publish(MS_TABLE_OBJECTS, count + 1);
    ms_store_release();
}

static void set_gone(struct ms_object *row, bool gone)
{
    ms_store_hold();
    atomic_store_explicit(&row->gone, gone, memory_order_relaxed);
    ms_store_release();
}

static void mark_gone(struct ms_object *row, uint32_t index)
{
    set_gone(row, true);
    uint32_t count = atomic_load_explicit(&gone_count, memory_order_relaxed);
    for (uint32_t i = 0; i < count; i++) {
        if (atomic_load_explicit(&gone_rows[i], memory_order_relaxed) == index)
            return;
    }
    if (count == GONE_MAX)
        return;
    atomic_store_explicit(&gone_rows[count], index, memory_order_relaxed);
    atomic_store_explicit(&gone_count, count + 1, memory_order_release);
}

static void merge(const struct copy *copy)
{
    uint32_t before = ms_object_count();
    for (uint32_t i = 0; i < before; i++) {
        struct ms_object *row = row_at(i);
        size_t j = 0;
        if (atomic_load_explicit(&row->gone, memory_order_relaxed))
            continue;
        while (j < copy->count && !is_same(row, &copy->rows[j]))
            j++;
        if (j == copy->count)
            mark_gone(row, i);
    }
    for (size_t j = 0; j < copy->count; j++) {
        struct ms_object *row = find_same(&copy->rows[j], before);
        if (row)
            set_gone(row, false);
        else
            append(&copy->rows[j]);
    }
    merged = copy->stamp;
    atomic_store_explicit(&ms_objects_counts.adds_seen, merged.adds, memory_order_relaxed);
    atomic_store_explicit(&ms_objects_counts.subs_seen, merged.subs, memory_order_relaxed);
}

static bool is_up_to_date(void)
{
    struct stamp stamp = {0, 0};
    ms_each_object(read_stamp, &stamp);
    return stamp.adds == atomic_load_explicit(&ms_objects_counts.adds_seen, memory_order_relaxed) &&
           stamp.subs == atomic_load_explicit(&ms_objects_counts.subs_seen, memory_order_relaxed);
}

/* Once, early: the link reads otherwise after a chroot, or when the file was replaced. Always true. */
static bool learn_executable(void)
{
    ms_lock(&merge_lock);
    if (!*executable)
        ms_file_executable(executable, sizeof executable);
    ms_unlock(&merge_lock);
    return true;
}

/* Paths are long: on a spare stack. */
static void renew(void *arg)
{
    struct copy copy;
    (void)arg;
    if (learn_executable() && copy_objects(&copy) == 0) {
        ms_lock(&merge_lock);
        /* Another thread may have merged a later copy meanwhile. */
        if (copy.stamp.adds + copy.stamp.subs > merged.adds + merged.subs)
            merge(&copy);
        ms_unlock(&merge_lock);
        munmap(copy.rows, copy_bytes(&copy));
    }
}

void ms_objects_refresh(void)
{
    int saved_errno = errno;
    uint64_t seen = atomic_load_explicit(&ms_objects_counts.changes, memory_order_acquire);
    if (!is_up_to_date())
        ms_spare_call_anyway(renew, NULL);
    atomic_store_explicit(&ms_objects_counts.changes_seen, seen, memory_order_release);
    errno = saved_errno;
}

void ms_objects_changed(void)
{
    atomic_fetch_add_explicit(&ms_objects_counts.changes, 1, memory_order_release);
    ms_unusual_forget();
}

bool ms_objects_any_gone(void)
{
    return atomic_load_explicit(&gone_count, memory_order_relaxed) != 0;
}

uint32_t ms_object_generation(uint64_t address)
{
    uint32_t count = atomic_load_explicit(&gone_count, memory_order_acquire);
    for (uint32_t i = 0; i < count; i++) {
        const struct ms_object *row = row_at(atomic_load_explicit(&gone_rows[i], memory_order_relaxed));
        if (address >= row->start && address < row->end) {
            row = ms_object_at(address, &(uint32_t){0});
            /* Whatever lies there now, it is not what is gone. */
            return row->generation + atomic_load_explicit(&row->gone, memory_order_relaxed);
        }
    }
    return 0;
}

const struct ms_object *ms_object_at(uint64_t address, uint32_t *index_p)
{
    for (uint32_t i = ms_object_count(); i-- > 0;) {
        const struct ms_object *row = row_at(i);
        if (address >= row->start && address < row->end) {
            *index_p = i;
            return row;
        }
    }
    return NULL;
}

const struct ms_object *ms_object_of(uint64_t address, uint32_t generation, uint32_t *index_p)
{
    for (uint32_t i = ms_object_count(); i-- > 0;) {
        const struct ms_object *row = row_at(i);
        if (row->generation == generation && address >= row->start && address < row->end) {
            *index_p = i;
            return row;
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
    atomic_store_explicit(&gone_count, 0, memory_order_relaxed);
    merged = (struct stamp){0, 0};
    atomic_store_explicit(&ms_objects_counts.adds_seen, 0, memory_order_relaxed);
    atomic_store_explicit(&ms_objects_counts.subs_seen, 0, memory_order_relaxed);
    ms_objects_changed();
    ms_lock_reset(&merge_lock);
    ms_lock_reset(&loader_lock); /* in a child of a raw clone nobody else has */
}
