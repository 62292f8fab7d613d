/* unknown.h - functions of the driver's that may begin a capture, and that no row knows.
 *
 * Floor 3. A newer driver may have ways to begin a capture that this memshim cannot see; an event over the
 * context would destroy what they begin. Such a function is told by its name. Looked up it means nothing, for
 * runtimes look everything up; so what is handed out is a way of our own, which notes the call and leaves for
 * the driver with every register and every word of the stack as it came (ways_*.S): neither the number of the
 * arguments nor their types are known. From the first call on the pool's fences are events in each stream
 * (pool/fence/fence_streams.c). HIP is asked nothing more, since whatever one asks it may destroy a capture:
 * memory that is freed waits until the program has waited for the device. Where a call could not be noted (no
 * way is left, dlsym(RTLD_NEXT), an object that is linked with such a function) the lookup, or the object,
 * counts as the call. */
#ifndef MS_HOOKS_LOOKUP_UNKNOWN_H
#define MS_HOOKS_LOOKUP_UNKNOWN_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/compiler.h"
#include "vendor/context_scope.h"
#include "hooks/hook.h"

struct ms_elf;

/** Ways that can be told apart. The driver of CUDA 13.5 has three such functions more than 13.0, which is the
 * newest that tests hold the rows against: room for as many again, of two libraries, and for their twins. */
enum { MS_TRAMPOLINES = 16, MS_TRAMPOLINE_BYTES = 64 };

/** True if a name is one of a stream function's; no other has begun a capture. For every lookup: it calls
 * nobody, not even the C library, in place of whose functions a sanitizer may have put its own. */
static inline bool ms_unknown_has_prefix(const char *name)
{
    if (name[0] == 'c')
        return name[1] == 'u' && name[2] == 'S';
    return name[0] == 'h' && name[1] == 'i' && name[2] == 'p' && name[3] == 'S';
}

/** True if a name is that of a function that may begin a capture and that no row knows; `*api_p` is whose.
 * Calls nobody. */
bool ms_unknown_is(const char *name, enum ms_api *api_p);

/** Returns what the program gets instead of `pointer`, which the driver has under that name. Resolve lock
 * held. */
void *ms_unknown_trampoline_locked(void *pointer, const char *name);

/** A function of that name may be called from now on without our knowing it: it counts as called. */
void ms_unknown_note(const char *name);

/** Looks at what an object that was loaded is linked with. Resolve lock held, the object stays loaded
 * meanwhile. */
void ms_unknown_look_at(const struct ms_elf *elf);

/** The report says which, once. No lock held; in a hook scope. */
void ms_unknown_tell_slowly(void);
extern atomic_bool ms_unknown_told;
static inline void ms_unknown_tell(void)
{
    if (MS_UNLIKELY(ms_captures_are_unseen()) &&
        !atomic_load_explicit(&ms_unknown_told, memory_order_relaxed))
        ms_unknown_tell_slowly();
}

/* For ways_*.S: way `k` calls ms_trampoline_reals[k], and sets ms_trampoline_called[k] and
 * ms_captures_unseen. */
extern void *ms_trampoline_reals[MS_TRAMPOLINES];
extern _Atomic uint32_t ms_trampoline_called[MS_TRAMPOLINES];
extern const char ms_trampolines[MS_TRAMPOLINES * MS_TRAMPOLINE_BYTES];

#endif
