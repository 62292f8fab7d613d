/* bind.c - which of several libraries of one interface a call belongs to: the one that the loader would have
 * bound its caller to.
 *
 * Two copies of a runtime, opened by path, have the same names, versions and SONAME, and the call says no
 * more than who made it. Asked are, in this order: what the loader has put into the caller's object for those
 * of the vendor's functions that we have no wrapper of, which is its own answer; the global scope (what was
 * there at the start, then what was opened with RTLD_GLOBAL, each in its order and with what it needs); what
 * the caller's object needs; what those need who brought it; the order of loading. All of it is the same in
 * each run. Under the resolve lock, but for what is called lockless; no allocation but the arena's, once.
 * Objects are looked at inside ms_each_object's callbacks, where they cannot be unloaded. */
#include <dlfcn.h>
#include <link.h>
#include <string.h>
#include <sys/stat.h>

#include "base/files.h"
#include "base/arena.h"
#include "base/objects/elf.h"
#include "base/thread/guard.h"
#include "base/libc.h"
#include "base/objects/objects.h"
#include "hooks/lookup/resolve.h"
#include "hooks/hook_scope.h"

#define OBJECTS_MAX 1024
#define NEEDED_MAX  64
#define GLOBALS_MAX 64
#define NOBODY      UINT16_MAX

/* The libraries that the function may be in, in the order of loading. */
struct candidates {
    const struct ms_library *list[MS_LIBRARIES_MAX];
    unsigned count;
};

/* A request to open with RTLD_GLOBAL, by whatever may tell the object that came of it. */
struct global {
    uint64_t path, base;
    dev_t device;
    ino_t inode; /* 0: it was searched for */
};

static struct global globals[GLOBALS_MAX];
static unsigned global_count;
static unsigned startup_objects;

static int count_object(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)info;
    (void)size;
    ++*(unsigned *)arg;
    return 0;
}

void ms_libraries_note_startup(void)
{
    unsigned count = 0;

    ms_each_object(count_object, &count);
    startup_objects = count;
}

void ms_bind_note_global(const char *file)
{
    struct ms_hook_scope scope;
    struct stat status;
    struct global new = {0};

    if (!file || ms_thread.depth > 0)
        return;
    ms_hook_scope_enter(&scope);
    new.path = ms_hash_text(file);
    new.base = ms_hash_text(ms_file_name(file));
    if (strchr(file, '/') && stat(file, &status) == 0) {
        new.device = status.st_dev;
        new.inode = status.st_ino;
    }
    ms_lock(&ms_resolve_lock);
    unsigned i = 0;
    while (i < global_count && memcmp(&globals[i], &new, sizeof(new)) != 0)
        i++;
    if (i == global_count && global_count < GLOBALS_MAX)
        globals[global_count++] = new;
    ms_unlock(&ms_resolve_lock);
    ms_hook_scope_leave(&scope);
}

/* --- what the loader has put into an object --- */

struct bound_search {
    const struct candidates *candidates;
    const char *symbol;
    uintptr_t caller; /* 0: the first object that refers to the symbol */
    bool refers;
    const struct ms_library *bound;
};

static bool match_bound(void *arg, const char *symbol, uintptr_t address)
{
    struct bound_search *search = arg;

    search->refers = search->refers || ms_elf_same_name(symbol, search->symbol);
    for (unsigned i = 0; i < search->candidates->count && !search->bound; i++) {
        const struct ms_library *library = search->candidates->list[i];
        if (address >= library->start && address < library->end)
            search->bound = library;
    }
    return search->refers && search->bound;
}

static int look_into_object(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct bound_search *search = arg;
    struct ms_elf elf;
    (void)size;

    if (search->caller ? !ms_elf_holds(info, search->caller) : ms_is_self(info))
        return 0;
    search->refers = false;
    search->bound = NULL;
    if (ms_elf_open(info, &elf))
        ms_elf_each_bound(&elf, match_bound, search);
    return search->caller != 0 || (search->refers && search->bound);
}

