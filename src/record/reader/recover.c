/* recover.c - a loaded ledger made whole; see recover.h.
 *
 * Floor 2, command line only; one thread. Two things are done at once: a process that was killed was in the
 * middle of at most one call in each thread, and the file may be damaged, or somebody else's idea of a
 * ledger. After this every number refers to something that exists and the sums add up. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/at_fork.h"
#include "base/objects/objects.h"
#include "record/footprint/balance.h"
#include "record/phases/phases.h"
#include "record/reader/recover_clean.h"
#include "record/reader/recover.h"
#include "record/live/inner.h"
#include "record/live/uses.h"

enum { SHIFT_MAX = 56, MANY = 2048 }; /* so many of the largest amount still add up */

/* Names end, and are of printable ASCII. */
static void clean_name(char *name, size_t bytes)
{
    name[bytes - 1] = '\0';
    for (; *name; name++) {
        if ((unsigned char)*name < 0x20 || (unsigned char)*name > 0x7e)
            *name = '?';
    }
}

static void clean_text(void)
{
    uint64_t bytes = ms_table_rows(MS_TABLE_TEXT);
    if (bytes)
        MS_ROWS(TEXT, char)[bytes - 1] = '\0';
    for (uint64_t i = 0; i < ms_table_rows(MS_TABLE_BLIND_SPOTS); i++)
        MS_ROWS(BLIND_SPOTS, char)[(i + 1) * MS_TABLE_BLIND_SPOTS_ROW_BYTES - 1] = '\0';
    for (uint64_t i = 0; i < ms_table_rows(MS_TABLE_DIAGNOSTICS); i++)
        MS_ROWS(DIAGNOSTICS, char)[(i + 1) * MS_TABLE_DIAGNOSTICS_ROW_BYTES - 1] = '\0';
}

static void clean_objects(void)
{
    for (uint64_t i = 0; i < ms_table_rows(MS_TABLE_OBJECTS); i++) {
        struct ms_object *object = &MS_ROWS(OBJECTS, struct ms_object)[i];
        object->path[sizeof object->path - 1] = '\0';
        if (object->build_id_bytes > sizeof object->build_id)
            object->build_id_bytes = 0;
        *(uint8_t *)&object->gone &= 1;
    }
}

static void clean_apis(void)
{
    for (uint64_t i = 0; i < ms_table_rows(MS_TABLE_APIS); i++) {
        struct ms_api_row *row = &MS_ROWS(APIS, struct ms_api_row)[i];
        clean_name(row->name, sizeof row->name);
        clean_name(row->family, sizeof row->family);
    }
    for (uint64_t i = 0; i < ms_table_rows(MS_TABLE_COUNTS); i++) {
        struct ms_counts *row = &MS_ROWS(COUNTS, struct ms_counts)[i];
        clamp_atomic(&row->calls, INT64_MAX / MS_TABLE_COUNTS_ROWS);
        clamp_atomic(&row->bytes, INT64_MAX / MS_TABLE_COUNTS_ROWS);
        clamp_atomic(&row->failures, atomic_load(&row->calls));
        clamp_atomic(&row->served, atomic_load(&row->calls));
    }
}

static void clean_devices(void)
{
    for (uint64_t i = 0; i < ms_table_rows(MS_TABLE_DEVICES); i++) {
        struct ms_device_info *info = &MS_ROWS(DEVICES, struct ms_device_row)[i].info;
        info->name[sizeof info->name - 1] = '\0';
        clamp(&info->total_bytes, INT64_MAX);
        clamp(&info->granularity_bytes, INT64_MAX);
    }
}

static uint64_t sum_of_sizes(struct ms_site *site)
{
    uint64_t count = 0;
    for (unsigned k = 0; k < MS_SIZE_CLASSES; k++) {
        clamp(&site->size_hist[k], INT64_MAX / MANY / MS_SIZE_CLASSES);
        count += site->size_hist[k];
    }
    return count;
}

