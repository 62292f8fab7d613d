/* elf.h - looking into the dynamic section of an object that is loaded in this process.
 *
 * Floor 0. Reads the object's own memory and nothing else: no allocation, no lock, no call into the loader,
 * nor of any library function: a sanitizer in the host replaces those, and asks dlsym before its own work. So
 * it works where dlsym would wait for the loader's lock. Everything here is valid only while the object stays
 * loaded: use it inside a dl_iterate_phdr callback. */
#ifndef MS_BASE_OBJECTS_ELF_H
#define MS_BASE_OBJECTS_ELF_H

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

struct ms_elf {
    uintptr_t bias;
    const char *strings;
    const ElfW(Sym) * symbols;
    const uint32_t *gnu_hash;
    const uint32_t *sysv_hash;
    const ElfW(Half) * versions; /* NULL in an unversioned object */
    const ElfW(Dyn) * dynamic;
    const char *soname; /* NULL if it has none */
};

/** False for an object without a dynamic section or without a symbol table. */
bool ms_elf_open(const struct dl_phdr_info *info, struct ms_elf *elf_p);

/** As ms_elf_open, from an object's bias and dynamic section, as the loader's own list has them. */
bool ms_elf_read(uintptr_t bias, const ElfW(Dyn) * dynamic, struct ms_elf *elf_p);

/** Address of the default definition of `name`, or 0. Indirect functions count as absent: calling their
 * resolver is the loader's. */
uintptr_t ms_elf_symbol(const struct ms_elf *elf, const char *name);

/** As ms_elf_symbol, with the end of what the symbol names. */
uintptr_t ms_elf_range(const struct ms_elf *elf, const char *name, uintptr_t *end_p);

/** strcmp(a, b) == 0, without calling a function that somebody may have replaced and not yet bound. */
bool ms_elf_same_name(const char *a, const char *b);

/** The i-th DT_NEEDED name, or NULL past the last. */
const char *ms_elf_needed(const struct ms_elf *elf, unsigned index);

/** Calls `visit` with the name of each symbol of others' that the object's code or data is bound to; some
 * come more than once. */
void ms_elf_each_import(const struct ms_elf *elf, void (*visit)(const char *name, void *arg), void *arg);

/** True if the object defines symbols at the version node `name`. */
bool ms_elf_has_version(const struct ms_elf *elf, const char *name);

/** A function that is called with a symbol that an object leaves to others to define, and the address that
 * the loader has put in for it; true ends the search. A symbol that is not bound yet leads into the object
 * itself. */
typedef bool ms_elf_visit(void *arg, const char *symbol, uintptr_t address);

/** Calls `visit` with each, until that says true; whether it did. By relocations, since not every object has
 * its undefined symbols in a table whose length can be told. */
bool ms_elf_each_bound(const struct ms_elf *elf, ms_elf_visit *visit, void *arg);

/** True if `address` lies in one of the object's loaded segments. */
bool ms_elf_holds(const struct dl_phdr_info *info, uintptr_t address);

#endif