/* A pointer to the function may be called by an object that does not refer to it: then it is somebody's who
 * does. */
static const struct ms_library *bound_library(const struct candidates *candidates, const char *symbol,
                                              uintptr_t caller)
{
    struct bound_search search = {.candidates = candidates, .symbol = symbol, .caller = caller};

    if (caller)
        ms_each_object(look_into_object, &search);
    if (search.refers)
        return search.bound;
    search.caller = 0;
    return ms_each_object(look_into_object, &search) ? search.bound : NULL;
}

/* --- the loader's scopes, as far as they can be told from outside --- */

/* Names are kept as hashes, since an object may go away once the callback has returned. */
struct object {
    uint64_t soname, path;
    uint64_t needed_names[NEEDED_MAX];
    uint16_t needed[NEEDED_MAX];      /* the objects of those names */
    const struct ms_library *library; /* the candidate that this object is */
    bool at_startup, visited;
};

struct scope_search {
    const struct candidates *candidates;
    uintptr_t caller;
    struct object *objects;
    uint16_t *queue;
    unsigned count, index;
    int caller_index, global_roots[GLOBALS_MAX];
};

static const struct ms_library *candidate_of(const struct candidates *candidates,
                                             const struct dl_phdr_info *info)
{
    uint64_t name_hash = ms_hash_text(info->dlpi_name);

    for (unsigned i = 0; i < candidates->count; i++) {
        if (candidates->list[i]->bias == info->dlpi_addr && candidates->list[i]->name_hash == name_hash)
            return candidates->list[i];
    }
    return NULL;
}

static void match_globals(struct scope_search *search, const struct dl_phdr_info *info,
                          const struct object *object)
{
    struct stat status = {0};
    bool asked = false;

    for (unsigned i = 0; i < global_count; i++) {
        const struct global *g = &globals[i];
        bool same = object->path == g->path;
        if (search->global_roots[i] >= 0)
            continue;
        if (!same && g->inode && !asked) {
            asked = true;
            if (stat(info->dlpi_name, &status) != 0)
                status = (struct stat){0};
        }
        if (!same && g->inode)
            same = status.st_ino == g->inode && status.st_dev == g->device;
        else if (!same)
            same = object->soname == g->base || ms_hash_text(ms_file_name(info->dlpi_name)) == g->base;
        if (same)
            search->global_roots[i] = (int)search->count;
    }
}

static int collect_object(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct scope_search *search = arg;
    bool at_startup = search->index++ < startup_objects;
    struct ms_elf elf;
    const char *needed;
    (void)size;

    if (search->count == OBJECTS_MAX)
        return 1;
    if (ms_is_self(info) || !ms_elf_open(info, &elf) || ms_is_memshim(&elf))
        return 0;
    struct object *object = &search->objects[search->count];
    memset(object, 0, sizeof(*object));
    object->path = ms_hash_text(info->dlpi_name);
    object->soname = ms_hash_text(elf.soname ? elf.soname : ms_file_name(info->dlpi_name));
    object->at_startup = at_startup;
    object->library = candidate_of(search->candidates, info);
    for (unsigned i = 0; i < NEEDED_MAX && (needed = ms_elf_needed(&elf, i)); i++)
        object->needed_names[i] = ms_hash_text(needed);
    if (ms_elf_holds(info, search->caller))
        search->caller_index = (int)search->count;
    match_globals(search, info, object);
    search->count++;
    return 0;
}

/* A name stands for the first object of that SONAME: a second one is opened by path alone, and nobody's
 * dependency. */
static void link_objects(struct scope_search *search)
{
    for (unsigned i = 0; i < search->count; i++) {
        struct object *object = &search->objects[i];
        for (unsigned n = 0; n < NEEDED_MAX; n++) {
            unsigned k = 0;
            while (object->needed_names[n] && k < search->count &&
                   search->objects[k].soname != object->needed_names[n] &&
                   search->objects[k].path != object->needed_names[n])
                k++;
            object->needed[n] = object->needed_names[n] && k < search->count ? (uint16_t)k : NOBODY;
        }
    }
}

