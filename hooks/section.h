/* section.h - a stretch of memshim's own code in the program's thread.
 *
 * Inside it the thread cannot be cancelled (one that died there would leave a lock held), errno is kept for
 * the program, and the guard is closed, so that a signal handler's calls pass straight to the vendor.
 * Sections nest.
 *
 * A brief section makes cancellation deferred and no more, which costs a tenth: the thread can end only at a
 * cancellation point then. It is for what calls none, or holds cancellation off around it (base/cancel.h). */
#ifndef MS_HOOKS_SECTION_H
#define MS_HOOKS_SECTION_H

#include <errno.h>
#include <pthread.h>

#include "base/cancel.h"
#include "base/guard.h"

struct ms_section {
    int saved_errno;
    int cancel_state;
    int cancel_type;
};

/* The type is set besides the state: glibc's handler of an asynchronous cancellation looks at the type alone,
 * and so ends a thread that disabled cancellation after it was sent. */
static inline void ms_section_enter(struct ms_section *section)
{
    section->saved_errno = errno;
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &section->cancel_type);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &section->cancel_state);
    ms_guard_enter();
}

/* In this order: what came meanwhile is acted on by setcanceltype, which sets the thread's result; glibc's
 * setcancelstate forgets to. */
static inline void ms_section_leave(struct ms_section *section)
{
    ms_guard_leave();
    pthread_setcancelstate(section->cancel_state, &section->cancel_state);
    if (section->cancel_type != PTHREAD_CANCEL_DEFERRED)
        pthread_setcanceltype(section->cancel_type, &section->cancel_type);
    errno = section->saved_errno;
}

/* Cancellation alone; errno is not touched. A type that is deferred already stays so: only the thread itself
 * can change it. */
static inline void ms_section_defer(struct ms_section *section)
{
    section->cancel_type = PTHREAD_CANCEL_DEFERRED;
    if (ms_cancel_is_deferred())
        return;
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &section->cancel_type);
    if (MS_UNLIKELY(section->cancel_type != PTHREAD_CANCEL_DEFERRED))
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &section->cancel_state);
}

static inline void ms_section_defer_no_more(struct ms_section *section)
{
    if (MS_UNLIKELY(section->cancel_type != PTHREAD_CANCEL_DEFERRED)) {
        pthread_setcancelstate(section->cancel_state, &section->cancel_state);
        pthread_setcanceltype(section->cancel_type, &section->cancel_type);
    }
}

static inline void ms_section_enter_brief(struct ms_section *section)
{
    section->saved_errno = errno;
    ms_section_defer(section);
    ms_guard_enter();
}

static inline void ms_section_leave_brief(struct ms_section *section)
{
    ms_guard_leave();
    ms_section_defer_no_more(section);
    errno = section->saved_errno;
}

/* The same inside a section whose cancellation is deferred already. */
static inline void ms_section_enter_nested(struct ms_section *section)
{
    section->saved_errno = errno;
    ms_guard_enter();
}

static inline void ms_section_leave_nested(struct ms_section *section)
{
    ms_guard_leave();
    errno = section->saved_errno;
}

#endif
