/* json_invalid_frees.c - findings about refused frees: of what had been freed before, and of the inside of a
 * block; about uses of what was freed; about registrations; and about calls in children of fork.
 *
 * Floor 4. One for each pair of places, and one for each rule of what found no row of its own
 * (misfrees.h). */
#include <stdio.h>

#include "base/size.h"
#include "report/write/json.h"

/* "0x7f0000000200", or by its name where it is none. */
static const char *noun_of(unsigned space)
{
    switch (space) {
    case MS_SPACE_HANDLE:
        return "handle ";
    case MS_SPACE_ARRAY:
        return "array ";
    default:
        return "";
    }
}

/* ": 0x7f0000000200, 1.0 MiB from cudaMalloc", as far as it is known. */
static void write_block(const struct ms_invalid_free_row *row, const struct ms_site *site, char *text,
                        size_t bytes)
{
    char size[MS_SIZE_BYTES];
    ms_size_write(row->block_bytes, size, sizeof size);
    int used = snprintf(text, bytes, "%s%s0x%llx, ", row->count > 1 ? "first " : "", noun_of(row->space),
                        (unsigned long long)row->given);
    if (row->rule == MS_INVALID_FREE_INTERIOR && used < (int)bytes)
        used += snprintf(text + used, bytes - (size_t)used, "%llu bytes into ",
                         (unsigned long long)(row->given - row->begin));
    if (used < (int)bytes)
        snprintf(text + used, bytes - (size_t)used, "%s from %s", size,
                 site ? ms_events_api_name(site->api) : "an unknown place");
}

static void write_use(const struct ms_invalid_free_row *row, const struct ms_site *site, char *text,
                      size_t bytes)
{
    const char *what = row->rule == MS_INVALID_FREE_GIVEN ? "was given" : "used";
    unsigned long long count = row->count;
    char size[MS_SIZE_BYTES];
    ms_size_write(row->bytes, size, sizeof size);
    if (row->api == UINT16_MAX)
        snprintf(text, bytes, "%llu more from other places: memory that had been freed %s", count, what);
    else
        snprintf(text, bytes, "%s %s memory that had been freed%s: %s0x%llx, %llu bytes into %s from %s",
                 ms_events_api_name(row->api), what, count > 1 ? ", again and again" : "",
                 count > 1 ? "first " : "", (unsigned long long)row->given,
                 (unsigned long long)(row->given - row->begin), size,
                 site ? ms_events_api_name(site->api) : "an unknown place");
}

static void write_registration(const struct ms_invalid_free_row *row, const struct ms_site *site, char *text,
                               size_t bytes)
{
    const char *const more[] = {[MS_INVALID_FREE_HOST] = "addresses that are no device's were registered",
                                [MS_INVALID_FREE_BEYOND] = "registrations are longer than their blocks",
                                [MS_INVALID_FREE_LEFT] = "registrations were never taken back"};
    const char *api = row->api == UINT16_MAX ? "" : ms_events_api_name(row->api);
    unsigned long long count = row->count, given = row->given;
    const char *first = count > 1 ? "first " : "";
    char size[MS_SIZE_BYTES], block[MS_SIZE_BYTES], calls[40] = "";
    ms_size_write(row->bytes, size, sizeof size);
    ms_size_write(row->block_bytes, block, sizeof block);
    if (count > 1)
        snprintf(calls, sizeof calls, " in %llu calls", count);
    if (row->api == UINT16_MAX)
        snprintf(text, bytes, "%llu more from other places: %s", count, more[row->rule]);
    else if (row->rule == MS_INVALID_FREE_LEFT)
        snprintf(text, bytes, "%llu registration%s by %s %s never taken back: %s", count,
                 count == 1 ? "" : "s", api, count == 1 ? "was" : "were", size);
    else if (row->rule == MS_INVALID_FREE_HOST)
        snprintf(text, bytes, "%s was given %s%s that is no device memory: %s0x%llx", api, size, calls, first,
                 given);
    else
        snprintf(text, bytes,
                 "%s was given %s%s, more than the block has: %s0x%llx, %llu bytes into %s from %s", api,
                 size, calls, first, given, given - row->begin, block,
                 site ? ms_events_api_name(site->api) : "an unknown place");
}