/* Everything of a site but what its live blocks say. */
static void clean_site(struct ms_site *site)
{
    if (site->kind >= MS_KIND_COUNT || (site->kind == MS_KIND_INNER) != ms_device_is_inner(site->device) ||
        ms_account_number(site->device) == MS_DEVICES_MAX) {
        site->kind = site->kind < MS_KIND_COUNT ? site->kind : MS_KIND_DEVICE;
        site->device =
            (int16_t)(site->kind == MS_KIND_INNER ? ms_device_inner(MS_DEVICE_NONE) : MS_DEVICE_NONE);
    }
    site->stack = site->stack <= ms_stack_count() ? site->stack : 0;
    if (site->span_last >= MS_SPANS || site->span_shift > SHIFT_MAX ||
        site->span_shift < MS_SPAN_SHIFT_START) {
        site->span_shift = MS_SPAN_SHIFT_NONE;
        site->span_last = 0;
    }
    clamp(&site->total_bytes, INT64_MAX / MANY);
    site->total_count = sum_of_sizes(site); /* counted before the rest */
    clamp(&site->total_rounding_bytes, site->total_bytes);
    clamp(&site->max_bytes, site->total_bytes);
    site->at_peak_bytes = ms_site_at_peak(ms_account_of(site->device)->peaks, site);
    clamp(&site->at_peak_bytes, site->max_bytes);
    clamp(&site->kept_peak_bytes, site->max_bytes);
    clamp(&site->died_count, site->total_count);
    clamp(&site->died_bytes, site->total_bytes);
    clamp(&site->free_count, site->total_count - site->died_count);
    clamp(&site->lifetime_ns_sum, INT64_MAX / MANY);
    clamp(&site->estimate.bytes, INT64_MAX / MANY);
    clamp(&site->estimate.count_q8, INT64_MAX / MANY);
    for (unsigned i = 0; i < MS_SPANS; i++)
        clamp(&site->marks[i], INT64_MAX);
    clamp(&site->first_ns, INT64_MAX);
    clamp(&site->last_ns, INT64_MAX);
    site->peak_seen = ms_account_of(site->device)->peaks;
    site->live_bytes = site->live_count = site->rounding_bytes = 0;
}

static bool recover_is_same(const struct ms_site *a, const struct ms_site *b)
{
    return a->stack == b->stack && a->device == b->device && a->api == b->api && a->kind == b->kind;
}

/* A row that does not say which one stands for all shards, or is not the only one of its shard, is a site by
 * itself. */
static void clean_shards(uint32_t count)
{
    uint16_t *seen = calloc(count, sizeof *seen); /* which shards a site has rows of */
    _Static_assert(MS_SHARDS <= 16, "a bit for each lane");
    for (uint32_t i = 0; i < count; i++) {
        struct ms_site *site = ms_site_at(i), *whole = ms_site_at(site->whole);
        bool sound = seen && whole && whole->whole == site->whole && site->shard < MS_SHARDS &&
                     recover_is_same(site, whole) && !(seen[site->whole] >> site->shard & 1);
        if (sound)
            seen[site->whole] |= (uint16_t)(1u << site->shard);
        else
            site->whole = i;
        site->next = 0;
    }
    free(seen);
}

/* Rows are given out before they are whole: the table ends with the last one that is, and one in between that
 * is not stays as one that never allocated. */
static void clean_sites(void)
{
    uint64_t rows = ms_table_reserved(MS_TABLE_SITES), count = 0;
    for (uint64_t i = 0; i < rows; i++) {
        if (atomic_load(&MS_ROWS(SITES, struct ms_site)[i].state) == 1)
            count = i + 1;
    }
    for (uint64_t i = 0; i < count; i++) {
        struct ms_site *site = &MS_ROWS(SITES, struct ms_site)[i];
        if (atomic_load(&site->state) != 1)
            memset((void *)site, 0, sizeof *site);
        atomic_store(&site->state, 1);
        clean_site(site);
    }
    ms_table_publish(MS_TABLE_SITES, count);
    clean_shards((uint32_t)count);
}

