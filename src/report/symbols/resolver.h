/* resolver.h - names for the addresses of one ELF file, from its symbols and debug information.
 *
 * Floor 4, command line only; elfutils behind it. Reads files, never the network. */
#ifndef MS_REPORT_SYMBOLS_RESOLVER_H
#define MS_REPORT_SYMBOLS_RESOLVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Places to look in, besides those of this machine; NULL for neither. */
struct ms_symbol_places {
    const char *sysroot; /* put before the recorded paths, and before /usr/lib/debug */
    const char
        *debug_path; /* a directory of separate debug files (.build-id/..., or by .gnu_debuglink name) */
};

enum ms_resolver_status {
    MS_RESOLVER_OK,
    MS_RESOLVER_MISSING,  /* no such file */
    MS_RESOLVER_MISMATCH, /* the file is another build than the recorded one */
    MS_RESOLVER_BROKEN    /* no ELF file that could be read */
};

/** One function an address lies in. Strings are the resolver's and live as long as it does; NULL or 0 where
 * not known. */
struct ms_location {
    const char *function;
    const char *file;
    int line;
    bool inlined; /* into the next location */
};

struct ms_resolver;

/** Open the file behind a recorded path. `build_id` is the recorded one in hex, "" if none was (then any file
 * is taken). */
enum ms_resolver_status ms_resolver_open(const char *path, const char *build_id,
                                         const struct ms_symbol_places *places,
                                         struct ms_resolver **resolver_p);
void ms_resolver_close(struct ms_resolver *resolver);

/** Which state of the file, and of its separate debug information, names are read from: as long as this text
 * is the same, so are they. "" where that cannot be told. */
void ms_resolver_state(struct ms_resolver *resolver, char *state, size_t bytes);

/** The functions that the instruction at `pc` (an address as in the file) belongs to, innermost first; 0 if
 * none is known. */
size_t ms_resolver_lookup(struct ms_resolver *resolver, uint64_t pc, struct ms_location *locations,
                          size_t max);

#endif
