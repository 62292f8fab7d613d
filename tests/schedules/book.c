/* book.c - calls of the ledger's, noted before and after; see book.h. */
#include <stdio.h>
#include <string.h>

#include "base/at_fork.h"
#include "base/arena.h"
#include "base/thread/bias.h"
#include "base/thread/guard.h"
#include "base/log.h"
#include "base/objects/objects.h"
#include "base/options/options.h"
#include "base/thread/aux_stack.h"
#include "book_rows.h"
#include "engine.h"
#include "files.h"
#include "record/file/journal.h"
#include "record/live/inner.h"
#include "record/live/invalid_frees.h"
#include "record/footprint/footprints.h"

#define FIRST_FILE FILES_DIRECTORY "/memshim-1234-5678.ledger"

struct book book;

static const struct ms_api_info apis[BOOK_APIS] = {
    {"first", "test"}, {"second", "test"}, {"third", "test"}, {"fourth", "test"}};

void book_start(bool touched, const char *option)
{
    char directory[] = "MEMSHIM_DIR=" FILES_DIRECTORY;
    char other[64], *environment[] = {directory, other, NULL};
    snprintf(other, sizeof other, "%s", option);
    ms_options_load(environment, NULL, NULL);
    ms_bias_start();
    ms_ledger_init(apis, BOOK_APIS);
    for (unsigned i = 0; i < BOOK_BLOCKS; i++)
        book.blocks[i].block = (struct ms_block){.key = 0x7f0000000000u + i * 0x100000u,
                                                 .bytes = (i + 1) * 4096u + i,
                                                 .requested = (i + 1) * 4096u + i - (i % 3 ? 0 : 5),
                                                 .context = i < 8 ? 1 + i % 2 : 2,
                                                 .stream = i,
                                                 .stack = i,
                                                 .thread = 1000 + i,
                                                 .api = (uint16_t)(i % BOOK_APIS)};
    if (touched) {
        book_touch();
        book.is_open = true;
    }
}

void book_fork(void)
{
    engine_end_others();
    uint64_t sum = book_sum_of_first();
    ms_store_reset();
    ms_log_reset();
    ms_arena_reset();
    ms_aux_stacks_reset();
    ms_objects_reset();
    ms_stack_reset();
    ms_at_fork_run(MS_FORK_RECORD);
    ms_bias_reset();
    ms_thread.tid = 0;
    memset(&book, 0, sizeof book);
    book.is_child = true;
    book.parent_sum = sum;
    book_start(false, "MEMSHIM_TIMELINE=16");
}

static void touch(void)
{
    book_touch();
    book.is_open = true;
}

bool book_is_open(void)
{
    return book.is_open;
}

const char *book_path(void)
{
    /* Of the process that files.c tells of; there a child has its parent's number, and so the next name. */
    return book.is_child ? FILES_DIRECTORY "/memshim-1234-5678.2.ledger" : FIRST_FILE;
}

/* Three frames of its own, below two that every fourth has. */
unsigned book_frames(unsigned stack, uintptr_t *frames)
{
    unsigned count = 3 + stack % (BOOK_FRAMES - 4);
    for (unsigned i = 0; i < count; i++)
        frames[i] = 0x10000000u + (stack << 8) + i;
    frames[count] = 0x20000000u + stack % 4;
    frames[count + 1] = 0x30000000u;
    return count + 2;
}

ms_stack_id book_stack(unsigned i)
{
    uintptr_t frames[BOOK_FRAMES + 1];
    unsigned count = book_frames(i, frames);
    return ms_stack_intern(frames, count);
}

static void begin(struct range *range, uint64_t by)
{
    range->most += by;
}

static void end(struct range *range, uint64_t by)
{
    range->least += by;
}

static struct book_site *site_of(const struct ms_block *block)
{
    unsigned i = 0;
    while (i < book.site_count &&
           (book.sites[i].like.stack != block->stack || book.sites[i].like.api != block->api ||
            book.sites[i].like.kind != block->kind || book.sites[i].like.device != block->device))
        i++;
    if (i == BOOK_SITES) {
        engine_fail("the program has too many sites");
        i = 0;
    }
    if (i == book.site_count) {
        book.sites[i].like = *block;
        book.site_count++;
    }
    return &book.sites[i];
}

