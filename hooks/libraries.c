/* libraries.c - which of the loaded objects are the vendors' libraries.
 *
 * Owns the table of libraries and the map from a real function's address to its row. Objects are looked at inside
 * ms_each_object's callbacks only, where they cannot be unloaded. No allocation but the arena's. */
#include "hooks/resolve.h"

#include <link.h>
#include <string.h>

#include "base/arena.h"
#include "base/elf.h"
#include "base/log.h"
#include "base/objects.h"
#include "hooks/listeners.h"
#include "hooks/unseen.h"

#define LIBRARIES_MAX 16
#define MAP_SLOTS 4096 /* power of two, well over LIBRARIES_MAX times the rows that are usual */

struct ms_lock ms_resolve_lock = MS_LOCK_INIT(MS_RANK_RESOLVE);

static struct ms_library libraries[LIBRARIES_MAX];
static unsigned library_count;
static unsigned long long seen_adds, seen_subs;

/* Open addressing; an address may stand for several rows (names that share one function). */
static struct entry {
    uintptr_t address;
    uint16_t row;
    uint16_t library;
} map[MAP_SLOTS];
static unsigned map_used;

/* The linker's name for where this object begins. */
extern const ElfW(Ehdr) own_header __asm__("__ehdr_start") __attribute__((visibility("hidden")));

bool ms_is_ours(uintptr_t address)
{
    const ElfW(Phdr) *segment = (const ElfW(Phdr) *)((uintptr_t)&own_header + own_header.e_phoff);

    for (unsigned i = 0; i < own_header.e_phnum; i++) {
        if (segment[i].p_type == PT_LOAD && address - (uintptr_t)&own_header - segment[i].p_vaddr < segment[i].p_memsz)
            return true;
    }
    return false;
}

uint64_t ms_hash_text(const char *text)
{
    uint64_t hash = 0xcbf29ce484222325u;

    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
    return hash;
}

bool ms_is_self(const struct dl_phdr_info *info)
{
    return ms_elf_holds(info, (uintptr_t)&own_header);
}

static void map_insert(uintptr_t address, unsigned row, unsigned library)
{
    if (!address || map_used >= MAP_SLOTS - MAP_SLOTS / 8)
        return;
    unsigned i = (unsigned)(address * 0x9e3779b97f4a7c15u >> 40) % MAP_SLOTS;
    while (map[i].address)
        i = (i + 1) % MAP_SLOTS;
    map[i] = (struct entry){address, (uint16_t)row, (uint16_t)library};
    map_used++;
}

static uintptr_t find_in_elf(void *arg, const char *symbol)
{
    return ms_elf_symbol(arg, symbol);
}

/* The row of a library, known or new; NULL when all are taken. A library that is gone leaves its row to another when there is no
 * fresh one: whoever still calls through it calls unmapped memory, with us or without. */
static struct ms_library *library_row(const struct dl_phdr_info *info, uint64_t name_hash, enum ms_api api, bool *is_new_p)
{
    struct ms_library *gone = NULL;

    *is_new_p = false;
    for (unsigned i = 0; i < library_count; i++) {
        struct ms_library *l = &libraries[i];
        if (l->bias == info->dlpi_addr && l->name_hash == name_hash && l->api == api)
            return l;
        if (l->gone && !l->present && !gone)
            gone = l;
    }
    *is_new_p = true;
    return library_count < LIBRARIES_MAX ? &libraries[library_count++] : gone;
}

/* Note an object that defines the anchors of `api`, and where its functions are. */
static void note_library(const struct dl_phdr_info *info, struct ms_elf *elf, enum ms_api api)
{
    uint64_t name_hash = ms_hash_text(info->dlpi_name);
    bool is_new;
    struct ms_library *library = library_row(info, name_hash, api, &is_new);

    if (!library) {
        ms_ledger_blind_spot("more vendor libraries are loaded than can be told apart");
        return;
    }
    if (is_new) {
        *library = (struct ms_library){.bias = info->dlpi_addr, .name_hash = name_hash,
                                         .soname = elf->soname ? ms_hash_text(elf->soname) : 0, .api = (uint8_t)api};
        if (ms_families[api].vendor)
            ms_gpu_bind(&library->gpu, ms_families[api].vendor, find_in_elf, elf);
    }
    library->gone = false;
    library->present = true;
    for (unsigned row = 0; row < MS_ROW_COUNT; row++) {
        if (ms_rows[row]->api == api)
            map_insert(ms_elf_symbol(elf, ms_rows[row]->symbol), row, (unsigned)(library - libraries));
    }
}

