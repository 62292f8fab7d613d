/* hook_scope.h - a stretch of memshim's own code in the program's thread.
 *
 * Inside it the thread cannot be cancelled (one that died there would leave a lock held), errno is kept for
 * the program, and the guard is closed, so that a signal handler's calls pass straight to the vendor. Hook
 * scopes nest.
 *
 * A brief hook scope makes cancellation deferred and no more, which costs a tenth: the thread can end only at
 * a cancellation point then. It is for what calls none, or holds cancellation off around it
 * (base/thread/cancel.h). */
#ifndef MS_HOOKS_HOOK_SCOPE_H
#define MS_HOOKS_HOOK_SCOPE_H

#include <errno.h>
#include <pthread.h>

#include "base/thread/cancel.h"
#include "base/thread/guard.h"

struct ms_hook_scope {
    int saved_errno;
    int cancel_state;
    int cancel_type;
};

/* The type is set besides the state: glibc's handler of an asynchronous cancellation looks at the type alone,
 * and so ends a thread that disabled cancellation after it was sent. */
static inline void ms_hook_scope_enter(struct ms_hook_scope *scope)
{
    scope->saved_errno = errno;
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &scope->cancel_type);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &scope->cancel_state);
    ms_guard_enter();
}

/* In this order: what came meanwhile is acted on by setcanceltype, which sets the thread's result; glibc's
 * setcancelstate forgets to. */
static inline void ms_hook_scope_leave(struct ms_hook_scope *scope)
{
    ms_guard_leave();
    pthread_setcancelstate(scope->cancel_state, &scope->cancel_state);
    if (scope->cancel_type != PTHREAD_CANCEL_DEFERRED)
        pthread_setcanceltype(scope->cancel_type, &scope->cancel_type);
    errno = scope->saved_errno;
}

/* Cancellation alone; errno is not touched. A type that is deferred already stays so: only the thread itself
 * can change it. */
static inline void ms_hook_scope_defer(struct ms_hook_scope *scope)
{
    scope->cancel_type = PTHREAD_CANCEL_DEFERRED;
    if (ms_cancel_is_deferred())
        return;
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &scope->cancel_type);
    if (MS_UNLIKELY(scope->cancel_type != PTHREAD_CANCEL_DEFERRED))
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &scope->cancel_state);
}

static inline void ms_hook_scope_defer_no_more(struct ms_hook_scope *scope)
{
    if (MS_UNLIKELY(scope->cancel_type != PTHREAD_CANCEL_DEFERRED)) {
        pthread_setcancelstate(scope->cancel_state, &scope->cancel_state);
        pthread_setcanceltype(scope->cancel_type, &scope->cancel_type);
    }
}

static inline void ms_hook_scope_enter_brief(struct ms_hook_scope *scope)
{
    scope->saved_errno = errno;
    ms_hook_scope_defer(scope);
    ms_guard_enter();
}

static inline void ms_hook_scope_leave_brief(struct ms_hook_scope *scope)
{
    ms_guard_leave();
    ms_hook_scope_defer_no_more(scope);
    errno = scope->saved_errno;
}

/* As ms_hook_scope_enter and _leave, but inside a hook scope whose cancellation is deferred already. */
static inline void ms_hook_scope_enter_nested(struct ms_hook_scope *scope)
{
    scope->saved_errno = errno;
    ms_guard_enter();
}

static inline void ms_hook_scope_leave_nested(struct ms_hook_scope *scope)
{
    ms_guard_leave();
    errno = scope->saved_errno;
}

#endif
