/* communicators.h - which of NCCL's communicators memory was taken for.
 *
 * Floor 3, for the wrappers of rows of the class COMMUNICATOR, which make one. What the library takes
 * meanwhile in that thread is recorded under the name of the program's call, as what a runtime takes, and its
 * stack is the call's with a mark (unwind/frame.h) of which communicator it is. In threads of its own the
 * library says nothing of it. */
#ifndef MS_HOOKS_FOLLOW_COMMUNICATORS_H
#define MS_HOOKS_FOLLOW_COMMUNICATORS_H

#include "hooks/dispatch.h"

/** Behind ms_name_begin: `count` of them begin in this call, in which the program is this rank of so many; 0
 * ranks if the call does not say. */
void ms_communicators_begin(struct ms_call *call, int count, int rank, int ranks);
/** The outermost group of the thread is about to end: what is taken meanwhile is for those that were begun in
 * it. */
void ms_communicators_group_ends(struct ms_call *call);

#endif
