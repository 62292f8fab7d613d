/* symtab.h - the symbols of one ELF file, in the order of their addresses.
 *
 * Floor 4, command line only. libdwfl walks its whole table for each address that it is asked for: this one
 * is walked once, and an address is then looked for in it by halves. */
#ifndef MS_REPORT_SYMBOLS_SYMTAB_H
#define MS_REPORT_SYMBOLS_SYMTAB_H

#include <elfutils/libdwfl.h>
#include <stddef.h>

/** One function, or what else has an address in the file. `name` is the file's. */
struct ms_symbol {
    GElf_Addr start, end; /* equal where the file does not say how long it is */
    GElf_Addr reach;      /* the largest end of it and of all before it */
    const char *name;
    unsigned char rank; /* of two with the same address the one with the larger: global, weak, local */
};

struct ms_symtab {
    Dwfl_Module *module;
    struct ms_symbol *symbols;
    size_t count;
};

/** Reads the table of `module`. Without memory, or without symbols, it is empty. */
void ms_symtab_read(struct ms_symtab *table, Dwfl_Module *module);
void ms_symtab_free(struct ms_symtab *table);

/** The name of the symbol that covers `address`, an address of libdwfl's; of several the one that begins
 * last. One of unknown length covers all up to the next symbol or to the end of its section. NULL if there is
 * none.
 */
const char *ms_symtab_find(const struct ms_symtab *table, GElf_Addr address);

#endif