/* What is live, at least and at most, and what was. */
static void raise(const struct ms_block *block, bool least, bool most)
{
    if (!ms_kind_is_device(block->kind))
        return;
    struct range *live = &book.live[book_place(block->device)], *peak = &book.peak[book_place(block->device)];
    live->least += least ? block->bytes : 0;
    live->most += most ? block->bytes : 0;
    peak->least = live->least > peak->least ? live->least : peak->least;
    peak->most = live->most > peak->most ? live->most : peak->most;
}

static void lower(const struct ms_block *block, bool least, bool most)
{
    if (!ms_kind_is_device(block->kind))
        return;
    struct range *live = &book.live[book_place(block->device)];
    live->least -= least ? block->bytes : 0;
    live->most -= most ? block->bytes : 0;
}

static void set(struct book_block *row, enum presence is)
{
    row->is = is;
    row->changes++;
}

struct ms_block *book_block(unsigned i)
{
    return &book.blocks[i].block;
}

static uint32_t take_block(const struct ms_block *block, bool served, bool ends_with_block)
{
    if (served)
        return ms_ledger_serve(block);
    if (ends_with_block)
        ms_inner_alloc((uint32_t)block->context, block->key, block->bytes, ms_device_plain(block->device),
                       block->api, block->thread, block->stack, true);
    else
        ms_ledger_alloc(block);
    return 0;
}

static void book_take_as(unsigned i, bool served, bool ends_with_block)
{
    struct book_block *row = &book.blocks[i];
    struct book_site *site = site_of(&row->block);
    if (row->is != BOOK_GONE)
        engine_fail("block %u is there already", i);
    touch();
    begin(&site->count, 1);
    begin(&site->bytes, row->block.bytes);
    raise(&row->block, false, true);
    set(row, BOOK_COMING);
    row->block.is_served = served;
    struct ms_block block = row->block;
    block.stack = book_stack(row->block.stack);
    row->record_id = take_block(&block, served, ends_with_block);
    set(row, BOOK_THERE);
    raise(&row->block, true, false);
    end(&site->bytes, row->block.bytes);
    end(&site->count, 1);
}

void book_take_block(unsigned i, bool served)
{
    book_take_as(i, served, false);
}

void book_carve(unsigned i, unsigned stack)
{
    book.blocks[i].block.stack = stack;
    book_take_as(i, false, true);
}

void book_take(unsigned i, unsigned stack, bool served)
{
    book.blocks[i].block.stack = stack;
    book_take_block(i, served);
}

static bool begin_free(struct book_block *row, struct ms_block *block_p)
{
    if (row->block.is_served)
        return ms_ledger_unserve(row->record_id, row->block.key, block_p);
    return ms_ledger_free_begin((enum ms_space)row->block.space, row->block.key, block_p);
}

bool book_give(unsigned i)
{
    struct book_block *row = &book.blocks[i];
    struct book_site *site = site_of(&row->block);
    struct ms_block block;
    if (row->is != BOOK_THERE)
        return false;
    begin(&site->freed, 1);
    set(row, BOOK_GOING);
    lower(&row->block, true, false);
    bool found = begin_free(row, &block);
    if (!found && site->died.most > site->died.least) { /* with its context, a moment before */
        set(row, BOOK_GONE);
        lower(&row->block, false, true);
        site->freed.most--;
        end(&site->died, 1);
        return true;
    }
    if (!found)
        engine_fail("block %u is not there when it is freed", i);
    else if (block.key != row->block.key || block.bytes != row->block.bytes)
        engine_fail("another block is freed than %u", i);
    set(row, BOOK_GONE);
    lower(&row->block, false, true);
    end(&site->freed, 1);
    return true;
}

void book_give_whole(unsigned i)
{
    const struct ms_block *whole = &book.blocks[i].block;
    bool ends[BOOK_BLOCKS] = {false};
    for (unsigned k = 0; k < BOOK_BLOCKS; k++) {
        struct book_block *row = &book.blocks[k];
        ends[k] = row->is == BOOK_THERE && row->block.space == MS_SPACE_INNER &&
                  row->block.key - whole->key < whole->bytes;
        if (!ends[k])
            continue;
        begin(&site_of(&row->block)->freed, 1);
        set(row, BOOK_GOING);
        lower(&row->block, true, false);
    }
    book_give(i);
    for (unsigned k = 0; k < BOOK_BLOCKS; k++) {
        struct book_block *row = &book.blocks[k];
        if (!ends[k])
            continue;
        set(row, BOOK_GONE);
        lower(&row->block, false, true);
        end(&site_of(&row->block)->freed, 1);
    }
}

