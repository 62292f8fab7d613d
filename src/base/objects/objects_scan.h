/* objects_scan.h - a look at the loader's list; private to objects*.c.
 *
 * Floor 0. Where nothing was unloaded since the latest look only what came since is looked at: a program that
 * loads a thousand libraries, one for each kernel that it compiles, pays for each of them once. */
#ifndef MS_BASE_OBJECTS_OBJECTS_SCAN_H
#define MS_BASE_OBJECTS_OBJECTS_SCAN_H

#include <link.h>
#include <stddef.h>

#include "base/objects/objects.h"

struct ms_objects_scan {
    struct ms_object *rows; /* of what is new */
    size_t count, capacity;
    uint32_t *seen; /* the rows of what was known and is there, if this is a look at all */
    size_t seen_count, seen_capacity;
    struct ms_objects_since since; /* what was seen now */
    bool is_all, is_short;
    struct ms_object *few; /* a buffer, or NULL: as a rule one object came, and nothing is mapped for it */
};

/** Looks at what came since the latest look. False without memory. On an auxiliary stack, with no lock of
 * objects.c's. */
bool ms_objects_scan(struct ms_objects_scan *look, const struct ms_objects_since *since);
void ms_objects_scan_end(struct ms_objects_scan *look);

/** ms_each_object_since, in turn with all others. */
int ms_objects_go_since(struct ms_objects_since *since, void (*anew)(void *arg),
                        int (*callback)(struct dl_phdr_info *, size_t, void *), void *arg);

/** True if both are the same object, by file names and not paths: a relative path was made absolute with the
 * directory of that moment. */
bool ms_object_is(const struct ms_object *a, const struct ms_object *b);

/** Once, early, under the lock: the link reads otherwise after a chroot, or when the file was replaced. */
void ms_objects_learn_executable(void);

#endif
