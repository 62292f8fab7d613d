/* book_check.c - whether what the ledger says is what the book has; see book.h. */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "book_rows.h"
#include "files.h"
#include "record/file/process.h"
#include "record/reader/snapshot.h"

static struct ms_snapshot snapshot;
static struct book view; /* the book, as it was while the snapshot was taken: what changed may be either */
static char *why_p;
static size_t why_size;

void book_tell(char *why, size_t why_bytes)
{
    why_p = why;
    why_size = why_bytes;
}

bool book_wrong(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(why_p, why_size, format, args);
    va_end(args);
    return false;
}

static bool is_in(struct range range, uint64_t value, const char *what, unsigned i)
{
    if (value >= range.least && value <= range.most)
        return true;
    return book_wrong("%s %u: %llu, where %llu to %llu is true", what, i, (unsigned long long)value,
                      (unsigned long long)range.least, (unsigned long long)range.most);
}

bool book_may_be(enum presence is, bool found, const char *what, unsigned i)
{
    if (found ? is != BOOK_GONE : is != BOOK_THERE)
        return true;
    return book_wrong(found ? "%s %u is there, and is not" : "%s %u is lost", what, i);
}

/* Whether a stack reads back as it was put in. */
static bool is_stack(ms_stack_id id, unsigned stack)
{
    uintptr_t frames[BOOK_FRAMES + 1], frame;
    unsigned count = book_frames(stack, frames);
    uint32_t generation;
    for (unsigned i = 0; i < count; i++) {
        if (ms_stack_node(id, &id, &frame, &generation) != 0 || frame != frames[i])
            return false;
    }
    return id == 0;
}

static bool is_site(const struct ms_site *site, const struct ms_block *like)
{
    return site->api == like->api && site->kind == like->kind && site->device == like->device &&
           is_stack(site->stack, like->stack);
}

static bool is_same(const struct ms_block *a, const struct ms_block *b)
{
    return a->bytes == b->bytes && a->requested == b->requested && a->context == b->context &&
           a->stream == b->stream && a->thread == b->thread && a->device == b->device && a->api == b->api &&
           a->space == b->space && a->kind == b->kind && a->is_served == b->is_served;
}

/* The k-th block of both layers; NULL past the last. */
static const struct ms_block *snapshot_block(uint64_t k)
{
    const struct ms_snapshot_blocks *outer = &snapshot.blocks[MS_LAYER_OUTER],
                                    *inner = &snapshot.blocks[MS_LAYER_INNER];
    if (k < outer->count)
        return &outer->list[k];
    return k - outer->count < inner->count ? &inner->list[k - outer->count] : NULL;
}

static bool check_blocks(void)
{
    bool seen[BOOK_BLOCKS] = {false};
    const struct ms_block *block;
    for (unsigned layer = 0; layer < MS_LAYERS; layer++) {
        if (snapshot.blocks[layer].count != snapshot.blocks[layer].total)
            return book_wrong("there are more blocks than were made");
    }
    for (uint64_t k = 0; (block = snapshot_block(k)) != NULL; k++) {
        unsigned i = 0;
        while (i < BOOK_BLOCKS &&
               (view.blocks[i].block.key != block->key || view.blocks[i].block.space != block->space))
            i++;
        if (i == BOOK_BLOCKS)
            return book_wrong("there is a block at %#llx, where none was made",
                              (unsigned long long)block->key);
        if (seen[i])
            return book_wrong("block %u is there twice", i);
        seen[i] = true;
        if (!is_same(block, &book.blocks[i].block))
            return book_wrong("block %u is another than was made", i);
        if (block->site >= snapshot.site_count ||
            (!view.blocks[i].is_unsure && !is_site(&snapshot.sites[block->site].site, &view.blocks[i].block)))
            return book_wrong("block %u has the site of another", i);
    }
    for (unsigned i = 0; i < BOOK_BLOCKS; i++) {
        if (!book_may_be(view.blocks[i].is, seen[i], "block", i))
            return false;
    }
    return true;
}

