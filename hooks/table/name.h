/* name.h - the light frame of a row that only names what is nested in it (classes NAME and NAME_ALLOC).
 *
 * Floor 3, for the wrappers. Nothing is recorded by such a frame itself, so of dispatch.c's work there is
 * left: it becomes the thread's outermost call, takes the call stack, and counts the call when it returns.
 * Everything out of the ordinary (a frame around it, one that was left behind, a call of memshim's own, a
 * fork child, a failure) goes the general way. errno is touched by nothing in here. */
#ifndef MS_HOOKS_TABLE_NAME_H
#define MS_HOOKS_TABLE_NAME_H

#include "hooks/dispatch.h"
#include "hooks/init.h"

static inline void ms_name_begin(struct ms_call *call, bool takes_stack)
{
    if (MS_UNLIKELY(ms_thread.depth > 0 || ms_thread.outermost || !ms_init_owner())) {
        ms_call_begin(call);
        return;
    }
    ms_hook_scope_defer(&call->scope);
    ms_guard_enter();
    ms_ledger_touch();
    call->left_recording = ms_thread.recording;
    ms_thread.outermost = call;
    ms_thread.recording = 0;
    if (takes_stack && !ms_stack_sampling())
        call->stack = ms_stack_capture(call->frame, call->caller);
    ms_guard_leave();
}

static inline void ms_name_end(struct ms_call *call, int status)
{
    if (MS_UNLIKELY(status != 0 || call->passes || ms_thread.outermost != call)) {
        ms_call_end(call, status);
        return;
    }
    call->open = 0;
    ms_guard_enter();
    if (MS_LIKELY(ms_init_owner()))
        ms_ledger_call(call->row, status == 0, call->served, call->bytes);
    ms_thread.outermost = call->left;
    ms_thread.recording = call->left_recording;
    ms_guard_leave();
    ms_hook_scope_defer_no_more(&call->scope);
}

#endif
