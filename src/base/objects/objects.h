/* objects.h - the loaded objects (executables and libraries) of this process.
 *
 * Floor 0. The list is our own snapshot, taken through dl_iterate_phdr, so that a stack's addresses can still
 * be named after their module was unloaded. A module that is gone keeps its row; another one at the same
 * address gets a new row with the next generation. Rows are append-only: reading takes no lock. */
#ifndef MS_BASE_OBJECTS_OBJECTS_H
#define MS_BASE_OBJECTS_OBJECTS_H

#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

#define MS_OBJECT_PATH_BYTES 512

struct ms_object {
    uint64_t start, end; /* the addresses its segments span */
    uint64_t bias;       /* load address: rel_pc = address - bias */
    uint32_t generation; /* counts the objects seen at these addresses before it */
    uint8_t build_id[20];
    uint8_t build_id_bytes;
    atomic_bool gone;                /* unloaded; nothing else may say so of a row */
    char path[MS_OBJECT_PATH_BYTES]; /* "" could not be had; the executable's path is resolved; "...end" if
                                        too long */
};

/** dl_iterate_phdr, in turn with memshim's other calls of it and never during a fork: a child finds the
 * loader's lock as it was left by a thread that is not there, and the C library does not free it. Returns
 * what the callback did. */
int ms_each_object(int (*callback)(struct dl_phdr_info *, size_t, void *), void *arg);

/** The part of the loader's list that a search has seen: all zeros for nothing. Kept by the search, used
 * inside the call alone. */
struct ms_objects_since {
    unsigned long long adds, subs; /* what the loader had counted */
    const struct link_map *last;   /* of the list, good as long as nothing is unloaded */
};

/** As ms_each_object, for the objects that came since. If something was unloaded, or that cannot be told,
 * `anew` is called and then everything is gone through. A callback that ends the search, by what it returns,
 * makes the next one begin anew. */
int ms_each_object_since(struct ms_objects_since *since, void (*anew)(void *arg),
                         int (*callback)(struct dl_phdr_info *, size_t, void *), void *arg);

/** The handlers that pthread_atfork calls for it. The first waits for a second at most, and not at all below
 * memshim's own code. */
void ms_objects_before_fork(void);
void ms_objects_after_fork_parent(void);
void ms_objects_after_fork_child(void);

/** Bring the list up to date. Costs about a microsecond when nothing was loaded or unloaded since: called
 * before a new stack is interned and by the report, not for every event. Errno is preserved. */
void ms_objects_refresh(void);

/** Something may have been loaded or unloaded: called by the hooks of dlopen and dlclose, best after the real
 * call.
 *
 * A store, no more. Without it a module that replaced another at the same address could lend its name to the
 * old one's stacks. */
void ms_objects_changed(void);

/** The counts that tell, by loads alone, whether ms_objects_changed was called since the last refresh. */
extern MS_HIDDEN struct ms_objects_counts {
    _Atomic uint64_t changes, changes_seen; /* announced, and looked at */
    _Atomic uint64_t adds_seen, subs_seen;  /* what the loader had counted then */
} ms_objects_counts;
/** How often it was called. */
static inline uint64_t ms_objects_changes(void)
{
    return atomic_load_explicit(&ms_objects_counts.changes, memory_order_relaxed);
}
static inline bool ms_objects_stale(void)
{
    return ms_objects_changes() !=
           atomic_load_explicit(&ms_objects_counts.changes_seen, memory_order_relaxed);
}

/** True if any object was ever seen to go; while false, ms_object_generation is 0 for every address. */
bool ms_objects_any_gone(void);

/** How many objects the loader had unloaded by the last refresh: what was learned of an address holds while
 * this stays. */
static inline uint64_t ms_objects_unloads(void)
{
    return atomic_load_explicit(&ms_objects_counts.subs_seen, memory_order_relaxed);
}

/** Generation of the object that held `address` when last refreshed, 0 for an address in none. Where the last
 * object is gone it is the next one's, which the next refresh will list. */
uint32_t ms_object_generation(uint64_t address);

/** Row that held `address` when last refreshed, newest generation first; NULL if none. Index in *index_p. */
const struct ms_object *ms_object_at(uint64_t address, uint32_t *index_p);

/** As ms_object_at, of that generation, whether or not it is still loaded. */
const struct ms_object *ms_object_of(uint64_t address, uint32_t generation, uint32_t *index_p);

const struct ms_object *ms_object(uint32_t index);
uint32_t ms_object_count(void);

/** Objects that could not be listed for want of room. */
uint32_t ms_objects_dropped(void);

/** Forget everything, in a fork child; the rows go with the store. */
void ms_objects_reset(void);

#endif
