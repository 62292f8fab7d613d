/* resolve.h - from a name, a pointer or a caller to the real function, and from there to our wrapper.
 *
 * libraries.c knows which vendor libraries are loaded, bind.c which of several a caller's functions are in,
 * resolve.c which wrapper stands for which real function, and answers dlsym and cuGetProcAddress.
 * One lock (MS_RANK_RESOLVE) covers the tables; it is never held across a vendor call. */
#ifndef MS_HOOKS_LOOKUP_RESOLVE_H
#define MS_HOOKS_LOOKUP_RESOLVE_H

#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/objects/elf.h"
#include "base/lock.h"
#include "base/thread/thread_own.h"
#include "hooks/hook.h"
#include "vendor/gpu.h"
#include "record/live/ledger.h"

/** A loaded object that defines an interface's anchor symbols: only such an object's functions are ever
 * wrapped. */
struct ms_library {
    uintptr_t bias;
    uintptr_t start, end; /* its segments lie between */
    uint64_t name_hash;   /* of its path: tells apart what was loaded at one address in turn */
    uint32_t nodes;       /* a bit for each enum ms_version_node that calls may name it by */
    unsigned order;       /* in the loader's list, from the latest scan */
    uint8_t api;
    bool present;      /* found by the scan under way, or by the latest */
    bool gone;         /* not found by the latest */
    struct ms_gpu gpu; /* of a library whose interface has a vendor (families.def) */
};

#define MS_LIBRARIES_MAX 16
_Static_assert(MS_NODE_COUNT <= 32, "a library's nodes are the bits of a word");

extern struct ms_lock ms_resolve_lock;

/* libraries.c. All of it is called with the lock held. */

/** Bring the table up to date if objects came or went since the last call. */
void ms_libraries_refresh_locked(void);
/** The library of this interface whose segments hold `address`, or NULL. */
const struct ms_library *ms_library_at_locked(uintptr_t address, enum ms_api api);
/** How many libraries of this interface are loaded. */
unsigned ms_library_count_locked(enum ms_api api);
/** Those libraries in the order of loading, at most MS_LIBRARIES_MAX; returns their number. */
unsigned ms_libraries_of_locked(enum ms_api api, const struct ms_library **in_order);
/** A library's function behind a row of its interface; 0 if it has none. */
uintptr_t ms_library_function_locked(const struct ms_library *library, enum ms_row row);
/** The row whose real function in its library is exactly `address`; `preferred` wins where several names
 * share one. */
bool ms_library_row_locked(uintptr_t address, int preferred, enum ms_row *row_p, const struct ms_gpu **gpu_p);

/** The first CUDA driver that is loaded, or NULL; and the function of another row in the vendor's library
 * that `address` lies in. Both take the lock. */
const struct ms_gpu *ms_library_driver(void);
void *ms_library_sibling(uintptr_t address, enum ms_row row);

/** True if its library exports `address` as `name` with a version behind it. */
bool ms_library_is_later_locked(uintptr_t address, const char *name);

/** True if cudaMalloc at `real` asks the driver for memory in the context that is current, whatever came
 * before, and nobody listens in between: so it is from CUDA 12 on, since cudaSetDevice takes effect at once
 * there, where nobody wraps it and nobody listens (listeners.h). Takes the lock. */
bool ms_library_is_plain_runtime(const void *real);

/** True if `address` lies in this shim. */
bool ms_is_ours(uintptr_t address);
bool ms_is_self(const struct dl_phdr_info *info);
/** True of a libmemshim.so, this copy or another one: of several in a process the first in the
 * order of loading acts, whose symbols stand before those of the others, and no copy takes another for a
 * vendor's library. */
bool ms_is_memshim(const struct ms_elf *elf);
/** This copy is not the first: it stays inert. Known once ms_resolve_loader was called. */
extern MS_HIDDEN bool ms_is_second;
/** True if an object is a library of this interface. */
bool ms_defines_anchors(const struct ms_elf *elf, enum ms_api api);
uint64_t ms_hash_text(const char *text);

/** True if calls at this version node may mean an object: it has the node, or the SONAME. Always so for
 * MS_NODE_NONE. */
bool ms_is_of_node(const struct ms_elf *elf, enum ms_version_node node);

/* bind.c: the loader's choice, without asking it. */

/** In the constructor: what is loaded now was there at the program's start. */
void ms_libraries_note_startup(void);
/** `file` is about to be opened with RTLD_GLOBAL. Takes the lock; nothing happens below memshim's own
 * code. */
void ms_bind_note_global(const char *file);
/** The real function behind `row`, as the object holding `caller` would have bound it without us: another
 * interposer that was there at the program's start, then the vendor's library that the loader chose, or would
 * have. With `dependencies_only` the one in the caller's own scope alone. `.real` is NULL when there is none.
 * Lock held. */
struct ms_target ms_library_bind_locked(enum ms_row row, uintptr_t caller, enum ms_version_node node,
                                        bool dependencies_only);
/** As ms_library_bind_locked, but without any lock and without what is remembered, for a thread that may hold
 * them: the function that the loader has put into the caller's object, or else the first library in the order
 * of loading. */
struct ms_target ms_library_bind_lockless(enum ms_row row, uintptr_t caller, enum ms_version_node node);
/** The function of that name in an interposer between us and the vendor's libraries, 0 if there is none. */
uintptr_t ms_bind_chained(enum ms_row row);

/* loader.c: reads the loader's lists without its lock. */

/** The function behind `row` in the first library of its interface that may be meant by calls at `node`; 0 if
 * there is none. For a signal handler, in which dl_iterate_phdr may wait for the thread that it
 * interrupted. */