bool ms_defines_anchors(const struct ms_elf *elf, enum ms_api api)
{
    return ms_elf_symbol(elf, ms_families[api].anchors[0]) && ms_elf_symbol(elf, ms_families[api].anchors[1]);
}

static int scan_object(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct ms_elf elf;
    (void)arg;

    if (size >= offsetof(struct dl_phdr_info, dlpi_subs) + sizeof(info->dlpi_subs)) {
        seen_adds = info->dlpi_adds;
        seen_subs = info->dlpi_subs;
    }
    if (ms_is_self(info) || !ms_elf_open(info, &elf))
        return 0;
    for (unsigned api = 0; api < MS_API_COUNT; api++) {
        if (ms_defines_anchors(&elf, api))
            note_library(info, &elf, api);
    }
    ms_unseen_look_at(&elf);
    return 0;
}

static int read_counters(struct dl_phdr_info *info, size_t size, void *arg)
{
    unsigned long long *counters = arg;

    if (size >= offsetof(struct dl_phdr_info, dlpi_subs) + sizeof(info->dlpi_subs)) {
        counters[0] = info->dlpi_adds;
        counters[1] = info->dlpi_subs;
    }
    return 1;
}

void ms_libraries_refresh_locked(void)
{
    unsigned long long counters[2] = {0, 0};

    ms_each_object(read_counters, counters);
    if (counters[0] != 0 && counters[0] == seen_adds && counters[1] == seen_subs)
        return;
    for (unsigned i = 0; i < library_count; i++)
        libraries[i].present = false;
    memset(map, 0, sizeof(map));
    map_used = 0;
    ms_each_object(scan_object, NULL);
    for (unsigned i = 0; i < library_count; i++)
        libraries[i].gone = !libraries[i].present;
}

unsigned ms_library_count_locked(enum ms_api api)
{
    unsigned count = 0;

    for (unsigned i = 0; i < library_count; i++)
        count += libraries[i].present && libraries[i].api == api;
    return count;
}

const struct ms_gpu *ms_library_driver(void)
{
    const struct ms_gpu *gpu = NULL;

    ms_lock(&ms_resolve_lock);
    for (int tries = 0; tries < 2 && !gpu; tries++) {
        if (tries)
            ms_libraries_refresh_locked();
        for (unsigned i = 0; i < library_count && !gpu; i++) {
            if (libraries[i].present && libraries[i].api == MS_API_CUDA_DRIVER)
                gpu = &libraries[i].gpu;
        }
    }
    ms_unlock(&ms_resolve_lock);
    return gpu;
}

void *ms_library_sibling(uintptr_t address, enum ms_row row)
{
    const struct ms_library *library;
    void *found = NULL;

    ms_lock(&ms_resolve_lock);
    ms_libraries_refresh_locked();
    library = ms_library_at_locked(address, ms_rows[row]->api);
    for (unsigned i = 0; library && i < MAP_SLOTS && !found; i++) {
        if (map[i].address && map[i].row == row && &libraries[map[i].library] == library)
            found = (void *)map[i].address;
    }
    ms_unlock(&ms_resolve_lock);
    return found;
}

struct at_search {
    uintptr_t address;
    enum ms_api api;
    const struct ms_library *found;
};

static int match_address(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct at_search *search = arg;
    (void)size;

    if (!ms_elf_holds(info, search->address))
        return 0;
    for (unsigned i = 0; i < library_count; i++) {
        if (libraries[i].present && libraries[i].api == search->api && libraries[i].bias == info->dlpi_addr)
            search->found = &libraries[i];
    }
    return 1;
}

const struct ms_library *ms_library_at_locked(uintptr_t address, enum ms_api api)
{
    struct at_search search = {.address = address, .api = api};

    ms_each_object(match_address, &search);
    return search.found;
}

struct symbol_search {
    const struct ms_library *library;
    const char *symbol;
    uintptr_t found;
};

