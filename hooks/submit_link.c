/* submit_link.c - objects that are linked with the driver directly: their calls that submit work meet our
 * wrappers too.
 *
 * The loader wrote the driver's address, or the way to it, into a word of the object for each function that
 * it calls. Under MEMSHIM_FREE=ordered those words are written anew, so that nothing need be exported, and
 * nothing stands in the way of a call, under any other policy. Words are looked at in objects that cannot be
 * unloaded meanwhile; one that was read-only is so again afterwards. Under the resolve lock; no allocation.
 * Also looks out for libraries that submit work by private ways. */
#include "hooks/submit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/elf.h"
#include "base/objects.h"
#include "hooks/init.h"
#include "hooks/resolve.h"
#include "hooks/section.h"

#ifdef __aarch64__
enum { JUMP_SLOT = 1026, GLOB_DAT = 1025, WORD = 257 };
#else
enum { JUMP_SLOT = 7, GLOB_DAT = 6, WORD = 1 };
#endif
/* How often the loader is asked whether anything came, after a dlopen began. */
enum { LOOKS = 64 };

static _Atomic int stale = LOOKS;
static unsigned long long linked; /* objects that had been loaded when we looked last */

struct relocations {
    const ElfW(Rela) *first;
    size_t bytes;
};

struct object {
    const struct dl_phdr_info *info;
    struct ms_elf elf;
    struct relocations plain, jumps;
};

static bool holds_relro(const struct dl_phdr_info *info, uintptr_t address)
{
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type == PT_GNU_RELRO &&
            address - info->dlpi_addr - info->dlpi_phdr[i].p_vaddr < info->dlpi_phdr[i].p_memsz)
            return true;
    }
    return false;
}

static void write_word(const struct object *object, uintptr_t *word, uintptr_t value)
{
    uintptr_t page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE), page = (uintptr_t)word & ~(page_bytes - 1);
    bool closed = holds_relro(object->info, (uintptr_t)word);

    if (closed && mprotect((void *)page, page_bytes, PROT_READ | PROT_WRITE) != 0) {
        ms_submit_give_up("%s calls the driver by words that cannot be written",
                          object->elf.soname ? object->elf.soname : "the program");
        return;
    }
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
    if (closed)
        mprotect((void *)page, page_bytes, PROT_READ);
}

static bool any_written; /* by the pass under way: the object may have submitted work before it */
static struct dl_phdr_info program; /* the first object; its stubs may stand for a function everywhere */
/* The driver that objects are bound to, and where its functions are. */
static const struct ms_library *driver;
static uintptr_t reals[MS_SUBMIT_COUNT];

static void replace(const struct object *object, uintptr_t *word, unsigned row)
{
    uintptr_t value = __atomic_load_n(word, __ATOMIC_RELAXED);
    void *wrapper;

    if (!value || ms_is_ours(value))
        return;
    /* Not called yet, the word leads to the object's own stub; what leads there from another object comes by
     * this one too. */
    if (!driver || !reals[row] ||
        (value != reals[row] && !ms_elf_holds(object->info, value) && !ms_elf_holds(&program, value))) {
        ms_submit_give_up("%s is bound to another library than the driver's", ms_submit_rows[row].symbol);
        return;
    }
    wrapper = ms_submit_wrap_locked(row, (void *)reals[row], &driver->gpu);
    if ((uintptr_t)wrapper != reals[row]) {
        write_word(object, word, (uintptr_t)wrapper);
        any_written = true;
    }
}

static void look_through(const struct object *object, const struct relocations *relocations)
{
    for (size_t i = 0; i < relocations->bytes / sizeof(ElfW(Rela)); i++) {
        const ElfW(Rela) *r = &relocations->first[i];
        unsigned type = (unsigned)ELF64_R_TYPE(r->r_info);
        const ElfW(Sym) *symbol = &object->elf.symbols[ELF64_R_SYM(r->r_info)];
        const char *name = object->elf.strings + symbol->st_name;
        int row;

        if ((type != JUMP_SLOT && type != GLOB_DAT && type != WORD) || symbol->st_shndx != SHN_UNDEF ||
            name[0] != 'c' || name[1] != 'u')
            continue;
        row = ms_submit_row_of_symbol(name);
        if (row >= 0)
            replace(object, (uintptr_t *)(object->elf.bias + r->r_offset), (unsigned)row);
    }
}

static const void *at(uintptr_t bias, ElfW(Addr) value)
{
    return (const void *)(value < bias ? bias + value : (uintptr_t)value);
}