/* Breadth first over what an object needs, itself first: the queue holds them then. How many they are. */
static unsigned bind_spread(struct scope_search *search, unsigned root)
{
    unsigned head = 0, tail = 0;

    for (unsigned i = 0; i < search->count; i++)
        search->objects[i].visited = false;
    search->queue[tail++] = (uint16_t)root;
    search->objects[root].visited = true;
    while (head < tail) {
        const struct object *object = &search->objects[search->queue[head++]];
        for (unsigned n = 0; n < NEEDED_MAX && object->needed_names[n]; n++) {
            uint16_t next = object->needed[n];
            if (next == NOBODY || search->objects[next].visited)
                continue;
            search->objects[next].visited = true;
            search->queue[tail++] = next;
        }
    }
    return tail;
}

static const struct ms_library *nearest(struct scope_search *search, unsigned root)
{
    unsigned count = bind_spread(search, root);

    for (unsigned i = 0; i < count; i++) {
        if (search->objects[search->queue[i]].library)
            return search->objects[search->queue[i]].library;
    }
    return NULL;
}

static const struct ms_library *in_global_scope(struct scope_search *search)
{
    const struct ms_library *found = NULL;

    for (unsigned i = 0; i < search->count && search->objects[i].at_startup; i++) {
        if (search->objects[i].library)
            return search->objects[i].library;
    }
    for (unsigned i = 0; i < global_count && !found; i++) {
        if (search->global_roots[i] >= 0)
            found = nearest(search, (unsigned)search->global_roots[i]);
    }
    return found;
}

/* The scope of who was opened, and brought the caller's object along, is the caller's too. */
static const struct ms_library *in_scope_of_caller(struct scope_search *search)
{
    const struct ms_library *found;

    if (search->caller_index < 0)
        return NULL;
    found = nearest(search, (unsigned)search->caller_index);
    for (unsigned i = 0; i < search->count && !found; i++) {
        const struct ms_library *near = nearest(search, i);
        if (near && search->objects[search->caller_index].visited)
            found = near;
    }
    return found;
}

static const struct ms_library *library_in_scope(const struct candidates *candidates, uintptr_t caller,
                                                 bool dependencies_only)
{
    static struct object *objects;
    static uint16_t *queue;
    const struct ms_library *found = NULL;

    if (!objects && (!(objects = ms_arena_alloc(OBJECTS_MAX * sizeof(*objects))) ||
                     !(queue = ms_arena_alloc(OBJECTS_MAX * sizeof(*queue)))))
        objects = NULL;
    if (objects) {
        struct scope_search search = {.candidates = candidates,
                                      .caller = caller,
                                      .objects = objects,
                                      .queue = queue,
                                      .caller_index = -1};
        for (unsigned i = 0; i < GLOBALS_MAX; i++)
            search.global_roots[i] = -1;
        ms_each_object(collect_object, &search);
        link_objects(&search);
        found = dependencies_only ? NULL : in_global_scope(&search);
        found = found ? found : in_scope_of_caller(&search);
    }
    return found || dependencies_only ? found : candidates->list[0];
}

/* A library that stands between us and the vendor's: one that was loaded at the program's start after us,
 * defines the symbol for everyone (unversioned), and is no vendor library. The loader would have bound to it,
 * and it asks for RTLD_NEXT itself. */
struct chain_search {
    const char *symbol;
    enum ms_api api;
    unsigned index;
    bool after_self;
    uintptr_t found;
};

static int match_chain(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct chain_search *search = arg;
    struct ms_elf elf;
    uintptr_t symbol;
    (void)size;

    if (search->index++ >= startup_objects)
        return 1;
    if (ms_is_self(info)) {
        search->after_self = true;
        return 0;
    }
    if (!search->after_self || !ms_elf_open(info, &elf) || ms_is_memshim(&elf) ||
        !(symbol = ms_elf_symbol(&elf, search->symbol)))
        return 0;
    if (!ms_defines_anchors(&elf, search->api))
        search->found = symbol;
    return 1;
}