static void clean_amount(struct ms_amount *amount)
{
    clamp(&amount->total_bytes, INT64_MAX / MANY);
    clamp(&amount->total_count, INT64_MAX / MANY);
    clamp(&amount->peak_live_bytes, amount->total_bytes);
    amount->live_bytes = amount->live_count = 0;
}

static void clean_account(struct ms_account *account)
{
    clean_amount(&account->device);
    for (unsigned kind = 0; kind < MS_KIND_COUNT; kind++)
        clean_amount(&account->kinds[kind]);
    clamp(&account->peak_ns, INT64_MAX);
    clamp(&account->interval_peak_bytes, INT64_MAX / MANY);
    clamp(&account->interval_peak_ns, INT64_MAX);
    clamp(&account->last_ns, INT64_MAX);
}

static void add_totals(struct ms_amount *sum, const struct ms_amount *amount)
{
    sum->total_bytes += amount->total_bytes;
    sum->total_count += amount->total_count;
    sum->peak_live_bytes += amount->peak_live_bytes;
}

/* From here on all shards are the first. */
static void clean_accounts(void)
{
    uint64_t rows = ms_table_reserved(MS_TABLE_ACCOUNTS);
    for (uint64_t i = 0; i < rows; i++)
        clean_account(&MS_ROWS(ACCOUNTS, struct ms_account)[i]);
    for (uint64_t i = MS_ACCOUNTS; i < rows; i++) {
        struct ms_account *row = &MS_ROWS(ACCOUNTS, struct ms_account)[i], *first = row - i + i % MS_ACCOUNTS;
        first->last_ns = row->last_ns > first->last_ns ? row->last_ns : first->last_ns;
        add_totals(&first->device, &row->device);
        for (unsigned kind = 0; kind < MS_KIND_COUNT; kind++)
            add_totals(&first->kinds[kind], &row->kinds[kind]);
    }
}

static void count_live(struct ms_amount *amount, uint64_t bytes)
{
    amount->live_bytes += bytes;
    amount->live_count++;
    if (amount->peak_live_bytes < amount->live_bytes)
        amount->peak_live_bytes = amount->live_bytes;
    if (amount->total_bytes < amount->peak_live_bytes)
        amount->total_bytes = amount->peak_live_bytes;
    if (amount->total_count < amount->live_count)
        amount->total_count = amount->live_count;
}

static void count_in_site(struct ms_site *site, const struct ms_block *block)
{
    site->live_bytes += block->bytes;
    site->live_count++;
    site->rounding_bytes += block->bytes > block->requested ? block->bytes - block->requested : 0;
    if (site->max_bytes < site->live_bytes)
        site->max_bytes = site->live_bytes;
    if (site->total_bytes < site->max_bytes)
        site->total_bytes = site->max_bytes;
}

/* True if a row that says it is live can be believed. */
static bool recover_is_sound(const struct ms_block_row *block_row, const struct ms_block *block)
{
    const struct ms_site *site = ms_site_at(block->site);
    if (block->kind >= MS_KIND_COUNT || (block->kind == MS_KIND_INNER && block->is_served) ||
        block_row->bytes > INT64_MAX / MANY || block_row->requested > INT64_MAX / MANY ||
        block_row->born_ns > INT64_MAX || block_row->context > INT64_MAX)
        return false;
    if (block->site == UINT32_MAX)
        return ms_sites_dropped() != 0;
    return (site && site->kind == block->kind &&
            ms_account_number(site->device) == ms_account_number(block->device));
}

