/*
 * The simulated Ascend runtime's inner contract: what each of its rooms offers the others. It translates
 * between the public interface and the rooms of sim/cuda, of which it has a copy of its own; no driver
 * function of that copy is visible outside.
 *
 * Locks: each room has at most one mutex, held across calls of the rooms below and never across another's
 * here.
 */
#ifndef MEMSIM_ACL_ACL_H
#define MEMSIM_ACL_ACL_H

#include "vendor/abi/acl.h"
#include "vendor/abi/acl_fn.h"
#include "sim/cuda/front.h"
#include "sim/cuda/sim.h"

#define ACL_API(name) __attribute__((visibility("default"))) aclError name

enum acl_fn {
#define X(name) ACL_FN_##name,
#include "sim/acl/exports.def"
#undef X
    ACL_FN_COUNT
};

/* The first line of an exported function's body: of one that needs nothing, and of one that needs a current
 * context. */
#define ACL_ENTER(name)                                                                                      \
    do {                                                                                                     \
        int enter_status = sim_front_enter(ACL_FN_##name);                                                   \
        if (enter_status)                                                                                    \
            return enter_status;                                                                             \
    } while (0)

/* Refuses a call whose arguments are wrong. */
#define ACL_CHECK(good, status)                                                                              \
    do {                                                                                                     \
        if (!(good))                                                                                         \
            return (status);                                                                                 \
    } while (0)

/* Goes on if a call succeeds. */
#define ACL_TRY(call)                                                                                        \
    do {                                                                                                     \
        aclError try_status = (call);                                                                        \
        if (try_status)                                                                                      \
            return try_status;                                                                               \
    } while (0)

/** The interface's number for a status of the rooms below; a number that MEMSIM_FAIL gave is handed on. */
aclError acl_status(CUresult status);

/** The current context is there and sound: 107002 if not. */
aclError acl_context(void);
/** The current context's device; -1 without one. */
int acl_device(void);
/** The stream in which calls without a stream do their work; it waits for no other. */
aclError acl_sync_stream(CUstream *stream_p);
/** True if the value can be a stream's handle at all: small numbers mean something to the rooms below. */
bool acl_stream_valid(aclrtStream stream);

/** Waits until `over` says 0, at most so many milliseconds; for ever if that is negative. Returns over's
 * status, or `late`. */
aclError acl_wait(CUresult (*over)(void *object), void *object, int32_t timeout_ms, aclError late);

/* --- physical.c ----------------------------------------------------------------------------------------- */

/** A physical handle. It is in the table while it has references or mappings. */
struct acl_physical {
    struct acl_physical *next;
    CUmemGenericAllocationHandle number; /* in the rooms below */
    aclrtPhysicalMemProp prop;
    size_t bytes;
    unsigned refs, maps;
    uint64_t shared; /* the one shareable handle it was exported as, or 0 */
    bool imported;
};

void acl_physical_lock(void);
void acl_physical_unlock(void);
/** The object of a handle with references, or NULL. Lock held, as for all below. */
struct acl_physical *acl_physical_find(aclrtDrvMemHandle handle);
/** The object of a handle that is mapped at an address, or NULL. */
struct acl_physical *acl_physical_at(const void *address);
struct acl_physical *acl_physical_enter(CUmemGenericAllocationHandle number, const aclrtPhysicalMemProp *prop,
                                        size_t bytes);
void acl_physical_settle(struct acl_physical *physical);
aclError acl_physical_check(const aclrtPhysicalMemProp *prop);
bool acl_location(const aclrtMemLocation *from, CUmemLocation *to);

/* --- share.c -------------------------------------------------------------------------------------------- */

void acl_share_forget(uint64_t shared);

#endif
