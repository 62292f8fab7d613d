/* closure.h - the libraries that a program will be loaded with, found as the loader finds them.
 *
 * Floor 5. */
#ifndef MS_CLI_DOCTOR_CLOSURE_H
#define MS_CLI_DOCTOR_CLOSURE_H

#include "cli/doctor/elf_program.h"

/** One object; the first is the program. */
struct ms_loaded {
    char *name;    /* as its user names it */
    size_t parent; /* who named it first */
    bool found;    /* where not: elf is empty */
    struct ms_elf_program elf;
};

struct ms_closure {
    struct ms_loaded *rows;
    size_t count;
};

/** Everything that `path` needs, breadth first, each name once: DT_RPATH, LD_LIBRARY_PATH, DT_RUNPATH, the
 * loader's cache and the system's directories, in the order and with the exceptions that ld.so(8) lists. */
void ms_closure_read(const char *path, struct ms_closure *closure_p);
void ms_closure_free(struct ms_closure *closure);

/** The path at which a program without paths of its own would find a library with this name, or NULL;
 * malloc's. */
char *ms_closure_find(const char *name);

#endif