/* Counts what is live, from the rows alone. */
static void count_blocks(void)
{
    uint64_t rows = ms_table_reserved(MS_TABLE_BLOCKS);
    ms_table_publish(MS_TABLE_BLOCKS, rows);
    for (uint64_t i = 0; i < rows; i++) {
        struct ms_block_row *block_row = &MS_ROWS(BLOCKS, struct ms_block_row)[i];
        struct ms_block block;
        if (atomic_load(&block_row->state) % MS_BLOCK_ROW_STATES != MS_BLOCK_ROW_LIVE)
            continue;
        clamp(&block_row->requested, block_row->bytes);
        ms_block_row_read(block_row, &block);
        if (!recover_is_sound(block_row, &block)) {
            atomic_store(&block_row->state, MS_BLOCK_ROW_FREE);
            ms_table_drop(MS_TABLE_BLOCKS);
            continue;
        }
        struct ms_account *account = ms_account_of(block.device);
        if (ms_kind_is_device(block.kind))
            count_live(&account->device, block.bytes);
        count_live(&account->kinds[block.kind], block.bytes);
        if (block.site != UINT32_MAX)
            count_in_site(ms_site_at(block.site), &block);
    }
}

/* A site's blocks are live, freed, or gone with their context; the last call of each may be half counted. */
static void settle_site(struct ms_site *site)
{
    if (site->total_count < site->live_count) {
        site->size_hist[0] += site->live_count - site->total_count;
        site->total_count = site->live_count;
    }
    clamp(&site->died_count, site->total_count - site->live_count);
    clamp(&site->free_count, site->total_count - site->live_count - site->died_count);
}

/* The peak is what the sites held then. If that is less than is live it was being raised when the process
 * ended: it is now. */
static void settle_peaks(void)
{
    uint64_t at_peak[MS_ACCOUNTS] = {0};
    for (uint32_t i = 0; i < ms_site_count(); i++) {
        struct ms_site *site = ms_site_at(i);
        settle_site(site);
        if (ms_kind_is_device(site->kind))
            at_peak[ms_account_number(site->device)] +=
                ms_site_at_device_peak(ms_account_of(site->device), site);
    }
    if (ms_sites_dropped())
        return;
    for (uint32_t i = 0; i < ms_site_count(); i++) {
        struct ms_site *site = ms_site_at(i);
        unsigned account = ms_account_number(site->device);
        if (ms_kind_is_device(site->kind) &&
            at_peak[account] < ms_account_of(site->device)->device.live_bytes)
            *(ms_account_of(site->device)->device_peaks == ms_account_of(site->device)->peaks
                  ? &site->at_peak_bytes
                  : &site->kept_peak_bytes) = site->live_bytes;
    }
    for (unsigned i = 0; i < MS_ACCOUNTS; i++) {
        struct ms_amount *device = &ms_account_of(ms_account_device(i))->device;
        device->peak_live_bytes = at_peak[i] < device->live_bytes ? device->live_bytes : at_peak[i];
        if (device->total_bytes < device->peak_live_bytes)
            device->total_bytes = device->peak_live_bytes;
    }
}

/* An inner block stands in exactly one site, so what was given of a device is what its sites gave. */
static void settle_inner(void)
{
    uint64_t bytes[MS_ACCOUNTS] = {0}, counts[MS_ACCOUNTS] = {0};
    if (ms_sites_dropped())
        return;
    for (uint32_t i = 0; i < ms_site_count(); i++) {
        const struct ms_site *site = ms_site_at(i);
        unsigned number = ms_account_number(site->device);
        if (number < MS_LAYER_ACCOUNTS)
            continue;
        bytes[number] += site->total_bytes;
        counts[number] += site->total_count;
    }
    for (unsigned i = MS_LAYER_ACCOUNTS; i < MS_ACCOUNTS; i++) {
        struct ms_amount *device = &ms_account_of(ms_account_device(i))->device;
        device->total_bytes = bytes[i] < INT64_MAX ? bytes[i] : INT64_MAX;
        device->total_count = counts[i] < INT64_MAX ? counts[i] : INT64_MAX;
    }
}

