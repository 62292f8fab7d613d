/* displace.h - what the two rooms of the displacer offer each other; see displace.c. */
#ifndef DISPLACE_H
#define DISPLACE_H

#include <limits.h>
#include <link.h>
#include <stddef.h>

/** A file's dynamic section. All strings are malloc's and belong to it. */
struct needs {
    char **names; /* of the libraries that it needs */
    size_t count;
    char *path; /* of DT_RUNPATH, or else DT_RPATH; NULL for none */
};

/** Read what the ELF file `file` needs, a library for this machine. What cannot be read needs nothing. */
void needs_read(const char *file, struct needs *needs_p);
/** Let go of it. */
void needs_free(struct needs *needs);
/** Find `name` along a path of directories, with the place of `own` for $ORIGIN; into `found`. Returns
 * whether it is there. */
int needs_find(const char *path, const char *own, const char *name, char found[PATH_MAX]);

#endif
