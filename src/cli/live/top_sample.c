/* top_sample.c - figures of processes that run, out of their ledgers alone; see top.h.
 *
 * Floor 5. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/devices.h"
#include "cli/array.h"
#include "cli/live/live_ledgers.h"
#include "cli/live/shares.h"
#include "cli/live/top.h"
#include "record/reader/snapshot_heaps.h"
#include "record/reader/snapshot.h"

static struct ms_top_row *top_sample_new_row(struct ms_top *top)
{
    struct ms_top_row *rows = ms_array_grow(top->rows, sizeof(*rows), top->count, &top->room, 16);

    if (!rows)
        return NULL;
    top->rows = rows;
    memset(&top->rows[top->count], 0, sizeof(*top->rows));
    return &top->rows[top->count++];
}

static void copy_text(char *into, size_t bytes, const char *text)
{
    snprintf(into, bytes, "%s", text ? text : "");
}

/* Its words, the first without its directory. */
static void put_command(char *command, size_t bytes)
{
    uint64_t cursor = 0;
    const char *word;
    size_t used = 0;

    while ((word = ms_process_next_text("arg", &cursor)) != NULL && used < bytes) {
        const char *name = used ? NULL : strrchr(word, '/');

        used += (size_t)snprintf(command + used, bytes - used, "%s%s", used ? " " : "",
                                 name && name[1] ? name + 1 : word);
    }
    if (!used)
        copy_text(command, bytes, ms_process_text("exe"));
}

/* The one that began last. */
static void put_phase(char *phase, size_t bytes)
{
    const struct ms_phase_open *latest = NULL;

    for (uint64_t i = 0; i < ms_table_rows(MS_TABLE_PHASE_OPENS); i++) {
        const struct ms_phase_open *open = &MS_ROWS(PHASE_OPENS, struct ms_phase_open)[i];

        if (atomic_load(&open->id) && (!latest || atomic_load(&open->id) > atomic_load(&latest->id)))
            latest = open;
    }
    if (latest)
        copy_text(phase, bytes, ms_phase_text_at(ms_phase_at(latest->phase)->name));
}

static void fill_process(struct ms_top_row *row, const struct ms_snapshot *snapshot)
{
    row->pid = ms_process()->pid;
    row->start_unix_ns = ms_process()->start_unix_ns;
    row->at_ns = snapshot->now_ns;
    row->ooms = atomic_load(&ms_process()->oom_count) - atomic_load(&ms_process()->oom_parts);
    copy_text(row->rank, sizeof(row->rank), ms_process_text("rank"));
    copy_text(row->host, sizeof(row->host), ms_process_text("host"));
    put_phase(row->phase, sizeof(row->phase));
    put_command(row->command, sizeof(row->command));
}

static void fill_device(struct ms_top_row *row, int device, const struct ms_snapshot *snapshot,
                        const struct ms_snapshot_device *of)
{
    const struct ms_snapshot_device *inner = &snapshot->devices[MS_LAYER_ACCOUNTS + (unsigned)device];
    struct ms_device_info info;
    uint64_t most;

    row->device = device;
    row->live_bytes = of->account.device.live_bytes;
    row->live_count = of->account.device.live_count;
    row->peak_bytes = of->account.device.peak_live_bytes;
    row->allocated_bytes = of->account.device.total_bytes;
    row->allocated_count = of->account.device.total_count;
    row->reserved_bytes = ms_snapshot_held(of);
    row->limbo_bytes = of->pool.parts.pending;
    row->tensors_bytes = inner->account.device.live_bytes;
    row->tensors_count = inner->account.device.live_count;
    row->tensors_peak_bytes = inner->account.device.peak_live_bytes;
    if (inner->account.device.total_count)
        ms_snapshot_heaps(snapshot, device, &row->heaps_bytes, &most);
    row->total_bytes = ms_events_device(device, &info) ? info.total_bytes : 0;
}

static const struct ms_top_row *row_before(const struct ms_top *before, const struct ms_top_row *row)
{
    for (size_t i = 0; before && i < before->count; i++)
        if (before->rows[i].pid == row->pid && before->rows[i].start_unix_ns == row->start_unix_ns &&
            before->rows[i].device == row->device)
            return &before->rows[i];
    return NULL;
}

static void fill_rate(struct ms_top_row *row, const struct ms_top_row *before)
{
    if (!before || row->at_ns <= before->at_ns || row->allocated_count < before->allocated_count)
        return;
    row->allocations_per_second =
        (double)(row->allocated_count - before->allocated_count) * 1e9 / (double)(row->at_ns - before->at_ns);
}

struct sampling {
    struct ms_top *top;
    const struct ms_top *before;
};

static int top_sample_look(void *arg, const struct ms_cli_ledger *ledger)
{
    struct sampling *sampling = arg;
    struct ms_snapshot snapshot;
    int status = ms_snapshot_take(&snapshot, 0, 0);

    (void)ledger;
    for (int device = 0; status == 0 && device < MS_DEVICES_MAX; device++) {
        const struct ms_snapshot_device *of = &snapshot.devices[device];
        struct ms_top_row *row;

        if (!of->account.device.total_count && !of->pool.reserved_bytes)
            continue;
        row = top_sample_new_row(sampling->top);
        if (!row) {
            status = -1;
            break;
        }
        fill_process(row, &snapshot);
        fill_device(row, device, &snapshot, of);
        sampling->top->has_tensors = sampling->top->has_tensors || row->tensors_peak_bytes;
        fill_rate(row, row_before(sampling->before, row));
    }
    ms_snapshot_release(&snapshot);
    return status;
}

void ms_top_sample(const pid_t *pids, size_t pid_count, const struct ms_top *before, struct ms_top *top_p)
{
    struct sampling sampling = {top_p, before};
    struct ms_living living = {0};
    struct timespec now;

    memset(top_p, 0, sizeof(*top_p));
    if (!pid_count)
        ms_living_each(0, top_sample_look, &sampling, &living);
    for (size_t i = 0; i < pid_count; i++)
        ms_living_each(pids[i], top_sample_look, &sampling, &living);
    clock_gettime(CLOCK_REALTIME, &now);
    top_p->taken_unix_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    top_p->processes = living.shown;
    top_p->left_out = living.left_out;
    top_p->shares = ms_shares_json();
}

void ms_top_release(struct ms_top *top)
{
    free(top->rows);
    json_decref(top->shares);
    top->rows = NULL;
    top->shares = NULL;
    top->count = top->room = 0;
}

/* A process that does much has a large record. */
int64_t ms_top_rest_ms(int64_t interval_ms, int64_t took_ms)
{
    int64_t rest = interval_ms - took_ms;

    return rest < 3 * took_ms ? 3 * took_ms : rest;
}