static void write_message(const struct ms_invalid_free_row *row, const struct ms_site *site, char *text,
                          size_t bytes)
{
    bool is_double = row->rule == MS_INVALID_FREE_DOUBLE;
    unsigned long long count = row->count;
    char block[160];
    if (ms_invalid_free_is_use(row->rule)) {
        write_use(row, site, text, bytes);
        return;
    }
    if (row->rule == MS_INVALID_FREE_FORKED) {
        snprintf(text, bytes,
                 "%llu call%s of %s failed in a child of fork: its parent had used the GPU before", count,
                 count == 1 ? "" : "s",
                 row->api == UINT16_MAX ? "other places" : ms_events_api_name(row->api));
        return;
    }
    if (row->rule >= MS_INVALID_FREE_HOST) {
        write_registration(row, site, text, bytes);
        return;
    }
    if (row->api == UINT16_MAX) {
        snprintf(text, bytes, "%llu more from other places: %s", count,
                 is_double ? "blocks that had been freed before" : "addresses inside a block");
        return;
    }
    write_block(row, site, block, sizeof block);
    if (count > 1)
        snprintf(text, bytes, "%s was given %llu %s: %s", ms_events_api_name(row->api), count,
                 is_double ? "blocks that had been freed before" : "addresses inside a block", block);
    else
        snprintf(text, bytes, "%s was given %s: %s", ms_events_api_name(row->api),
                 is_double ? "a block that had been freed before" : "an address inside a block", block);
}

static const char use_advice[] = "whoever is given the memory next finds it changed, or changes it; the "
                                 "driver itself would have given it back, "
                                 "and such a call fails or breaks the context: free it behind its last use";
static const struct {
    const char *name, *advice;
} rules[] = {
    [MS_INVALID_FREE_DOUBLE] = {"double_free",
                                "it was refused and changed nothing; had the address been given out again "
                                "meanwhile, it would have freed somebody else's block: free each block once"},
    [MS_INVALID_FREE_INTERIOR] = {"interior_free",
                                  "it was refused, and the block is still there: free the address "
                                  "that the allocation returned"},
    [MS_INVALID_FREE_USED] = {"use_after_free", use_advice},
    [MS_INVALID_FREE_GIVEN] = {"use_after_free", use_advice},
    [MS_INVALID_FREE_HOST] = {"wrong_registration",
                              "NCCL takes it for the device's: register what ncclMemAlloc or the driver "
                              "allocated on the device"},
    [MS_INVALID_FREE_BEYOND] =
        {"wrong_registration", "what lies behind the block is somebody else's, and may go any time: register "
                               "no more than was allocated"},
    [MS_INVALID_FREE_LEFT] = {"buffers_registered",
                              "each keeps its buffer from going, and costs every rank something: deregister "
                              "what this registers before it is freed, or destroy the communicator"},
    [MS_INVALID_FREE_FORKED] =
        {"forked_with_gpu",
         "no call works in such a child, whatever it does: fork before the first use of the "
         "GPU, or begin processes anew (exec; spawn or forkserver of multiprocessing)"},
};

static json_t *finding(const struct ms_invalid_free_row *row, const struct ms_report_input *input)
{
    uint32_t place = ms_snapshot_layer_place(input->snapshot, MS_LAYER_OUTER, row->site);
    const struct ms_site *site =
        place < input->snapshot->site_count ? &input->snapshot->sites[place].site : NULL;
    char message[400];
    write_message(row, site, message, sizeof message);
    json_t *json =
        json_pack("{s:s, s:s, s:s, s:I}", "rule", rules[row->rule].name, "severity",
                  row->rule == MS_INVALID_FREE_LEFT ? "warning" : "error", "confidence",
                  row->rule == MS_INVALID_FREE_GIVEN ? "inferred" : "exact", "bytes", (json_int_t)row->bytes);
    if (site)
        json_object_set_new(json, "site", json_integer((json_int_t)place));
    if (row->device >= 0)
        ms_json_set_device(json, row->device);
    json_object_set_new(json, "message", json_string(message));
    json_object_set_new(json, "advice", json_string(rules[row->rule].advice));
    json_object_set_new(json, "t_ns", json_integer((json_int_t)row->t_ns));
    json_object_set_new(json, "count", json_integer((json_int_t)row->count));
    if (row->api != UINT16_MAX) {
        json_object_set_new(json, "api", json_string(ms_events_api_name(row->api)));
        json_object_set_new(json, "stack", json_integer(ms_report_stacks_at(input->stacks, row->stack)));
        if (ms_invalid_free_is_use(row->rule) && row->block_bytes)
            json_object_set_new(
                json, "freed_stack",
                json_integer(ms_report_stacks_at(input->stacks, (ms_stack_id)row->block_bytes)));
    }
    return json;
}

void ms_json_invalid_frees(struct ms_out *out, const struct ms_report_input *input)
{
    for (uint32_t i = 0; i < input->snapshot->misfree_count; i++) {
        const struct ms_invalid_free_row *row = &input->snapshot->invalid_frees[i];

        /* what a process that runs, or was ended, has registered it may have a use for */
        if (row->rule != MS_INVALID_FREE_LEFT || input->reason == MS_END_EXIT)
            ms_out_element(out, finding(row, input));
    }
}