static bool check_site(const struct ms_site *site, bool *seen)
{
    unsigned i = 0;
    uint64_t live = 0, count = 0;
    while (i < view.site_count && !is_site(site, &view.sites[i].like))
        i++;
    if (i == view.site_count)
        return book_wrong("there is a site that was not made");
    if (seen[i])
        return book_wrong("site %u is there twice", i);
    seen[i] = true;
    const struct ms_block *block;
    for (uint64_t k = 0; (block = snapshot_block(k)) != NULL; k++) {
        const struct ms_site *own = &snapshot.sites[block->site].site;
        live += own == site ? block->bytes : 0;
        count += own == site;
    }
    if (live != site->live_bytes || count != site->live_count)
        return book_wrong("site %u holds %llu bytes, its blocks %llu", i,
                          (unsigned long long)site->live_bytes, (unsigned long long)live);
    if (site->live_bytes > site->max_bytes || site->max_bytes > site->total_bytes ||
        site->live_count + site->free_count + site->died_count > site->total_count)
        return book_wrong("site %u: its figures do not add up", i);
    return is_in(view.sites[i].count, site->total_count, "allocations of site", i) &&
           is_in(view.sites[i].bytes, site->total_bytes, "bytes of site", i) &&
           is_in(view.sites[i].freed, site->free_count, "frees of site", i) &&
           is_in(view.sites[i].died, site->died_count, "deaths of site", i);
}

/* One that never allocated was being made. */
static bool check_sites(void)
{
    bool seen[BOOK_SITES] = {false};
    for (uint32_t k = 0; k < snapshot.site_count; k++) {
        const struct ms_site *site = &snapshot.sites[k].site;
        if ((site->total_count || site->live_count) && !check_site(site, seen))
            return false;
    }
    for (unsigned i = 0; i < view.site_count; i++) {
        if (!seen[i] && view.sites[i].count.least)
            return book_wrong("site %u is lost", i);
    }
    return true;
}

static uint64_t most_in_timeline(unsigned place)
{
    unsigned device = book_account(place);
    uint64_t most = 0;
    for (unsigned i = 0; snapshot.devices[device].timeline && i < snapshot.timeline_count; i++)
        most = snapshot.devices[device].timeline[i] > most ? snapshot.devices[device].timeline[i] : most;
    return most;
}

/* The sums of a device in a layer. */
static bool check_place(unsigned i)
{
    const struct ms_amount *amount = &snapshot.devices[book_account(i)].account.device;
    uint64_t live = 0, at_peak = 0;
    for (uint32_t k = 0; k < snapshot.site_count; k++) {
        const struct ms_site *site = &snapshot.sites[k].site;
        if (book_place(site->device) != i || !ms_kind_is_device(site->kind))
            continue;
        live += site->live_bytes;
        at_peak += site->at_peak_bytes;
    }
    if (live != amount->live_bytes || at_peak != amount->peak_live_bytes)
        return book_wrong("device %u: %llu live and %llu at its peak, its sites %llu and %llu", i,
                          (unsigned long long)amount->live_bytes, (unsigned long long)amount->peak_live_bytes,
                          (unsigned long long)live, (unsigned long long)at_peak);
    if (most_in_timeline(i) > view.peak[i].most)
        return book_wrong("device %u: its timeline rises above all that ever was", i);
    return is_in(view.live[i], amount->live_bytes, "live bytes of device", i) &&
           is_in(view.peak[i], amount->peak_live_bytes, "peak of device", i);
}

static bool check_device(unsigned i)
{
    struct ms_device_info info;
    bool known = ms_events_device((int)i, &info);
    if (known && info.total_bytes != (uint64_t)(i + 1) << 30)
        return book_wrong("device %u is another", i);
    return book_may_be(view.devices[i], known, "device", i);
}

static bool check_counts(void)
{
    for (unsigned i = 0; i < BOOK_APIS && i < snapshot.counts_count; i++) {
        const struct ms_counts *counts = &snapshot.counts[i];
        if (!is_in(view.calls[i], counts->calls, "calls of function", i) ||
            !is_in(view.failures[i], counts->failures, "failures of function", i) ||
            !is_in(view.served[i], counts->served, "calls served of function", i) ||
            !is_in(view.call_bytes[i], counts->bytes, "bytes of function", i))
            return false;
    }
    return true;
}

