/* ipc_exports.c - the exporter's side of ipc_exports.h: rows of its own ledger.
 *
 * Floor 2. Called by the hooks, inside a hook scope. A row that was given back is used again, with another
 * nonce. */
#include "record/ipc/ipc_exports.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/lock.h"
#include "record/file/journal.h"

static struct ms_lock lock = MS_LOCK_INIT(MS_RANK_EXPORT);
static uint32_t free_rows; /* the first, + 1 */
static uint64_t exported;  /* ever */

static struct ms_ipc_export_row *row_at(uint32_t row)
{
    return &MS_ROWS(EXPORTS, struct ms_ipc_export_row)[row];
}

static uint32_t ipc_exports_state_of(const struct ms_ipc_export_row *row)
{
    return atomic_load_explicit(&row->state, memory_order_relaxed);
}

static bool take_row_locked(uint32_t *row_p)
{
    uint64_t taken;

    if (free_rows) {
        *row_p = free_rows - 1;
        free_rows = row_at(*row_p)->next;
        return true;
    }
    if (!ms_table_take(MS_TABLE_EXPORTS, 1, &taken))
        return false;
    *row_p = (uint32_t)taken;
    return true;
}

static void give_row_locked(uint32_t row)
{
    row_at(row)->next = free_rows;
    free_rows = row + 1;
}

/* Never the same twice, in this process or another. Where the system has no random numbers yet, what no other
 * process has at the same moment; it need not be secret, since the ledger is. */
static void make_nonce_locked(uint64_t nonce[2])
{
    int saved_errno = errno;

    if (getrandom(nonce, 2 * sizeof(*nonce), GRND_NONBLOCK) != 2 * sizeof(*nonce)) {
        nonce[0] = ms_clock_ns();
        nonce[1] = (uint64_t)getpid() << 32 ^ (uintptr_t)&nonce;
    }
    nonce[1] += ++exported; /* whatever the system gives */
    errno = saved_errno;
}

static uint64_t check_of(const struct ms_ipc_export_row *row)
{
    struct {
        uint64_t nonce[2];
        struct ms_ipc_export block;
    } checked;

    memcpy(checked.nonce, row->nonce, sizeof(checked.nonce));
    checked.block = row->block;
    return ms_token_check(&checked, sizeof(checked));
}

/* The first thing that a reader in another process needs besides the row, and would not have; NULL if it has
 * all. */
static const char *what_is_missing(void)
{
    if (!*ms_journal_path())
        return "this process's ledger has no file";
    if (!ms_process()->start_ticks || !ms_process()->pid_space)
        return "/proc cannot be read";
    return NULL;
}

bool ms_ipc_export_publish(const struct ms_ipc_export *block, unsigned char token_p[MS_TOKEN_BYTES],
                           uint32_t *row_p, const char **why_p)
{
    uint32_t row = 0;

    if ((*why_p = what_is_missing()))
        return false;
    ms_lock(&lock);
    bool good = take_row_locked(&row);
    if (!good) {
        *why_p = "its table of exports is full";
    } else if (!ms_table_in_file(MS_TABLE_EXPORTS, row)) {
        *why_p = "this process's ledger cannot grow";
        give_row_locked(row);
        good = false;
    } else {
        struct ms_ipc_export_row *r = row_at(row);
        uint32_t state = ipc_exports_state_of(r);
        atomic_store_explicit(&r->state, state - state % MS_IPC_EXPORT_STATES + MS_IPC_EXPORT_CHANGING,
                              memory_order_relaxed);
        atomic_thread_fence(memory_order_release);
        make_nonce_locked(r->nonce);
        r->block = *block;
        r->check = check_of(r);
        atomic_store_explicit(&r->state, state - state % MS_IPC_EXPORT_STATES + MS_IPC_EXPORT_LIVE,
                              memory_order_release);
    }
    ms_unlock(&lock);
    if (!good)
        return false;
    ms_ipc_export_token(row, token_p);
    *row_p = row;
    return true;
}

void ms_ipc_export_token(uint32_t row, unsigned char token_p[MS_TOKEN_BYTES])
{
    const struct ms_process *process = ms_process();
    struct ms_token token = {.pid = process->pid,
                             .row = row,
                             .start_ticks = process->start_ticks,
                             .pid_space = process->pid_space,
                             .user = (uint32_t)geteuid(),
                             .version = MS_STORE_VERSION};

    memcpy(token.nonce, row_at(row)->nonce, sizeof(token.nonce));
    ms_token_encode(&token, token_p);
}

void ms_ipc_export_revoke(uint32_t row)
{
    ms_lock(&lock);
    struct ms_ipc_export_row *r = row_at(row);
    uint32_t state = ipc_exports_state_of(r);
    if (state % MS_IPC_EXPORT_STATES == MS_IPC_EXPORT_LIVE) {
        atomic_store_explicit(&r->state,
                              (state / MS_IPC_EXPORT_STATES + 1) * MS_IPC_EXPORT_STATES + MS_IPC_EXPORT_FREE,
                              memory_order_release);
        memset(r->nonce, 0, sizeof(r->nonce));
        give_row_locked(row);
    }
    ms_unlock(&lock);
}

static void exports_reset(void)
{
    free_rows = 0;
    exported = 0;
    ms_lock_reset(&lock);
}
MS_AT_FORK(MS_FORK_RECORD, exports_reset);