static int match_library(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct symbol_search *search = arg;
    struct ms_elf elf;
    (void)size;

    if (info->dlpi_addr != search->library->bias || ms_hash_text(info->dlpi_name) != search->library->name_hash ||
        !ms_elf_open(info, &elf))
        return 0;
    search->found = ms_elf_symbol(&elf, search->symbol);
    return 1;
}

uintptr_t ms_library_symbol_locked(const struct ms_library *library, const char *symbol)
{
    struct symbol_search search = {.library = library, .symbol = symbol};

    ms_each_object(match_library, &search);
    return search.found;
}

bool ms_library_row_locked(uintptr_t address, int preferred, enum ms_row *row_p, const struct ms_gpu **gpu_p)
{
    bool found = false;

    for (unsigned i = (unsigned)(address * 0x9e3779b97f4a7c15u >> 40) % MAP_SLOTS; map[i].address; i = (i + 1) % MAP_SLOTS) {
        if (map[i].address != address || (found && map[i].row != preferred))
            continue;
        found = true;
        *row_p = map[i].row;
        *gpu_p = &libraries[map[i].library].gpu;
        if (map[i].row == preferred)
            break;
    }
    return found;
}

/* The search of ms_library_bind_locked: which of several libraries would the caller's object have been bound to? Names are
 * kept as hashes, since an object may go away once the callback has returned. */
#define OBJECTS_MAX 1024
#define NEEDED_MAX 64

struct object {
    uint64_t soname;
    uint64_t needed[NEEDED_MAX];
    uintptr_t symbol; /* the real function, if this object is a library of the row's interface */
    uint16_t library;
    bool visited;
};

struct bind_search {
    const char *symbol;
    enum ms_api api;
    uintptr_t caller;
    struct object *objects;
    unsigned count;
    int caller_index;
};

static uint64_t hash_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return ms_hash_text(slash ? slash + 1 : path);
}

static int collect_object(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct bind_search *search = arg;
    struct ms_elf elf;
    const char *needed;
    (void)size;

    if (search->count == OBJECTS_MAX)
        return 1;
    if (ms_is_self(info) || !ms_elf_open(info, &elf))
        return 0;
    struct object *object = &search->objects[search->count];
    memset(object, 0, sizeof(*object));
    object->soname = elf.soname ? ms_hash_text(elf.soname) : hash_base_name(info->dlpi_name);
    for (unsigned i = 0; i < NEEDED_MAX && (needed = ms_elf_needed(&elf, i)); i++)
        object->needed[i] = hash_base_name(needed);
    for (unsigned i = 0; i < library_count; i++) {
        if (libraries[i].present && libraries[i].api == search->api && libraries[i].bias == info->dlpi_addr) {
            object->symbol = ms_elf_symbol(&elf, search->symbol);
            object->library = (uint16_t)i;
        }
    }
    if (ms_elf_holds(info, search->caller))
        search->caller_index = (int)search->count;
    search->count++;
    return 0;
}

/* Breadth first over the dependencies of the caller's object. The arena-backed queue is as long as the object list. */
static const struct object *nearest_provider(struct bind_search *search, uint16_t *queue)
{
    unsigned head = 0, tail = 0;

    if (search->caller_index < 0)
        return NULL;
    queue[tail++] = (uint16_t)search->caller_index;
    search->objects[search->caller_index].visited = true;
    while (head < tail) {
        struct object *object = &search->objects[queue[head++]];
        if (object->symbol)
            return object;
        for (unsigned n = 0; n < NEEDED_MAX && object->needed[n]; n++) {
            for (unsigned i = 0; i < search->count; i++) {
                if (search->objects[i].soname == object->needed[n] && !search->objects[i].visited) {
                    search->objects[i].visited = true;
                    queue[tail++] = (uint16_t)i;
                }
            }
        }
    }
    return NULL;
}

/* A library that stands between us and the vendor's: one that was loaded at the program's start after us, defines the symbol for everyone
 * (unversioned), and is no vendor library. The loader would have bound to it, and it asks for RTLD_NEXT itself. */
struct chain_search {
    const char *symbol;
    enum ms_api api;
    unsigned index;
    bool after_self;
    uintptr_t found;
};

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
    if (!search->after_self || !ms_elf_open(info, &elf) || !(symbol = ms_elf_symbol(&elf, search->symbol)))
        return 0;
    if (!ms_defines_anchors(&elf, search->api))
        search->found = symbol;
    return 1;
}