static bool check_events(void)
{
    const struct ms_events_copy *events = &snapshot.events;
    uint64_t invalid_frees = 0, takings = 0;
    for (unsigned i = 0; i < events->oom_count; i++) {
        const struct ms_oom *oom = &events->ooms[i];
        if (oom->requested < 1000 || !is_stack(oom->stack, (unsigned)oom->requested - 1000) ||
            oom->cause != MS_OOM_CAPACITY || oom->reserved_bytes != 1 << 20)
            return book_wrong("out-of-memory %u is another than there was", i);
    }
    for (unsigned i = 0; i < snapshot.misfree_count; i++) {
        invalid_frees += snapshot.invalid_frees[i].count;
        if (!snapshot.invalid_frees[i].stack || !snapshot.invalid_frees[i].block_bytes)
            return book_wrong("refused free %u is of nothing", i);
    }
    for (unsigned i = 0; i < snapshot.footprint_count; i++) {
        const struct ms_footprint_row *row = &snapshot.footprints[i];
        takings += row->total_count;
        if (!row->stack || row->count > row->total_count || row->bytes > row->total_bytes ||
            row->total_bytes - row->total_count * 4096 > 4096)
            return book_wrong("taking %u is another than there was", i);
    }
    for (unsigned i = 0; i < events->death_count; i++) {
        if (events->deaths[i].context - 1 > 1 || !events->deaths[i].count)
            return book_wrong("death %u is of nothing", i);
    }
    if (!book_may_be(view.ended, atomic_load(&ms_process()->end_reason) == MS_END_EXIT, "end", 0))
        return false;
    return is_in(view.ooms, events->oom_count + events->lost_ooms, "out-of-memory", 0) &&
           is_in(view.invalid_frees, invalid_frees, "refused frees", 0) &&
           is_in(view.takings, takings, "takings", 0) &&
           (events->death_count <= view.deaths.most || book_wrong("there are more deaths than there were"));
}

static bool check_lines(void)
{
    unsigned found[BOOK_LINES] = {0};
    const char *line;
    for (unsigned k = 0; (line = ms_events_blind_spot(k)); k++) {
        unsigned i = 0;
        while (i < BOOK_LINES && strcmp(line, book_line(i)) != 0)
            i++;
        if (i == BOOK_LINES)
            return book_wrong("there is a line that nobody said: %s", line);
        if (found[i]++)
            return book_wrong("line %u is there twice", i);
    }
    for (unsigned i = 0; i < BOOK_LINES; i++) {
        if (!book_may_be(view.lines[i], found[i], "line", i))
            return false;
    }
    return true;
}

static bool check_segments(void)
{
    for (unsigned i = 0; i < BOOK_SEGMENTS; i++) {
        struct ms_segment_record record = book_segment_record(i);
        const struct ms_segment_row *row;
        unsigned found = 0;
        bool past = false;
        for (uint64_t k = 0; (row = ms_segments_at(k, &past)) || !past; k++) {
            if (!row || row->record.address != record.address)
                continue;
            found++;
            if (row->record.bytes != record.bytes || row->record.tier != record.tier)
                return book_wrong("segment %u is another than was told", i);
        }
        if (found > 1)
            return book_wrong("segment %u is there twice", i);
        if (!book_may_be(view.segments[i], found, "segment", i))
            return false;
    }
    return true;
}

static bool check_heaps(void)
{
    unsigned found[BOOK_HEAPS] = {0};
    for (uint32_t k = 0; k < snapshot.heap_count; k++) {
        const struct ms_heap_row *row = &snapshot.heaps[k];
        char name[16];
        unsigned i = 0;
        do
            snprintf(name, sizeof name, "heap %u", i);
        while (strcmp(name, row->name) != 0 && ++i < BOOK_HEAPS);
        if (i == BOOK_HEAPS || row->device != 0 || row->api != 1)
            return book_wrong("there is a heap \"%s\", which nobody opened", row->name);
        found[i]++;
        uint64_t most = atomic_load(&row->peak_reserved_bytes);
        if (most < view.heap_most[i].least || most > book.heap_most[i].most)
            return book_wrong("heap %u had %llu bytes at most", i, (unsigned long long)most);
    }
    for (unsigned i = 0; i < BOOK_HEAPS; i++) {
        if (found[i] > 1)
            return book_wrong("heap %u is there %u times", i, found[i]);
        if (!book_may_be(found[i] ? book.heaps[i] : view.heaps[i], found[i], "heap", i))
            return false;
    }
    return true;
}

static bool check_pool(void)
{
    struct ms_pool_figures pool;
    struct ms_stream_figures arena;
    bool told = ms_pools_read(0, &pool);
    if (view.pool_told.least && !told)
        return book_wrong("the pool's figures are lost");
    if (told && pool.served_allocs > view.pool_told.most) /* two may tell in another order than they say */
        return book_wrong("the pool has figures that nobody told");
    for (unsigned i = 0; i < BOOK_FLOWS; i++) {
        bool there = ms_stream_arenas_read(i, &arena) && arena.pool;
        if (view.arenas[i].least && (!there || arena.pool != i + 1 || arena.stream != i))
            return book_wrong("flow %u is lost", i);
        if (there && !is_in(view.arenas[i], arena.hits[0], "figures of flow", i))
            return false;
    }
    return true;
}

