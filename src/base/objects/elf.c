/* elf.c - symbols, dependencies and bindings of a loaded object, read from its dynamic section. See elf.h. */
#include "base/objects/elf.h"

#include <elf.h>
#include <stddef.h>

#define VERSION_HIDDEN 0x8000u

/* The kinds of relocations by which an object gets the address of another's symbol. */
#ifdef __aarch64__
enum { JUMP_SLOT = 1026, GLOB_DAT = 1025, WORD = 257 };
#else
enum { JUMP_SLOT = 7, GLOB_DAT = 6, WORD = 1 };
#endif

/* glibc relocates these pointers in place on most machines and leaves them relative on a few. */
static const void *at(uintptr_t bias, ElfW(Addr) value)
{
    return (const void *)(value < bias ? bias + value : (uintptr_t)value);
}

static const ElfW(Dyn) * find_dynamic(const struct dl_phdr_info *info)
{
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            return (const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    }
    return NULL;
}

bool ms_elf_open(const struct dl_phdr_info *info, struct ms_elf *elf_p)
{
    return ms_elf_read(info->dlpi_addr, find_dynamic(info), elf_p);
}

bool ms_elf_read(uintptr_t bias, const ElfW(Dyn) * dynamic, struct ms_elf *elf_p)
{
    struct ms_elf elf = {.bias = bias, .dynamic = dynamic};
    ElfW(Xword) soname = 0;
    bool has_soname = false;

    if (!elf.dynamic)
        return false;
    for (const ElfW(Dyn) *d = elf.dynamic; d->d_tag != DT_NULL; d++) {
        switch (d->d_tag) {
        case DT_STRTAB:
            elf.strings = at(elf.bias, d->d_un.d_ptr);
            break;
        case DT_SYMTAB:
            elf.symbols = at(elf.bias, d->d_un.d_ptr);
            break;
        case DT_GNU_HASH:
            elf.gnu_hash = at(elf.bias, d->d_un.d_ptr);
            break;
        case DT_HASH:
            elf.sysv_hash = at(elf.bias, d->d_un.d_ptr);
            break;
        case DT_VERSYM:
            elf.versions = at(elf.bias, d->d_un.d_ptr);
            break;
        case DT_SONAME:
            soname = d->d_un.d_val;
            has_soname = true;
            break;
        default:
            break;
        }
    }
    if (!elf.strings || !elf.symbols || (!elf.gnu_hash && !elf.sysv_hash))
        return false;
    if (has_soname)
        elf.soname = elf.strings + soname;
    *elf_p = elf;
    return true;
}

/* Not strcmp: a sanitizer in the host looks its interceptors up with dlsym before they work, and strcmp is
 * one of them. */
bool ms_elf_same_name(const char *a, const char *b)
{
    while (*a && *a == *b)
        a++, b++;
    return *a == *b;
}

/* The definition a plain lookup would choose: defined, a function or data, visible, and of the default
 * version. */
static const ElfW(Sym) * accept(const struct ms_elf *elf, uint32_t index, const char *name)
{
    const ElfW(Sym) *symbol = &elf->symbols[index];
    unsigned type = ELF64_ST_TYPE(symbol->st_info);

    if (symbol->st_shndx == SHN_UNDEF || symbol->st_value == 0)
        return NULL;
    if (type != STT_FUNC && type != STT_OBJECT && type != STT_NOTYPE)
        return NULL;
    if (elf->versions && (elf->versions[index] & VERSION_HIDDEN))
        return NULL;
    return ms_elf_same_name(elf->strings + symbol->st_name, name) ? symbol : NULL;
}

static const ElfW(Sym) * find_gnu(const struct ms_elf *elf, const char *name)
{
    const uint32_t *table = elf->gnu_hash;
    uint32_t buckets = table[0], first = table[1], bloom_words = table[2], shift = table[3];
    const ElfW(Addr) *bloom = (const ElfW(Addr) *)(table + 4);
    const uint32_t *bucket = (const uint32_t *)(bloom + bloom_words);
    const uint32_t *chain = bucket + buckets;
    const unsigned bits = 8 * sizeof(ElfW(Addr));
    uint32_t hash = 5381, index;

    for (const unsigned char *c = (const unsigned char *)name; *c; c++)
        hash = hash * 33 + *c;
    if (buckets == 0 || bloom_words == 0)
        return NULL;
    ElfW(Addr) word = bloom[hash / bits % bloom_words];
    if (!(word >> hash % bits & word >> (hash >> shift) % bits & 1))
        return NULL;
    index = bucket[hash % buckets];
    if (index < first)
        return NULL;
    for (;; index++) {
        uint32_t link = chain[index - first];
        const ElfW(Sym) *symbol = (link | 1) == (hash | 1) ? accept(elf, index, name) : NULL;
        if (symbol || (link & 1))
            return symbol;
    }
}

static const ElfW(Sym) * find_sysv(const struct ms_elf *elf, const char *name)
{
    const uint32_t *table = elf->sysv_hash;
    uint32_t buckets = table[0], hash = 0;

    for (const unsigned char *c = (const unsigned char *)name; *c; c++) {
        hash = (hash << 4) + *c;
        hash ^= hash >> 24 & 0xf0;
        hash &= 0x0fffffff;
    }
    if (buckets == 0)
        return NULL;
    for (uint32_t i = table[2 + hash % buckets]; i != STN_UNDEF; i = table[2 + buckets + i]) {
        const ElfW(Sym) *symbol = accept(elf, i, name);
        if (symbol)
            return symbol;
    }
    return NULL;
}

