/* roctx.c - the wrappers of ROCTX: every row of roctx.def; and what they say of phases.
 *
 * Floor 3. libroctx64.so and librocprofiler-sdk-roctx.so have the same functions. A range of the process has
 * the library's number, which is kept with the phase's own until the range is stopped. Any thread, from
 * signal handlers too; no lock is held across the vendor's function. */
#include "hooks/observe/phases.h"
#include "hooks/table/wrap.h"

static struct ms_phase_number numbers[MS_PHASE_OPENS];

void ms_phase_tell(enum ms_class class, const struct ms_args *args, uint64_t answer)
{
    struct ms_hook_scope scope;
    if (!ms_phases_enter(&scope))
        return;
    if (class == MS_CLASS_PHASE_MARK)
        ms_phase_mark(MS_PHASE_ROCTX, 0, ms_phase_text(args->name));
    else if (class == MS_CLASS_PHASE_PUSH)
        ms_phase_push(MS_PHASE_ROCTX, 0, ms_phase_text(args->name));
    else if (class == MS_CLASS_PHASE_POP)
        ms_phase_pop(MS_PHASE_ROCTX, 0);
    else if (class == MS_CLASS_PHASE_END && args->key)
        ms_phase_end(ms_phase_number_take(numbers, args->key));
    else if (class == MS_CLASS_PHASE_BEGIN && answer)
        ms_phase_number_keep(numbers, answer, ms_phase_begin(MS_PHASE_ROCTX, 0, ms_phase_text(args->name)));
    ms_hook_scope_leave(&scope);
}

#define MS_FAMILY MS_API_ROCTX
#include "hooks/table/roctx.def"
