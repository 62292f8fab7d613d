/* libraries.c - which of the loaded objects are the vendors' libraries.
 *
 * Owns the table of libraries with their functions, and the map from a real function's address to its row.
 * Objects are looked at inside ms_each_object's callbacks only, where they cannot be unloaded. No allocation
 * but the arena's. */
#include "hooks/lookup/resolve.h"

#include <link.h>
#include <string.h>

#include "base/objects/elf.h"
#include "base/objects/objects.h"
#include "hooks/lookup/listeners.h"
#include "hooks/lookup/unknown.h"

#define MAP_SLOTS 8192 /* power of two, well over MS_LIBRARIES_MAX times the rows that are usual */

struct ms_lock ms_resolve_lock = MS_LOCK_INIT(MS_RANK_RESOLVE);

static struct ms_library libraries[MS_LIBRARIES_MAX];
static uintptr_t functions[MS_LIBRARIES_MAX][MS_ROW_COUNT];
static unsigned library_count;
static unsigned scanned; /* objects of the latest scan */
static unsigned long long seen_adds, seen_subs;

/* From addresses alone, and never gone through from end to end: where an entry stands is different in each
 * run. Open addressing; an address may stand for several rows (names that share one function). */
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
        if (segment[i].p_type == PT_LOAD &&
            address - (uintptr_t)&own_header - segment[i].p_vaddr < segment[i].p_memsz)
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
    if (!address)
        return;
    if (map_used >= MAP_SLOTS - MAP_SLOTS / 8) {
        ms_ledger_blind_spot("more functions of vendor libraries are loaded than can be told apart");
        return;
    }
    unsigned i = (unsigned)(address * 0x9e3779b97f4a7c15u >> 40) % MAP_SLOTS;
    while (map[i].address)
        i = (i + 1) % MAP_SLOTS;
    map[i] = (struct entry){address, (uint16_t)row, (uint16_t)library};
    map_used++;
}

static const char *node_name(enum ms_version_node node)
{
    static const char *const names[MS_NODE_COUNT] = {"",
#define MS_NODE(tag, name, unused) name,
                                                     MS_RUNTIME_NODES(MS_NODE, )
#undef MS_NODE
    };

    return names[node];
}

bool ms_is_of_node(const struct ms_elf *elf, enum ms_version_node node)
{
    return node == MS_NODE_NONE || (elf->soname && ms_elf_same_name(elf->soname, node_name(node))) ||
           ms_elf_has_version(elf, node_name(node));
}

static uint32_t nodes_of(const struct ms_elf *elf)
{
    uint32_t nodes = 0;

    for (enum ms_version_node node = MS_NODE_NONE; node < MS_NODE_COUNT; node++)
        nodes |= (uint32_t)ms_is_of_node(elf, node) << node;
    return nodes;
}

/* The addresses between which its segments lie. */
static void note_extent(struct ms_library *library, const struct dl_phdr_info *info)
{
    library->start = UINTPTR_MAX;
    library->end = 0;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + segment->p_vaddr, end = start + segment->p_memsz;
        if (segment->p_type != PT_LOAD)
            continue;
        library->start = start < library->start ? start : library->start;
        library->end = end > library->end ? end : library->end;
    }
}

static uintptr_t find_in_elf(void *arg, const char *symbol)
{
    return ms_elf_symbol(arg, symbol);
}

/* The row of a library, known or new; NULL when all are taken. A library that is gone leaves its row to
 * another when there is no fresh one: whoever still calls through it calls unmapped memory, with us or
 * without. */
static struct ms_library *library_row(const struct dl_phdr_info *info, uint64_t name_hash, enum ms_api api,
                                      bool *is_new_p)
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
    return library_count < MS_LIBRARIES_MAX ? &libraries[library_count++] : gone;
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
        *library = (struct ms_library){
            .bias = info->dlpi_addr, .name_hash = name_hash, .nodes = nodes_of(elf), .api = (uint8_t)api};
        note_extent(library, info);
        if (ms_families[api].vendor)
            ms_gpu_bind(&library->gpu, ms_families[api].vendor, find_in_elf, elf);
    }
    library->gone = false;
    library->present = true;
    library->order = scanned;
    for (unsigned row = 0; row < MS_ROW_COUNT; row++) {
        uintptr_t function = ms_rows[row]->api == api ? ms_elf_symbol(elf, ms_rows[row]->symbol) : 0;
        functions[library - libraries][row] = function;
        map_insert(function, row, (unsigned)(library - libraries));
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

    scanned++;
    if (size >= offsetof(struct dl_phdr_info, dlpi_subs) + sizeof(info->dlpi_subs)) {
        seen_adds = info->dlpi_adds;
        seen_subs = info->dlpi_subs;
    }
    if (ms_is_self(info) || !ms_elf_open(info, &elf) || ms_is_memshim(&elf))
        return 0;
    for (unsigned api = 0; api < MS_API_COUNT; api++) {
        if (ms_defines_anchors(&elf, api))
            note_library(info, &elf, api);
    }
    ms_unknown_look_at(&elf);
    return 0;
}