uintptr_t ms_elf_range(const struct ms_elf *elf, const char *name, uintptr_t *end_p)
{
    const ElfW(Sym) *symbol = elf->gnu_hash ? find_gnu(elf, name) : find_sysv(elf, name);
    uintptr_t address = symbol ? elf->bias + symbol->st_value : 0;

    *end_p = symbol ? address + symbol->st_size : 0;
    return address;
}

uintptr_t ms_elf_symbol(const struct ms_elf *elf, const char *name)
{
    uintptr_t end;

    return ms_elf_range(elf, name, &end);
}

/* Some loaders write addresses into the dynamic section, others leave what lies in the file. */
static uintptr_t address_of(const struct ms_elf *elf, ElfW(Addr) value)
{
    return value < elf->bias ? elf->bias + value : value;
}

static void visit_imports(const struct ms_elf *elf, uintptr_t table, size_t bytes,
                          void (*visit)(const char *, void *), void *arg)
{
    const ElfW(Rela) *relocations = (const ElfW(Rela) *)table;

    for (size_t i = 0; table && i < bytes / sizeof(*relocations); i++) {
        const ElfW(Sym) *symbol = &elf->symbols[ELF64_R_SYM(relocations[i].r_info)];
        if (ELF64_R_SYM(relocations[i].r_info) && symbol->st_shndx == SHN_UNDEF)
            visit(elf->strings + symbol->st_name, arg);
    }
}

void ms_elf_each_import(const struct ms_elf *elf, void (*visit)(const char *name, void *arg), void *arg)
{
    uintptr_t plain = 0, jumps = 0;
    size_t plain_bytes = 0, jump_bytes = 0;

    for (const ElfW(Dyn) *d = elf->dynamic; d->d_tag != DT_NULL; d++) {
        if (d->d_tag == DT_RELA)
            plain = address_of(elf, d->d_un.d_ptr);
        else if (d->d_tag == DT_RELASZ)
            plain_bytes = d->d_un.d_val;
        else if (d->d_tag == DT_JMPREL)
            jumps = address_of(elf, d->d_un.d_ptr);
        else if (d->d_tag == DT_PLTRELSZ)
            jump_bytes = d->d_un.d_val;
        else if (d->d_tag == DT_PLTREL && d->d_un.d_val != DT_RELA)
            return; /* not on these machines */
    }
    visit_imports(elf, plain, plain_bytes, visit, arg);
    visit_imports(elf, jumps, jump_bytes, visit, arg);
}

const char *ms_elf_needed(const struct ms_elf *elf, unsigned index)
{
    for (const ElfW(Dyn) *d = elf->dynamic; d->d_tag != DT_NULL; d++) {
        if (d->d_tag == DT_NEEDED && index-- == 0)
            return elf->strings + d->d_un.d_val;
    }
    return NULL;
}

static ElfW(Xword) dynamic_value(const struct ms_elf *elf, ElfW(Sxword) tag)
{
    for (const ElfW(Dyn) *d = elf->dynamic; d->d_tag != DT_NULL; d++) {
        if (d->d_tag == tag)
            return d->d_un.d_val;
    }
    return 0;
}

bool ms_elf_has_version(const struct ms_elf *elf, const char *name)
{
    const char *definition = at(elf->bias, dynamic_value(elf, DT_VERDEF));

    for (ElfW(Xword) left = dynamic_value(elf, DT_VERDEFNUM); left; left--) {
        const ElfW(Verdef) *version = (const ElfW(Verdef) *)definition;
        const ElfW(Verdaux) *first = (const ElfW(Verdaux) *)(definition + version->vd_aux);
        if (!(version->vd_flags & VER_FLG_BASE) && ms_elf_same_name(elf->strings + first->vda_name, name))
            return true;
        definition += version->vd_next;
    }
    return false;
}

static bool visit_relocations(const struct ms_elf *elf, const ElfW(Rela) * r, size_t count,
                              ms_elf_visit *visit, void *arg)
{
    for (size_t i = 0; i < count; i++) {
        unsigned type = (unsigned)ELF64_R_TYPE(r[i].r_info);
        const ElfW(Sym) *symbol = &elf->symbols[ELF64_R_SYM(r[i].r_info)];
        const uintptr_t *word = (const uintptr_t *)(elf->bias + r[i].r_offset);

        if ((type != JUMP_SLOT && type != GLOB_DAT && type != WORD) || ELF64_R_SYM(r[i].r_info) == 0 ||
            symbol->st_shndx != SHN_UNDEF)
            continue;
        if (visit(arg, elf->strings + symbol->st_name, __atomic_load_n(word, __ATOMIC_RELAXED)))
            return true;
    }
    return false;
}

/* Calls first: there are fewer of them. Of the others the first are the object's own addresses, and their
 * number is known. */
bool ms_elf_each_bound(const struct ms_elf *elf, ms_elf_visit *visit, void *arg)
{
    const ElfW(Rela) *calls = at(elf->bias, dynamic_value(elf, DT_JMPREL)),
                     *others = at(elf->bias, dynamic_value(elf, DT_RELA));
    size_t call_count = dynamic_value(elf, DT_PLTRELSZ) / sizeof(*calls);
    size_t other_count = dynamic_value(elf, DT_RELASZ) / sizeof(*others),
           own_count = dynamic_value(elf, DT_RELACOUNT);

    if (dynamic_value(elf, DT_PLTREL) == DT_RELA && visit_relocations(elf, calls, call_count, visit, arg))
        return true;
    return own_count < other_count &&
           visit_relocations(elf, others + own_count, other_count - own_count, visit, arg);
}

bool ms_elf_holds(const struct dl_phdr_info *info, uintptr_t address)
{
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type == PT_LOAD && address - info->dlpi_addr - segment->p_vaddr < segment->p_memsz)
            return true;
    }
    return false;
}