static void see_blocks(void)
{
    for (unsigned i = 0; i < BOOK_BLOCKS; i++) {
        struct book_block *row = &view.blocks[i];
        row->is_unsure = row->changes != book.blocks[i].changes;
        if (row->is_unsure)
            row->is = BOOK_COMING;
    }
    for (unsigned i = 0; i < BOOK_PLACES; i++) {
        bool unsure = memcmp(&view.live[i], &book.live[i], sizeof view.live[i]) != 0;
        view.live[i] = unsure ? (struct range){0, book.peak[i].most} : book.live[i];
        view.peak[i].most = book.peak[i].most;
    }
}

/* Calls began and returned while the snapshot was taken. */
static void see_changes(void)
{
    see_blocks();
    for (unsigned i = 0; i < book.site_count; i++) {
        const struct range none = {0, 0};
        struct book_site *site = &view.sites[i];
        const struct book_site *now = &book.sites[i];
        if (i >= view.site_count) {
            *site = *now;
            site->count = site->bytes = site->freed = site->died = none;
        }
        site->count.most = now->count.most;
        site->bytes.most = now->bytes.most;
        site->freed.most = now->freed.most > site->freed.most ? now->freed.most : site->freed.most;
        site->died.most = now->died.most;
    }
    view.site_count = book.site_count;
    for (unsigned i = 0; i < BOOK_APIS; i++) {
        view.calls[i].most = book.calls[i].most;
        view.call_bytes[i].most = book.call_bytes[i].most;
        view.failures[i].most = book.failures[i].most;
        view.served[i].most = book.served[i].most;
    }
}

bool book_holds(char *why, size_t why_bytes)
{
    book_tell(why, why_bytes);
    view = book;
    if (ms_snapshot_take(&snapshot, BOOK_BLOCKS + 1, BOOK_BLOCKS + 1) != 0)
        return book_wrong("there is no memory for a snapshot");
    see_changes();
    bool good = snapshot.consistent || book_wrong("a lock is not to be had");
    good = good && check_blocks() && check_sites() && check_counts() && check_events() && check_lines() &&
           check_segments() && check_heaps() && check_pool() && book_texts_hold(&view);
    for (unsigned i = 0; i < BOOK_DEVICES && good; i++)
        good = check_device(i);
    for (unsigned i = 0; i < BOOK_PLACES && good; i++)
        good = check_place(i);
    ms_snapshot_release(&snapshot);
    return good;
}

static bool check_export(int fd, unsigned i)
{
    struct ms_ipc_export record = book_export_record(i), found;
    struct ms_token token;
    const char *reason = NULL;
    static const unsigned char none[MS_TOKEN_BYTES];
    if (memcmp(book.tokens[i], none, sizeof none) == 0)
        return true;
    enum presence before = book.exports[i];
    unsigned changes = book.export_changes[i];
    if (!ms_token_decode(book.tokens[i], &token))
        return book_wrong("export %u has no token", i);
    bool is_there = ms_ipc_export_read(fd, &token, &found, &reason);
    if (is_there && memcmp(&found, &record, sizeof found) != 0)
        return book_wrong("export %u is another block", i);
    /* Beside other tasks it may have gone meanwhile. */
    if (changes != book.export_changes[i] || (is_there ? before != BOOK_GONE : before != BOOK_THERE))
        return true;
    return book_wrong("export %u %s", i, is_there ? "is not revoked" : reason);
}

uint64_t book_sum_of_first(void)
{
    static uint64_t words[8192];
    uint64_t sum = 0, offset = 0;
    int fd = open(FILES_DIRECTORY "/memshim-1234-5678.ledger", O_RDONLY);
    ssize_t bytes;
    while (fd >= 0 && (bytes = pread(fd, words, sizeof words, (off_t)offset)) > 0) {
        for (size_t i = 0; i < (size_t)bytes / sizeof *words; i++)
            sum = (sum ^ words[i]) * 0x9e3779b97f4a7c15u;
        offset += (uint64_t)bytes;
    }
    if (fd >= 0)
        close(fd);
    return sum ^ offset;
}

bool book_parent_is_left(void)
{
    return !book.is_child || book.parent_sum == book_sum_of_first();
}

bool book_exports_hold(char *why, size_t why_bytes)
{
    book_tell(why, why_bytes);
    int fd = open(book_path(), O_RDONLY);
    bool good = true;
    for (unsigned i = 0; fd >= 0 && i < BOOK_EXPORTS && good; i++)
        good = check_export(fd, i);
    if (fd >= 0)
        close(fd);
    return good;
}