static void begin_anew(void *unused)
{
    (void)unused;
    for (unsigned i = 0; i < library_count; i++)
        libraries[i].present = false;
    memset(map, 0, sizeof(map));
    map_used = 0;
    scanned = 0;
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
    static struct ms_objects_since since;
    unsigned long long counters[2] = {0, 0};

    ms_each_object(read_counters, counters);
    if (counters[0] != 0 && counters[0] == seen_adds && counters[1] == seen_subs)
        return;
    ms_each_object_since(&since, begin_anew, scan_object, NULL);
    seen_adds = since.adds;
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

unsigned ms_libraries_of_locked(enum ms_api api, const struct ms_library **in_order)
{
    unsigned count = 0;

    for (unsigned i = 0; i < library_count; i++) {
        unsigned place = count;
        if (!libraries[i].present || libraries[i].api != api)
            continue;
        for (; place > 0 && in_order[place - 1]->order > libraries[i].order; place--)
            in_order[place] = in_order[place - 1];
        in_order[place] = &libraries[i];
        count++;
    }
    return count;
}

uintptr_t ms_library_function_locked(const struct ms_library *library, enum ms_row row)
{
    return functions[library - libraries][row];
}

const struct ms_gpu *ms_library_driver(void)
{
    const struct ms_library *drivers[MS_LIBRARIES_MAX];
    unsigned count = 0;

    ms_lock(&ms_resolve_lock);
    for (int tries = 0; tries < 2 && !count; tries++) {
        if (tries)
            ms_libraries_refresh_locked();
        count = ms_libraries_of_locked(MS_API_CUDA_DRIVER, drivers);
    }
    ms_unlock(&ms_resolve_lock);
    return count ? &drivers[0]->gpu : NULL;
}

void *ms_library_sibling(uintptr_t address, enum ms_row row)
{
    const struct ms_library *library;
    uintptr_t found;

    ms_lock(&ms_resolve_lock);
    ms_libraries_refresh_locked();
    library = ms_library_at_locked(address, ms_rows[row]->api);
    found = library ? ms_library_function_locked(library, row) : 0;
    ms_unlock(&ms_resolve_lock);
    return (void *)found;
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

bool ms_library_row_locked(uintptr_t address, int preferred, enum ms_row *row_p, const struct ms_gpu **gpu_p)
{
    bool found = false;

    for (unsigned i = (unsigned)(address * 0x9e3779b97f4a7c15u >> 40) % MAP_SLOTS; map[i].address;
         i = (i + 1) % MAP_SLOTS) {
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

/* `name` as it is exported in a version of its own, and as the twin for the thread's own stream of that. */
static bool is_later(const struct ms_elf *elf, uintptr_t address, const char *name)
{
    static const char twins[][6] = {"", "_ptsz", "_ptds"};
    char exported[80];
    size_t length = strlen(name);

    if (length + sizeof("_vN_ptsz") > sizeof(exported))
        return false;
    memcpy(exported, name, length + 1);
    for (int version = '2'; version <= '9'; version++) {
        for (unsigned i = 0; i < sizeof(twins) / sizeof(twins[0]); i++) {
            memcpy(exported + length, (const char[]){'_', 'v', (char)version}, 3);
            memcpy(exported + length + 3, twins[i], sizeof(twins[i]));
            if (ms_elf_symbol(elf, exported) == address)
                return true;
        }
    }
    return false;
}

struct later_search {
    uintptr_t address;
    const char *name;
    bool found;
};

static int match_later(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct later_search *search = arg;
    struct ms_elf elf;
    (void)size;

    if (!ms_elf_holds(info, search->address))
        return 0;
    search->found = ms_elf_open(info, &elf) && is_later(&elf, search->address, search->name);
    return 1;
}

bool ms_library_is_later_locked(uintptr_t address, const char *name)
{
    struct later_search search = {.address = address, .name = name};

    ms_each_object(match_later, &search);
    return search.found;
}

bool ms_library_is_plain_runtime(const void *real)
{
    const struct ms_library *library;
    bool plain;

    ms_lock(&ms_resolve_lock);
    ms_libraries_refresh_locked();
    library = ms_library_at_locked((uintptr_t)real, MS_API_CUDA_RUNTIME);
    plain = library && library->nodes >> MS_NODE_12 != 0 && !ms_bind_chained(MS_ROW_cudaMalloc) &&
            !ms_bind_chained(MS_ROW_cudaFree) &&
            !ms_listener_is_there(ms_library_count_locked(MS_API_CUPTI) > 0);
    ms_unlock(&ms_resolve_lock);
    return plain;
}
