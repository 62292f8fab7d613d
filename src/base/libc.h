/* libc.h - what C libraries have only lately, for all of them from glibc 2.28 on (docs/user/install.md).
 *
 * Floor 0. One binary runs on all: nothing here is decided when memshim is built. No lock, no allocation. */
#ifndef MS_BASE_LIBC_H
#define MS_BASE_LIBC_H

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

/** The C library's own English words for an error number, from wherever it is called; never NULL. (strerror
 * may allocate and translate; strerrordesc_np is of 2.32.) */
const char *ms_error_text(int error);

/** A loaded object, as the loader finds it by an address in it. */
struct ms_libc_object {
    uintptr_t start, end;
    uintptr_t unwind; /* the header of its unwind table, 0 without one */
    const struct link_map *map;
};

/** True if this process's C library finds objects without a lock (_dl_find_object, of 2.35). */
bool ms_libc_finds_objects(void);

/** The object that `address` lies in; false if there is none, or the C library does not find any. */
bool ms_libc_find_object(uintptr_t address, struct ms_libc_object *object_p);

#endif
