/* contents.c - the record, as JSON.
 *
 * Floor 4. Of this process, or of another one whose ledger was read. One report at a time; statics instead of
 * a stack of unknown size. */
#include <errno.h>

#include "report/write/json.h"

enum { BLOCKS_MAX = 10000, PIECES_MAX = 400000 };

static struct ms_snapshot snapshot;
static struct ms_report_stacks stacks;
static struct ms_out out;

static void mention_misfree(const struct ms_invalid_free_row *row)
{
    ms_report_stacks_mention(&stacks, row->stack);
    if (ms_invalid_free_is_use(row->rule))
        ms_report_stacks_mention(&stacks, (ms_stack_id)row->block_bytes);
}

static void mention_stacks(void)
{
    if (ms_report_stacks_open(&stacks) != 0)
        return;
    for (uint32_t i = 0; i < snapshot.site_count; i++)
        ms_report_stacks_mention(&stacks, snapshot.sites[i].site.stack);
    for (unsigned i = 0; i < snapshot.events.oom_count; i++)
        ms_report_stacks_mention(&stacks, snapshot.events.ooms[i].stack);
    for (unsigned i = 0; i < snapshot.misfree_count; i++)
        mention_misfree(&snapshot.invalid_frees[i]);
    for (uint32_t i = 0; i < snapshot.footprint_count; i++)
        ms_report_stacks_mention(&stacks, snapshot.footprints[i].stack);
    ms_report_stacks_number(&stacks);
}

int ms_report_contents(int fd, enum ms_end_reason reason, int code, bool at_rest, uint64_t *late_frees_at_p)
{
    struct ms_report_input input = {
        .snapshot = &snapshot,
        .stacks = &stacks,
        .reason = reason,
        .code = code,
        .began_ns = ms_ledger_now(),
        .recovered = ms_events_frozen(),
    };
    int result = -1;
    if (ms_snapshot_take(&snapshot, BLOCKS_MAX, PIECES_MAX) == 0) {
        snapshot.consistent = snapshot.consistent && at_rest && !(input.recovered && ms_store_memory_only());
        mention_stacks();
        if (ms_out_open(&out, fd) == 0) {
            ms_json_write(&out, &input);
            result = ms_out_close(&out);
            if (late_frees_at_p)
                *late_frees_at_p = input.late_frees_at;
        }
    }
    int saved_errno = errno;
    ms_report_stacks_close(&stacks);
    ms_snapshot_release(&snapshot);
    errno = saved_errno;
    return result;
}
