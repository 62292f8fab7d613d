/* symtab.c - the symbols of one ELF file, in the order of their addresses; see symtab.h.
 *
 * Floor 4, command line only. */
#include "report/symbols/symtab.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static unsigned char rank_of(const GElf_Sym *symbol)
{
    switch (GELF_ST_BIND(symbol->st_info)) {
    case STB_GLOBAL:
    case STB_GNU_UNIQUE:
        return 2;
    case STB_WEAK:
        return 1;
    default:
        return 0;
    }
}

/* True if an address of code can be in the symbol. */
static bool is_place(const GElf_Sym *symbol, GElf_Word section, const char *name)
{
    unsigned char type = GELF_ST_TYPE(symbol->st_info);

    return name && *name && section != SHN_UNDEF && section != SHN_ABS && type != STT_SECTION &&
           type != STT_FILE && type != STT_TLS;
}

static int symtab_compare(const void *a, const void *b)
{
    const struct ms_symbol *x = a, *y = b;

    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    if (x->end != y->end) /* the shorter one begins to end first, and is the inner one */
        return x->end > y->end ? -1 : 1;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return -strcmp(x->name, y->name);
}

void ms_symtab_read(struct ms_symtab *table, Dwfl_Module *module)
{
    int count = dwfl_module_getsymtab(module), i;
    GElf_Addr reach = 0;

    *table = (struct ms_symtab){
        .module = module, .symbols = count > 0 ? calloc((size_t)count, sizeof(struct ms_symbol)) : NULL};
    for (i = 1; table->symbols && i < count; i++) {
        GElf_Sym symbol;
        GElf_Addr start;
        GElf_Word section;
        const char *name = dwfl_module_getsym_info(module, i, &symbol, &start, &section, NULL, NULL);

        if (is_place(&symbol, section, name))
            table->symbols[table->count++] =
                (struct ms_symbol){.start = start,
                                   .end = start + symbol.st_size < start ? start : start + symbol.st_size,
                                   .name = name,
                                   .rank = rank_of(&symbol)};
    }
    if (table->count)
        qsort(table->symbols, table->count, sizeof(*table->symbols), symtab_compare);
    for (size_t k = 0; k < table->count; k++) {
        reach = table->symbols[k].end > reach ? table->symbols[k].end : reach;
        table->symbols[k].reach = reach;
    }
}

void ms_symtab_free(struct ms_symtab *table)
{
    free(table->symbols);
    *table = (struct ms_symtab){.symbols = NULL};
}

static bool share_section(Dwfl_Module *module, GElf_Addr one, GElf_Addr other)
{
    Dwarf_Addr bias;
    Elf_Scn *section = dwfl_module_address_section(module, &one, &bias);

    return section && section == dwfl_module_address_section(module, &other, &bias);
}

const char *ms_symtab_find(const struct ms_symtab *table, GElf_Addr address)
{
    const struct ms_symbol *label;
    size_t low = 0, high = table->count, i;

    while (low < high) { /* the first that starts behind the address */
        size_t middle = low + (high - low) / 2;

        if (table->symbols[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    for (i = low; i > 0 && table->symbols[i - 1].reach > address; i--)
        if (table->symbols[i - 1].end > address)
            return table->symbols[i - 1].name;
    /* Nothing of known length covers it: the nearest label behind all that has ended. */
    label = low ? &table->symbols[low - 1] : NULL;
    return label && label->start == label->end && share_section(table->module, label->start, address)
               ? label->name
               : NULL;
}