static void settle_kinds(void)
{
    for (unsigned kind = MS_KIND_INNER + 1; kind < MS_KIND_COUNT; kind++) {
        __typeof__(&ms_process()->kinds[0]) whole = &ms_process()->kinds[kind];
        uint64_t live_bytes = 0, live_count = 0;
        for (unsigned i = 0; i < MS_ACCOUNTS; i++) {
            const struct ms_account *account = ms_account_of(ms_account_device(i));
            live_bytes += account->kinds[kind].live_bytes;
            live_count += account->kinds[kind].live_count;
        }
        struct ms_amount amount;
        ms_kind_amount(kind, &amount);
        clean_amount(&amount);
        amount.total_bytes = amount.total_bytes < live_bytes ? live_bytes : amount.total_bytes;
        amount.total_count = amount.total_count < live_count ? live_count : amount.total_count;
        amount.peak_live_bytes = amount.peak_live_bytes < live_bytes ? live_bytes : amount.peak_live_bytes;
        atomic_store(&whole->live_bytes, live_bytes);
        atomic_store(&whole->live_count, live_count);
        atomic_store(&whole->peak_live_bytes, amount.peak_live_bytes);
        atomic_store(&whole->total_bytes, amount.total_bytes);
        atomic_store(&whole->total_count, amount.total_count);
    }
}

/* Returns 0, or -1 if there is no process in the file. */
static int clean_process(void)
{
    if (!ms_table_rows(MS_TABLE_PROCESS))
        return -1;
    ms_process_adopt();
    struct ms_process *process = ms_process();
    if (atomic_load(&process->described) != 1 || process->pid <= 0)
        return -1;
    if (atomic_load(&process->end_reason) >= MS_END_COUNT)
        atomic_store(&process->end_reason, MS_END_NONE);
    if (process->ppid < 0)
        process->ppid = 0;
    clamp(&process->start_unix_ns, INT64_MAX / 2);
    clamp_atomic(&process->end_ns, INT64_MAX);
    clamp_atomic(&process->divergent, INT64_MAX);
    clamp_atomic(&process->unseen_frees, INT64_MAX);
    clamp_atomic(&process->late_frees, INT64_MAX);
    clamp_atomic(&process->replaced_blocks, INT64_MAX);
    clamp_atomic(&process->merged_allocs, INT64_MAX);
    clamp_atomic(&process->oom_count, INT64_MAX);
    clamp_atomic(&process->oom_parts, atomic_load(&process->oom_count));
    clamp_atomic(&process->death_count, INT64_MAX);
    for (unsigned i = 0; i < MS_ROUTE_COUNT; i++)
        clamp_atomic(&process->routes[i], INT64_MAX);
    for (unsigned i = 0; i < MS_NEIGHBOURS_COUNT; i++)
        clamp_atomic(&process->neighbours[i], INT64_MAX);
    return 0;
}

/* When the record's last event was. Rows of sites are written first: the last call of a process that was
 * killed may stand in its site alone. */
static uint64_t last_ns(void)
{
    uint64_t last = atomic_load(&ms_process()->end_ns);
    for (unsigned i = 0; i < MS_ACCOUNTS; i++) {
        const struct ms_account *account = ms_account_of(ms_account_device(i));
        last = account->last_ns > last ? account->last_ns : last;
    }
    for (uint32_t i = 0; i < ms_site_count(); i++) {
        uint64_t latest = ms_site_latest_ns(ms_site_at(i));
        last = latest > last ? latest : last;
    }
    for (int i = 0; i < MS_DEVICES_MAX; i++) {
        struct ms_balance balance;
        if (ms_balance_read(i, MS_BALANCE_LATEST, &balance) && balance.asked_ns > last)
            last = balance.asked_ns;
    }
    return last < INT64_MAX / 4 ? last : INT64_MAX / 4;
}

