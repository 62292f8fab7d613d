/* listeners.h - who wants to hear of every call of the runtime's, and so must be told of those that memshim
 * could answer itself.
 *
 * Floor 3. CUPTI tells its listeners of calls that enter the runtime; what is answered in the runtime's hook
 * (runtime.h) does not. A listener is known by the functions of CUPTI's that begin to listen (cupti.def).
 * That the library is loaded says nothing: every PyTorch loads it. Where one of those could be called unseen,
 * it is enough. Once there was a listener there may be one for ever: nothing is won by waiting for its end. A
 * CUPTI that is linked statically has no names, and is not seen. No lock, no allocation: anybody may call
 * these, also in a signal handler and before the constructor. */
#ifndef MS_HOOKS_LOOKUP_LISTENERS_H
#define MS_HOOKS_LOOKUP_LISTENERS_H

#include <stdbool.h>

/** Before the vendor's function: somebody listens from now on. What threads know of a runtime is void. */
void ms_listener_came(void);

/** A function that listens may be reached past us (RTLD_DEEPBIND, a namespace, RTLD_NEXT): from now on, that
 * there could be a listener is as good as that there is one. */
void ms_listener_unseen(void);

/** True if calls have to enter the runtime; `loaded`: a CUPTI is in this process. */
bool ms_listener_is_there(bool loaded);

#endif