uintptr_t ms_loader_find(const struct ms_row_info *row, enum ms_version_node node);
/** True if a vendor's library is loaded in any namespace. For the end of a process. */
bool ms_loader_has_vendor(void);

/* resolve.c */

/** The wrapper of `row` that calls exactly `target->real`; NULL when all slots of the row are taken by
 * others. Lock held. */
void *ms_wrapper_slot_take_locked(enum ms_row row, const struct ms_target *target);
extern struct ms_wrapped {
    struct ms_target target;
    bool of_library; /* a function of a library, as opposed to one that only a lookup knows */
} ms_wrapper_slots[MS_ROW_COUNT][MS_WRAPPER_SLOTS];
/** The target that wrapper `slot` of `row` calls. No lock: a slot is written before its wrapper is handed
 * out. */
static inline const struct ms_target *ms_wrapper_slot_target(enum ms_row row, unsigned slot)
{
    return &ms_wrapper_slots[row][slot].target;
}

/** Returns what dlsym, or dlvsym where there is a version, answers for an owned name and a handle other than
 * RTLD_NEXT. */
void *ms_resolve_symbol(void *handle, const char *name, const char *version, const void *caller,
                        enum ms_row row);
/** As ms_resolve_symbol, for a function of `api` that may begin a capture and has no row (unknown.h); NULL:
 * the caller's own lookup may know better. */
void *ms_resolve_unseen_symbol(void *handle, const char *name, const char *version, enum ms_api api);
/** Behind an exported wrapper: the real function for this caller; `.real` is NULL when there is none. Cached
 * by call site. */
struct ms_target ms_resolve_exported(enum ms_row row, const void *caller, enum ms_version_node node);
/** Changes with whatever makes void what was remembered of call sites. */
extern MS_HIDDEN _Atomic uint32_t ms_resolve_generation;
static inline uint64_t ms_resolve_key(enum ms_row row, const void *caller, enum ms_version_node node)
{
    return (uint64_t)node << 58 ^ (uint64_t)row << 48 ^ (uintptr_t)caller;
}
/** The call site of a row that this thread came from last, and what was found for it: a program calls from
 * the same place again and again. Rows share entries, but those that a program calls most have one each. */
enum { MS_KEPT_SITES = 7 };
struct ms_kept_site {
    uint64_t key; /* 0: none; a call site has an address */
    struct ms_target target;
    uint32_t generation;
    /* calls to this target may take the fast path (hits.h) while ms_slow_path_now() says that, 0: never;
     * and end in that driver */
    uint64_t word;
    const struct ms_gpu *driver;
};
_Static_assert(MS_KEPT_SITES * sizeof(struct ms_kept_site) == MS_OWN_SITES_BYTES,
               "its place in thread_own.h");
/** The record that is kept for a row. */
static MS_INLINE const struct ms_kept_site *ms_kept_site(enum ms_row row)
{
    return (const struct ms_kept_site *)(const void *)ms_thread.own->sites + row % MS_KEPT_SITES;
}
/** A record to be changed; NULL where there is no memory to keep anything. Inside memshim's own code. */
static inline struct ms_kept_site *ms_kept_site_mine(enum ms_row row)
{
    struct ms_own *own = ms_own_mine();

    return own ? (struct ms_kept_site *)(void *)own->sites + row % MS_KEPT_SITES : NULL;
}
/** True if what is kept for the row is of this call site, by now: not below memshim's own code, nor without a
 * function. */
bool ms_resolve_keep(enum ms_row row, const void *caller, enum ms_version_node node);
static MS_INLINE bool ms_resolve_keeps(enum ms_row row, const void *caller, enum ms_version_node node)
{
    return MS_LIKELY(ms_kept_site(row)->key == ms_resolve_key(row, caller, node)) ||
           ms_resolve_keep(row, caller, node);
}
/** True if what is kept for the row is of calls to this function. */
static MS_INLINE bool ms_resolve_kept_is(enum ms_row row, const struct ms_target *target)
{
    return ms_kept_site(row)->target.real == target->real;
}
/** Asks, and keeps the answer. */
struct ms_target ms_resolve_and_keep(enum ms_row row, const void *caller, enum ms_version_node node);
/** As ms_resolve_exported, by what is kept. */
static MS_INLINE struct ms_target ms_resolve_kept(enum ms_row row, const void *caller,
                                                  enum ms_version_node node)
{
    const struct ms_kept_site *kept = ms_kept_site(row);

    if (MS_LIKELY(kept->key == ms_resolve_key(row, caller, node) &&
                  kept->generation == atomic_load_explicit(&ms_resolve_generation, memory_order_relaxed)))
        return kept->target;
    return ms_resolve_and_keep(row, caller, node);
}
/** A lookup answered `pointer` for (name, version, flags): what the program gets instead. `pointer` itself if
 * it is none of ours. */
void *ms_resolve_driver_pointer(void *pointer, const char *name, int version, uint64_t flags);
/** An object was unloaded: what was remembered of call sites is void. */
void ms_resolve_unloaded(void);
/** In a fork child, where the holder of the lock does not exist. */
void ms_resolve_reset(void);

/* The C library's own functions, found without calling them (entry_*.S jumps through these). */
extern void *(*ms_real_dlsym)(void *, const char *);
extern void *(*ms_real_dlvsym)(void *, const char *, const char *);
extern void *(*ms_real_dlopen)(const char *, int);
extern void *(*ms_real_dlmopen)(long, const char *, int);
extern int (*ms_real_dlclose)(void *);
/** Fill in the five above. Idempotent, lock free: every thread finds the same answers. */
void ms_resolve_loader(void);

#endif