static uint64_t end_of_record(bool live)
{
    struct timespec t;
    uint64_t now_ns, last = last_ns();
    clock_gettime(CLOCK_MONOTONIC, &t);
    now_ns = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
    if (!live || now_ns < ms_process()->start_monotonic_ns + last)
        return last;
    return now_ns - ms_process()->start_monotonic_ns;
}

int ms_ledger_load(int fd, bool live, char *error, size_t error_bytes)
{
    ms_objects_reset();
    ms_at_fork_run(MS_FORK_RECORD);
    if (ms_store_load(fd, live, error, error_bytes) != 0)
        return -1;
    if (clean_process() != 0) {
        snprintf(error, error_bytes, "is the beginning of a ledger: nothing was recorded in it");
        return -1;
    }
    ms_accounts_open();
    clean_text();
    clean_objects();
    clean_apis();
    clean_devices();
    clean_accounts();
    clean_sites();
    ms_recover_rings();
    ms_recover_invalid_frees();
    ms_recover_footprints();
    ms_heaps_clean();
    ms_balance_clean();
    ms_uses_clean();
    count_blocks();
    settle_peaks();
    settle_inner();
    settle_kinds();
    ms_balance_adopt();
    ms_recover_pools();
    ms_phases_clean();
    ms_history_adopt(ms_process()->timeline_buckets);
    ms_events_freeze(end_of_record(live));
    return 0;
}

/* The n-th field of /proc/PID/stat, by the first thread's, as ms_process_describe reads it; 0 if it cannot be
 * had. The second one is a name, which may hold anything. */
static uint64_t stat_field(int n)
{
    char path[64], line[1024];
    const char *field = NULL;
    int pid = (int)ms_process()->pid;
    snprintf(path, sizeof path, "/proc/%d/task/%d/stat", pid, pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    if (fgets(line, sizeof line, file))
        field = strrchr(line, ')');
    fclose(file);
    for (int i = 2; i < n && field; i++)
        field = strchr(field + 1, ' ');
    return field ? strtoull(field, NULL, 10) : 0;
}

/* One line of /proc/PID/maps. The name counts besides the inode, which an overlay may show as another. */
static bool is_mapping_of(const char *line, const char *name, uint64_t inode)
{
    unsigned long long found;
    const char *slash = strrchr(line, '/');
    size_t length = strlen(name);
    return (sscanf(line, "%*x-%*x %*s %*x %*x:%*x %llu", &found) == 1 && found && found == inode) ||
           (slash && strncmp(slash + 1, name, length) == 0 && slash[1 + length] == '\n');
}

/* A process that was replaced by exec is another one in all but its number: it does not have the file. */
static enum ms_alive has_mapped(int fd, const char *name)
{
    char path[64], line[8192];
    struct stat status;
    enum ms_alive alive = MS_ALIVE_NO;
    bool any = false;
    snprintf(path, sizeof path, "/proc/%d/maps", (int)ms_process()->pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return MS_ALIVE_UNKNOWN;
    if (fstat(fd, &status) != 0)
        status.st_ino = 0;
    while (alive == MS_ALIVE_NO && fgets(line, sizeof line, file)) {
        any = true;
        if (is_mapping_of(line, name, status.st_ino))
            alive = MS_ALIVE_YES;
    }
    /* Of a process whose first thread has ended nothing is shown. */
    if (ferror(file) || (!any && stat_field(20) > 1))
        alive = MS_ALIVE_UNKNOWN;
    fclose(file);
    return alive;
}

enum ms_alive ms_ledger_alive(int fd, const char *path)
{
    struct stat status;
    const char *slash = strrchr(path, '/');
    if (stat("/proc/self/ns/pid", &status) != 0 || (uint64_t)status.st_ino != ms_process()->pid_space)
        return MS_ALIVE_UNKNOWN;
    if (!ms_process()->start_ticks || stat_field(22) != ms_process()->start_ticks)
        return MS_ALIVE_NO;
    return has_mapped(fd, slash ? slash + 1 : path);
}