uintptr_t ms_bind_chained(enum ms_row row)
{
    struct chain_search search = {.symbol = ms_rows[row]->symbol, .api = ms_rows[row]->api};

    ms_each_object(match_chain, &search);
    return search.found;
}

/* Those that define the function at the node, or else those that define it. */
static void find_candidates(struct candidates *candidates, enum ms_row row, enum ms_version_node node)
{
    const struct ms_library *all[MS_LIBRARIES_MAX];
    unsigned count = ms_libraries_of_locked(ms_rows[row]->api, all);
    bool any_of_node = false;

    candidates->count = 0;
    for (unsigned i = 0; i < count; i++)
        any_of_node =
            any_of_node || (ms_library_function_locked(all[i], row) && (all[i]->nodes & 1u << node));
    for (unsigned i = 0; i < count; i++) {
        if (ms_library_function_locked(all[i], row) && (!any_of_node || (all[i]->nodes & 1u << node)))
            candidates->list[candidates->count++] = all[i];
    }
}

struct ms_target ms_library_bind_locked(enum ms_row row, uintptr_t caller, enum ms_version_node node,
                                        bool dependencies_only)
{
    struct candidates candidates;
    const struct ms_library *library = NULL;
    struct ms_target target = {NULL, NULL};
    uintptr_t chained = dependencies_only ? 0 : ms_bind_chained(row);

    find_candidates(&candidates, row, node);
    if (candidates.count == 1 && !dependencies_only)
        library = candidates.list[0];
    else if (candidates.count > 0 && !dependencies_only)
        library = bound_library(&candidates, ms_rows[row]->symbol, caller);
    if (!library && candidates.count > 0)
        library = library_in_scope(&candidates, caller, dependencies_only);
    if (library)
        target = (struct ms_target){(void *)ms_library_function_locked(library, row), &library->gpu};
    if (chained)
        target.real = (void *)chained; /* the driver that is asked about contexts stays the vendor's */
    return target;
}

struct lockless_search {
    enum ms_row row;
    enum ms_version_node node;
    uintptr_t found;
};

static bool read_object_of(uintptr_t address, struct ms_elf *elf_p)
{
    struct ms_libc_object object;

    return ms_libc_find_object(address, &object) && object.map &&
           ms_elf_read(object.map->l_addr, object.map->l_ld, elf_p);
}

static bool match_lockless(void *arg, const char *symbol, uintptr_t address)
{
    struct lockless_search *search = arg;
    const struct ms_row_info *row = ms_rows[search->row];
    struct ms_elf elf;
    (void)symbol;

    if (ms_is_ours(address) || !read_object_of(address, &elf) || !ms_defines_anchors(&elf, row->api) ||
        !ms_is_of_node(&elf, search->node))
        return false;
    search->found = ms_elf_symbol(&elf, row->symbol);
    return search->found != 0;
}

/* 0 where the C library finds no object without a lock (before 2.35). */
static uintptr_t bound_lockless(enum ms_row row, uintptr_t caller, enum ms_version_node node)
{
    struct lockless_search search = {.row = row, .node = node};
    struct ms_elf elf;

    if (read_object_of(caller, &elf))
        ms_elf_each_bound(&elf, match_lockless, &search);
    return search.found;
}

struct ms_target ms_library_bind_lockless(enum ms_row row, uintptr_t caller, enum ms_version_node node)
{
    uintptr_t found = bound_lockless(row, caller, node);

    if (!found)
        found = ms_loader_find(ms_rows[row], node);
    if (!found && node != MS_NODE_NONE)
        found = ms_loader_find(ms_rows[row], MS_NODE_NONE);
    return (struct ms_target){(void *)found, NULL};
}