static uintptr_t chained_interposer(enum ms_row row)
{
    struct chain_search search = {.symbol = ms_rows[row]->symbol, .api = ms_rows[row]->api};

    ms_each_object(match_chain, &search);
    return search.found;
}

static uint64_t node_hash(enum ms_node node)
{
    static const char *const names[MS_NODE_COUNT] = {
#define MS_NODE(tag, name, unused) [MS_NODE_##tag] = name,
        MS_RUNTIME_NODES(MS_NODE, )
#undef MS_NODE
    };

    return node == MS_NODE_NONE ? 0 : ms_hash_text(names[node]);
}

static bool is_of_node(const struct ms_library *library, enum ms_node oldest)
{
    for (enum ms_node node = oldest; node < MS_NODE_COUNT; node++) {
        if (library->soname == node_hash(node))
            return true;
    }
    return false;
}

bool ms_library_is_plain_runtime(const void *real)
{
    const struct ms_library *library;
    bool plain;

    ms_lock(&ms_resolve_lock);
    ms_libraries_refresh_locked();
    library = ms_library_at_locked((uintptr_t)real, MS_API_CUDA_RUNTIME);
    plain = library && is_of_node(library, MS_NODE_12) && !chained_interposer(MS_ROW_cudaMalloc) &&
            !chained_interposer(MS_ROW_cudaFree) && !ms_listener_is_there(ms_library_count_locked(MS_API_CUPTI) > 0);
    ms_unlock(&ms_resolve_lock);
    return plain;
}

struct ms_target ms_library_bind_lockless(enum ms_row row, enum ms_node node)
{
    uintptr_t found = ms_loader_find(ms_rows[row], node_hash(node));

    if (!found && node != MS_NODE_NONE)
        found = ms_loader_find(ms_rows[row], 0);
    return (struct ms_target){(void *)found, NULL};
}

static struct ms_target sole_provider(enum ms_row row)
{
    struct ms_target target = {NULL, NULL};

    for (unsigned i = 0; i < MAP_SLOTS; i++) {
        if (map[i].address && map[i].row == row)
            target = (struct ms_target){(void *)map[i].address, &libraries[map[i].library].gpu};
    }
    return target;
}

/* The library of exactly this version; NULL if it is not loaded. */
static struct ms_target provider_of_node(enum ms_row row, enum ms_node node)
{
    struct ms_target target = {NULL, NULL};
    uint64_t soname = node_hash(node);

    for (unsigned i = 0; soname && i < MAP_SLOTS; i++) {
        if (map[i].address && map[i].row == row && libraries[map[i].library].soname == soname)
            target = (struct ms_target){(void *)map[i].address, &libraries[map[i].library].gpu};
    }
    return target;
}

static struct ms_target bind_vendor_locked(enum ms_row row, uintptr_t caller, bool dependencies_only)
{
    static struct object *objects;
    static uint16_t *queue;
    struct bind_search search = {
        .symbol = ms_rows[row]->symbol, .api = ms_rows[row]->api, .caller = caller, .caller_index = -1};
    const struct object *provider;

    if (ms_library_count_locked(search.api) < 2 && !dependencies_only)
        return sole_provider(row);
    if (!objects && (!(objects = ms_arena_alloc(OBJECTS_MAX * sizeof(*objects))) ||
                     !(queue = ms_arena_alloc(OBJECTS_MAX * sizeof(*queue))))) {
        objects = NULL;
        return sole_provider(row);
    }
    search.objects = objects;
    ms_each_object(collect_object, &search);
    provider = nearest_provider(&search, queue);
    for (unsigned i = 0; !provider && !dependencies_only && i < search.count; i++) {
        if (objects[i].symbol)
            provider = &objects[i];
    }
    if (!provider)
        return (struct ms_target){NULL, NULL};
    return (struct ms_target){(void *)provider->symbol, &libraries[provider->library].gpu};
}

struct ms_target ms_library_bind_locked(enum ms_row row, uintptr_t caller, enum ms_node node, bool dependencies_only)
{
    struct ms_target target = provider_of_node(row, node);
    uintptr_t chained = dependencies_only ? 0 : chained_interposer(row);

    if (!target.real)
        target = bind_vendor_locked(row, caller, dependencies_only);

    if (chained)
        target.real = (void *)chained; /* the driver that is asked about contexts stays the vendor's */
    return target;
}