bool book_refuse(unsigned i)
{
    struct book_block *row = &book.blocks[i];
    struct book_site *site = site_of(&row->block);
    struct ms_block block;
    if (row->is != BOOK_THERE || row->block.is_served)
        return false;
    begin(&site->freed, 1);
    begin(&book.refused, ms_kind_is_device(row->block.kind));
    set(row, BOOK_GOING);
    lower(&row->block, true, false);
    if (!begin_free(row, &block))
        engine_fail("block %u is not there when its free begins", i);
    ms_ledger_free_abort(&block);
    set(row, BOOK_THERE);
    raise(&row->block, true, false);
    end(&book.refused, ms_kind_is_device(row->block.kind));
    site->freed.most--;
    return true;
}

void book_die(uint64_t context)
{
    bool dies[BOOK_BLOCKS] = {false};
    for (unsigned i = 0; i < BOOK_BLOCKS; i++) {
        struct book_block *row = &book.blocks[i];
        if (row->block.context != context || (row->is != BOOK_THERE && row->is != BOOK_GOING))
            continue;
        begin(&site_of(&row->block)->died, 1);
        dies[i] = row->is == BOOK_THERE;
        if (!dies[i]) /* somebody frees it: who is first? */
            continue;
        set(row, BOOK_GOING);
        lower(&row->block, true, false);
    }
    begin(&book.deaths, 1);
    ms_ledger_context_died(context);
    for (unsigned i = 0; i < BOOK_BLOCKS; i++) {
        struct book_block *row = &book.blocks[i];
        if (!dies[i])
            continue;
        set(row, BOOK_GONE);
        end(&site_of(&row->block)->died, 1);
        lower(&row->block, false, true);
    }
    end(&book.deaths, 1);
}

void book_call(uint16_t api, bool succeeded, bool served, uint64_t bytes)
{
    touch();
    begin(&book.calls[api], 1);
    begin(&book.failures[api], !succeeded);
    begin(&book.served[api], served);
    begin(&book.call_bytes[api], succeeded ? bytes : 0);
    ms_ledger_call(api, succeeded, served, bytes);
    end(&book.call_bytes[api], succeeded ? bytes : 0);
    end(&book.served[api], served);
    end(&book.failures[api], !succeeded);
    end(&book.calls[api], 1);
}

/* What it says is told by what was asked for. */
void book_oom(uint16_t api, unsigned stack)
{
    const struct ms_oom_view view = {.cause = MS_OOM_CAPACITY, .reserved = 1 << 20, .largest_free = 1 << 10};
    touch();
    ms_stack_id id = book_stack(stack);
    begin(&book.ooms, 1);
    ms_ledger_oom(api, 0, 1000 + stack, id, &view);
    end(&book.ooms, 1);
}

void book_misfree(unsigned i, unsigned stack)
{
    const struct ms_block *block = &book.blocks[i].block;
    struct ms_invalid_free invalid_free;
    ms_stack_id id = book_stack(stack);
    if (!ms_ledger_invalid_free_find(MS_SPACE_ADDRESS, block->key, false, &invalid_free))
        return; /* another block is in its slot by now */
    if (invalid_free.rule == MS_INVALID_FREE_DOUBLE && invalid_free.bytes != block->bytes)
        engine_fail("the block that was freed before had %llu bytes", (unsigned long long)block->bytes);
    begin(&book.invalid_frees, 1);
    ms_ledger_invalid_free(&invalid_free, 1, id);
    end(&book.invalid_frees, 1);
}

/* Each takes 4 KiB. */
void book_taking(uint64_t context, uint64_t module, unsigned stack)
{
    touch();
    struct ms_footprint_event taking = {.kind = module ? MS_FOOTPRINT_MODULE : MS_FOOTPRINT_CONTEXT,
                                        .context = context,
                                        .module = module,
                                        .bytes = 4096,
                                        .is_exact = true,
                                        .stack = book_stack(stack),
                                        .device = 0,
                                        .api = 1};
    begin(&book.takings, 1);
    ms_ledger_footprint_grew(&taking);
    end(&book.takings, 1);
}

struct ms_segment_record book_segment_record(unsigned i)
{
    return (struct ms_segment_record){
        .address = 0x7e0000000000u + i * 0x1000000u, .bytes = (i + 1) << 21, .context = 1, .tier = 1};
}

