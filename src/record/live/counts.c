/* counts.c - how often each function was called: counted by each thread for itself, and added up by readers.
 *
 * Floor 2. A thread takes a set of counts at its first call and writes there alone, without atomic additions;
 * the set of a thread that has ended is taken over by another, which counts on. Where none is left, threads
 * share the first set. No lock, no allocation but of rows. */
#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/thread/guard.h"
#include "record/file/process.h"

enum { SETS = MS_TABLE_COUNTS_ROWS / MS_TABLE_APIS_ROWS, SHARED = 0, NONE = -1 };

static _Atomic unsigned api_total;
static _Atomic uint32_t owners[SETS]; /* threads, by the kernel's number; 0: nobody's */
static _Atomic uint32_t next_set;

/* This thread's rows; or those that it shares with others, where it has none for itself. */
MS_TLS struct ms_counts *ms_counts_own;
static MS_TLS struct ms_counts *shared;

void ms_counts_open(unsigned apis)
{
    atomic_store_explicit(&api_total, apis, memory_order_release);
}

/* Signal 0 only asks. */
static bool counts_has_ended(uint32_t thread)
{
    return syscall(SYS_tgkill, getpid(), thread, 0) != 0 && errno == ESRCH;
}

/* A set for this thread alone, or NONE. It may have been that of an earlier thread of the same number. */
static int take_set(uint32_t thread)
{
    unsigned first = atomic_fetch_add_explicit(&next_set, 1, memory_order_relaxed);
    for (unsigned i = 0; i < SETS - 1; i++) {
        unsigned set = 1 + (first + i) % (SETS - 1);
        uint32_t owner = atomic_load_explicit(&owners[set], memory_order_relaxed);
        if ((owner == 0 || owner == thread || counts_has_ended(owner)) &&
            atomic_compare_exchange_strong(&owners[set], &owner, thread))
            return (int)set;
    }
    return NONE;
}

/* Finds this thread's rows; without memory it has none. */
static void counts_begin(unsigned apis)
{
    int saved_errno = errno, set = take_set(ms_thread_id());
    uint64_t rows = (uint64_t)(set + 1) * apis;
    if (set != NONE && !ms_table_reserve(MS_TABLE_COUNTS, rows)) {
        atomic_store_explicit(&owners[set], 0, memory_order_relaxed);
        set = NONE;
    }
    if (set == NONE) {
        set = SHARED;
        rows = apis;
    }
    if (ms_table_reserve(MS_TABLE_COUNTS, rows)) {
        uint64_t published = ms_table_rows(MS_TABLE_COUNTS);
        while (published < rows && !ms_table_publish_more(MS_TABLE_COUNTS, &published, rows))
            ;
        *(set == SHARED ? &shared : &ms_counts_own) =
            MS_ROWS(COUNTS, struct ms_counts) + (uint64_t)set * apis;
    }
    errno = saved_errno;
}

static inline void add_shared(_Atomic uint64_t *count, uint64_t by)
{
    atomic_fetch_add_explicit(count, by, memory_order_relaxed);
}

static void count_shared(struct ms_counts *row, bool succeeded, bool served, uint64_t bytes)
{
    add_shared(&row->calls, 1);
    if (served)
        add_shared(&row->served, 1);
    if (succeeded)
        add_shared(&row->bytes, bytes);
    else
        add_shared(&row->failures, 1);
}

static inline void count_own(struct ms_counts *row, bool succeeded, bool served, uint64_t bytes)
{
    ms_count(&row->calls, 1);
    ms_count(&row->served, served);
    if (MS_LIKELY(succeeded))
        ms_count(&row->bytes, bytes);
    else
        ms_count(&row->failures, 1);
}

static MS_NOINLINE void count_slowly(uint16_t api, bool succeeded, bool served, uint64_t bytes)
{
    unsigned apis = atomic_load_explicit(&api_total, memory_order_acquire);
    ms_events_touch();
    if (!shared && apis)
        counts_begin(apis);
    if (api < apis && ms_counts_own)
        count_own(&ms_counts_own[api], succeeded, served, bytes);
    else if (api < apis && shared)
        count_shared(&shared[api], succeeded, served, bytes);
}

void ms_ledger_call(uint16_t api, bool succeeded, bool served, uint64_t bytes)
{
    struct ms_counts *rows = ms_counts_own;
    if (MS_LIKELY(rows && api < atomic_load_explicit(&api_total, memory_order_relaxed)))
        count_own(&rows[api], succeeded, served, bytes);
    else if (!rows)
        count_slowly(api, succeeded, served, bytes);
}

bool ms_counts_sum(unsigned api, struct ms_counts *sum_p)
{
    uint64_t apis = ms_table_rows(MS_TABLE_APIS), rows = ms_table_rows(MS_TABLE_COUNTS);
    *sum_p = (struct ms_counts){0};
    if (api >= apis)
        return false;
    for (uint64_t i = api; i < rows; i += apis) {
        struct ms_counts *row = &MS_ROWS(COUNTS, struct ms_counts)[i];
        sum_p->calls += atomic_load_explicit(&row->calls, memory_order_relaxed);
        sum_p->bytes += atomic_load_explicit(&row->bytes, memory_order_relaxed);
        sum_p->failures += atomic_load_explicit(&row->failures, memory_order_relaxed);
        sum_p->served += atomic_load_explicit(&row->served, memory_order_relaxed);
    }
    /* Threads go on counting: a call counts before it is said how it went, but that need not be seen in this
     * order. */
    if (sum_p->served > sum_p->calls)
        sum_p->served = sum_p->calls;
    if (sum_p->failures > sum_p->calls)
        sum_p->failures = sum_p->calls;
    return true;
}

static void counts_reset(void)
{
    atomic_store_explicit(&api_total, 0, memory_order_relaxed);
    atomic_store_explicit(&next_set, 0, memory_order_relaxed);
    for (unsigned i = 0; i < SETS; i++)
        atomic_store_explicit(&owners[i], 0, memory_order_relaxed);
    ms_counts_own = shared = NULL;
}
MS_AT_FORK(MS_FORK_RECORD, counts_reset);
