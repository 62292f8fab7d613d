/* loader.c - the loader's functions and its lists of objects, found without calling anybody.
 *
 * A sanitizer in the host asks dlsym before any function that it replaces can be called, dl_iterate_phdr
 * among them. So the lists are read as a debugger reads them, from the main program's headers on. Called from
 * the constructor, from entry points and at exit; no lock, no allocation. */
#include "hooks/lookup/resolve.h"

#include <sys/auxv.h>

#include "base/objects/elf.h"
#include "hooks/lookup/entry.h"

void *(*ms_real_dlsym)(void *, const char *);
void *(*ms_real_dlvsym)(void *, const char *, const char *);
void *(*ms_real_dlopen)(const char *, int);
void *(*ms_real_dlmopen)(long, const char *, int);
int (*ms_real_dlclose)(void *);

void *ms_real_ends[MS_REAL_ENDS];

enum { LOADER_NAMES = 5, NAMES = LOADER_NAMES + MS_REAL_ENDS };

static const char *const names[NAMES] = {"dlsym",        "dlvsym", "dlopen", "dlmopen", "dlclose",
#define MS_END(name) #name,
                                         MS_ENDS(MS_END)
#undef MS_END
};

extern ElfW(Dyn) ms_own_dynamic[] __asm__("_DYNAMIC") __attribute__((visibility("hidden")));

static const struct r_debug *loader_state(void)
{
    const ElfW(Phdr) *headers = (const ElfW(Phdr) *)getauxval(AT_PHDR), *dynamic = NULL;
    unsigned long count = getauxval(AT_PHNUM);
    uintptr_t bias = 0;

    for (unsigned long i = 0; headers && i < count; i++) {
        if (headers[i].p_type == PT_PHDR)
            bias = (uintptr_t)headers - headers[i].p_vaddr;
        else if (headers[i].p_type == PT_DYNAMIC)
            dynamic = &headers[i];
    }
    if (!dynamic)
        return NULL;
    for (const ElfW(Dyn) *d = (const ElfW(Dyn) *)(bias + dynamic->p_vaddr); d->d_tag != DT_NULL; d++) {
        if (d->d_tag == DT_DEBUG && d->d_un.d_ptr)
            return (const struct r_debug *)d->d_un.d_ptr;
    }
    return NULL;
}

bool ms_is_second;

bool ms_is_memshim(const struct ms_elf *elf)
{
    return ms_elf_symbol(elf, "memshim_phase_begin") && ms_elf_symbol(elf, "dlvsym");
}

/* The next definitions after ours in the order of loading: another preload's if there is one, else the C
 * library's. Another copy of memshim's is passed over. */
void ms_resolve_loader(void)
{
    uintptr_t found[NAMES] = {0};
    const struct r_debug *state = loader_state();
    const struct link_map *object = state ? state->r_map : NULL;
    struct ms_elf elf;

    for (; object && object->l_ld != ms_own_dynamic; object = object->l_next) {
        if (ms_elf_read(object->l_addr, object->l_ld, &elf) && ms_is_memshim(&elf))
            ms_is_second = true;
    }
    while (object && (object = object->l_next)) {
        if (!ms_elf_read(object->l_addr, object->l_ld, &elf) || ms_is_memshim(&elf))
            continue;
        for (unsigned i = 0; i < NAMES; i++) {
            if (!found[i])
                found[i] = ms_elf_symbol(&elf, names[i]);
        }
    }
    for (unsigned i = 0; i < MS_REAL_ENDS; i++)
        __atomic_store_n(&ms_real_ends[i], (void *)found[LOADER_NAMES + i], __ATOMIC_RELAXED);
    __atomic_store_n(&ms_real_dlvsym, (void *(*)(void *, const char *, const char *))found[1],
                     __ATOMIC_RELAXED);
    __atomic_store_n(&ms_real_dlopen, (void *(*)(const char *, int))found[2], __ATOMIC_RELAXED);
    __atomic_store_n(&ms_real_dlmopen, (void *(*)(long, const char *, int))found[3], __ATOMIC_RELAXED);
    __atomic_store_n(&ms_real_dlclose, (int (*)(void *))found[4], __ATOMIC_RELAXED);
    __atomic_store_n(&ms_real_dlsym, (void *(*)(void *, const char *))found[0], __ATOMIC_RELEASE);
}

/* As <link.h> of glibc 2.35 has it, from version 2 of the state on. */
struct linked_state {
    struct r_debug base;
    struct linked_state *next;
};

/* The state of the next namespace that dlmopen made; C libraries before 2.35 do not link them. */
static const struct r_debug *next_namespace(const struct r_debug *state)
{
    const struct linked_state *next =
        state->r_version >= 2 ? ((const struct linked_state *)state)->next : NULL;

    return next ? &next->base : NULL;
}

bool ms_loader_has_vendor(void)
{
    struct ms_elf elf;

    for (const struct r_debug *state = loader_state(); state; state = next_namespace(state)) {
        for (const struct link_map *object = state->r_map; object; object = object->l_next) {
            if (object->l_ld == ms_own_dynamic || !ms_elf_read(object->l_addr, object->l_ld, &elf) ||
                ms_is_memshim(&elf))
                continue;
            for (unsigned api = 0; api < MS_API_COUNT; api++) {
                if (ms_defines_anchors(&elf, api))
                    return true;
            }
        }
    }
    return false;
}

uintptr_t ms_loader_find(const struct ms_row_info *row, enum ms_version_node node)
{
    const struct r_debug *state = loader_state();
    struct ms_elf elf;

    for (const struct link_map *object = state ? state->r_map : NULL; object; object = object->l_next) {
        if (object->l_ld == ms_own_dynamic || !ms_elf_read(object->l_addr, object->l_ld, &elf) ||
            !ms_defines_anchors(&elf, row->api) || ms_is_memshim(&elf))
            continue;
        if (ms_is_of_node(&elf, node))
            return ms_elf_symbol(&elf, row->symbol);
    }
    return 0;
}