void book_segment(unsigned i, bool comes)
{
    struct ms_segment_record record = book_segment_record(i);
    touch();
    book.segments[i] = comes ? BOOK_COMING : BOOK_GOING;
    if (comes)
        ms_ledger_segment_added(&record);
    else
        ms_ledger_segment_removed(record.address);
    book.segments[i] = comes ? BOOK_THERE : BOOK_GONE;
}

void book_pool(uint64_t reserved_bytes)
{
    struct ms_pool_figures record = {.reserved_bytes = reserved_bytes,
                                     .peak_reserved_bytes = 64 << 20,
                                     .parts = {.cached = reserved_bytes},
                                     .peak_parts = {.cached = 64 << 20}};
    begin(&book.pool_told, 1);
    record.served_allocs = book.pool_told.most;
    ms_ledger_pool(0, &record);
    end(&book.pool_told, 1);
}

void book_flow(unsigned i, uint64_t live_bytes)
{
    struct ms_stream_figures record = {.pool = i + 1, .stream = i, .live_bytes = live_bytes};
    begin(&book.arenas[i], 1);
    record.hits[0] = book.arenas[i].most;
    ms_ledger_stream_arena(i, &record);
    end(&book.arenas[i], 1);
}

struct ms_ipc_export book_export_record(unsigned i)
{
    return (struct ms_ipc_export){.address = 0x7e0000000000u + i * 4096u,
                                  .offset = i * 4096u,
                                  .bytes = 512 * (i + 1),
                                  .segment_bytes = 1 << 21,
                                  .context = 1,
                                  .handle = {(unsigned char)(i + 1)}};
}

static void set_export(unsigned i, enum presence is)
{
    book.exports[i] = is;
    book.export_changes[i]++;
}

void book_export(unsigned i)
{
    struct ms_ipc_export record = book_export_record(i);
    const char *why = "";
    touch();
    if (!ms_ipc_export_publish(&record, book.tokens[i], &book.export_rows[i], &why))
        engine_fail("export %u: %s", i, why);
    set_export(i, BOOK_THERE);
}

void book_revoke(unsigned i)
{
    set_export(i, BOOK_GOING);
    ms_ipc_export_revoke(book.export_rows[i]);
    set_export(i, BOOK_GONE);
}

const char *book_line(unsigned i)
{
    static const char *const lines[BOOK_LINES] = {"what cannot be seen", "what nobody looks at",
                                                  "what is elsewhere", "what comes last"};
    return lines[i];
}

void book_blind_spot(unsigned i)
{
    book.lines[i] = book.lines[i] == BOOK_THERE ? BOOK_THERE : BOOK_COMING;
    ms_ledger_blind_spot(book_line(i));
    book.lines[i] = BOOK_THERE;
}

void book_device(unsigned i)
{
    struct ms_device_info info = {.total_bytes = (uint64_t)(i + 1) << 30};
    snprintf(info.name, sizeof info.name, "device %u", i);
    book.devices[i] = book.devices[i] == BOOK_THERE ? BOOK_THERE : BOOK_COMING;
    ms_ledger_device((int)i, &info);
    book.devices[i] = BOOK_THERE;
}

void book_heap(unsigned i, uint64_t bytes)
{
    struct range *most = &book.heap_most[i];
    char name[16];
    snprintf(name, sizeof name, "heap %u", i);
    touch();
    book.heaps[i] = book.heaps[i] == BOOK_THERE ? BOOK_THERE : BOOK_COMING;
    most->most = bytes > most->most ? bytes : most->most;
    uint32_t heap = ms_heap_open(name, 0, 1);
    book.heaps[i] = BOOK_THERE;
    if (!heap)
        engine_fail("heap %u found no room", i);
    ms_heap_reserved(heap, bytes);
    most->least = bytes > most->least ? bytes : most->least;
}

void book_end(void)
{
    book.ended = BOOK_COMING;
    for (unsigned i = 0; i < BOOK_EXPORTS; i++) {
        if (book.exports[i] == BOOK_THERE)
            set_export(i, BOOK_GOING);
    }
    ms_journal_end(MS_END_EXIT, 0);
    book.ended = BOOK_THERE;
    for (unsigned i = 0; i < BOOK_EXPORTS; i++)
        set_export(i, BOOK_GONE);
}
