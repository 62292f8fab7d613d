/* scopes.h - the functions of compilation units by their addresses, and what is inlined where in them.
 *
 * Floor 4, command line only. libdw goes through a unit from its beginning, twice, for each address that it
 * is asked for: here it is gone through once, and its functions are then searched by halves. */
#ifndef MS_REPORT_SYMBOLS_SCOPES_H
#define MS_REPORT_SYMBOLS_SCOPES_H

#include <elfutils/libdw.h>
#include <stddef.h>

struct ms_scopes_unit;

struct ms_scopes {
    struct ms_scopes_unit *units[256]; /* what was looked into so far, by the address of the unit */
};

/** The entries that enclose `pc` in `unit`, from its function inwards: at most `max`, each inside the one
 * before it. Returns how many there are: 0 if no function is known to be there. */
size_t ms_scopes_find(struct ms_scopes *scopes, Dwarf_Die *unit, Dwarf_Addr pc, Dwarf_Die *chain, size_t max);
void ms_scopes_free(struct ms_scopes *scopes);

#endif
