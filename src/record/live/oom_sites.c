/* oom_sites.c - what every site held when there was no memory.
 *
 * Floor 2. Rows of a ring, which are taken by one atomic step; those of an earlier error give way, and are
 * known for others' by their numbers. Allocates nothing but rows. */
#include "record/file/process.h"

enum { ROWS = MS_TABLE_OOM_SITES_ROWS };

static struct ms_oom_site *oom_sites_row_of(uint64_t number)
{
    return &MS_ROWS(OOM_SITES, struct ms_oom_site)[number % ROWS];
}

static void oom_sites_count(void *arg, uint32_t site, uint64_t bytes)
{
    (void)site;
    (void)bytes;
    ++*(uint32_t *)arg;
}

struct writing {
    uint64_t next, end;
};

/* Written down between two changes of its number, so that nobody takes it for another's. */
static void write_row(void *arg, uint32_t site, uint64_t bytes)
{
    struct writing *writing = arg;
    if (writing->next == writing->end) /* it came meanwhile */
        return;
    struct ms_oom_site *row = oom_sites_row_of(writing->next);
    atomic_store_explicit(&row->number, 0, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    row->site = site;
    row->bytes = bytes;
    atomic_store_explicit(&row->number, ++writing->next, memory_order_release);
}

void ms_oom_note_sites(struct ms_oom *oom)
{
    uint32_t sites = 0;
    ms_account_each_site(oom->device, oom_sites_count, &sites);
    sites = sites < ROWS ? sites : ROWS;
    if (!sites || !ms_table_reserve(MS_TABLE_OOM_SITES, ROWS))
        return;
    uint64_t first = atomic_fetch_add_explicit(&ms_process()->oom_sites, sites, memory_order_relaxed);
    struct writing writing = {first, first + sites};
    ms_account_each_site(oom->device, write_row, &writing);
    if (ms_table_rows(MS_TABLE_OOM_SITES) < ROWS)
        ms_table_publish(MS_TABLE_OOM_SITES, ROWS);
    oom->site_first = first;
    oom->site_count = (uint32_t)(writing.next - first);
}

MS_UNSYNCHRONIZED bool ms_oom_site_at(const struct ms_oom *oom, uint32_t k, uint32_t *site_p,
                                      uint64_t *bytes_p)
{
    if (k >= oom->site_count || !ms_table_rows(MS_TABLE_OOM_SITES))
        return false;
    const struct ms_oom_site *row = oom_sites_row_of(oom->site_first + k);
    uint64_t number = atomic_load_explicit(&row->number, memory_order_acquire);
    *site_p = row->site;
    *bytes_p = row->bytes;
    atomic_thread_fence(memory_order_acquire);
    return number == oom->site_first + k + 1 &&
           atomic_load_explicit(&row->number, memory_order_relaxed) == number;
}