static void find_relocations(struct object *object)
{
    bool with_addends = true;

    for (const ElfW(Dyn) *d = object->elf.dynamic; d->d_tag != DT_NULL; d++) {
        switch (d->d_tag) {
        case DT_RELA:
            object->plain.first = at(object->elf.bias, d->d_un.d_ptr);
            break;
        case DT_RELASZ:
            object->plain.bytes = d->d_un.d_val;
            break;
        case DT_JMPREL:
            object->jumps.first = at(object->elf.bias, d->d_un.d_ptr);
            break;
        case DT_PLTRELSZ:
            object->jumps.bytes = d->d_un.d_val;
            break;
        case DT_PLTREL:
            with_addends = d->d_un.d_val == DT_RELA;
            break;
        default:
            break;
        }
    }
    if (!with_addends || !object->jumps.first)
        object->jumps.bytes = 0;
    if (!object->plain.first)
        object->plain.bytes = 0;
}

/* Decoders, encoders and ray tracers of the vendor's get at the driver by tables of its own. */
static void look_for_private_ways(const struct dl_phdr_info *info)
{
    static const char *const names[] = {"libnvcuvid.so", "libnvidia-encode.so", "libnvidia-opticalflow.so",
                                        "libnvoptix.so"};
    const char *slash = strrchr(info->dlpi_name, '/');

    for (unsigned i = 0; i < MS_ARRAY_LEN(names); i++) {
        if (strncmp(slash ? slash + 1 : info->dlpi_name, names[i], strlen(names[i])) == 0)
            ms_submit_give_up("%s submits work by private ways", names[i]);
    }
}

static int visit(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct object object = {.info = info};
    bool *first = arg;

    if (*first)
        program = *info;
    *first = false;
    if (size >= offsetof(struct dl_phdr_info, dlpi_subs) + sizeof(info->dlpi_subs))
        linked = info->dlpi_adds;
    if (ms_is_self(info) || !ms_elf_open(info, &object.elf) ||
        ms_defines_anchors(&object.elf, MS_API_CUDA_DRIVER))
        return 0;
    look_for_private_ways(info);
    find_relocations(&object);
    look_through(&object, &object.plain);
    look_through(&object, &object.jumps);
    return 0;
}

static int find_reals(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct ms_elf elf;
    (void)size, (void)arg;

    if (info->dlpi_addr != driver->bias || !ms_elf_open(info, &elf) ||
        !ms_defines_anchors(&elf, MS_API_CUDA_DRIVER))
        return 0;
    for (unsigned row = 0; row < MS_SUBMIT_COUNT; row++)
        reals[row] = ms_elf_symbol(&elf, ms_submit_rows[row].symbol);
    return 1;
}

static void look_through_all(void)
{
    bool first = true;
    const void *known;

    ms_libraries_refresh_locked();
    known = ms_library_bind_locked(MS_ROW_cuMemAlloc_v2, 0, MS_NODE_NONE, false).real;
    driver = known && ms_library_count_locked(MS_API_CUDA_DRIVER) == 1
                 ? ms_library_at_locked((uintptr_t)known, MS_API_CUDA_DRIVER)
                 : NULL;
    memset(reals, 0, sizeof(reals));
    if (driver)
        ms_each_object(find_reals, NULL);
    any_written = false;
    ms_each_object(visit, &first);
    if (any_written)
        ms_pool_ordered_unseen(0);
}

static int read_adds(struct dl_phdr_info *info, size_t size, void *arg)
{
    if (size >= offsetof(struct dl_phdr_info, dlpi_subs) + sizeof(info->dlpi_subs))
        *(unsigned long long *)arg = info->dlpi_adds;
    return 1;
}

void ms_submit_loading(void)
{
    atomic_store_explicit(&stale, LOOKS, memory_order_relaxed);
}

void ms_submit_refresh(void)
{
    int saved_errno = errno, left = atomic_load_explicit(&stale, memory_order_relaxed);
    unsigned long long adds = 0;

    if (MS_LIKELY(left == 0))
        return;
    ms_lock(&ms_resolve_lock);
    ms_each_object(read_adds, &adds);
    if (adds != linked)
        look_through_all();
    ms_unlock(&ms_resolve_lock);
    atomic_compare_exchange_strong(&stale, &left, left - 1);
    errno = saved_errno;
}

void ms_submit_link(void)
{
    struct ms_section section;

    if (!atomic_load_explicit(&ms_submit_on, memory_order_relaxed))
        return;
    ms_section_enter(&section);
    ms_submit_refresh();
    ms_section_leave(&section);
}

void ms_submit_early(void)
{
}
