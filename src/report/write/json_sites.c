/* json_sites.c - sites[], leaks[], segments[].
 *
 * Floor 4. A site's id is its place in sites[]. */
#include <stdio.h>
#include <string.h>

#include "report/write/json.h"

enum { NAMES_OF_LEAK_MAX = 8 };

/* Keys are the least size of each class. */
static json_t *size_histogram(const struct ms_site *site)
{
    json_t *json = json_object();
    for (unsigned k = 0; k < MS_SIZE_CLASSES; k++) {
        char least[24];
        if (!site->size_hist[k])
            continue;
        snprintf(least, sizeof least, "%llu", k ? 1ULL << (k - 1) : 0ULL);
        json_object_set_new(json, least, json_integer(site->size_hist[k]));
    }
    return json;
}

/* The stack and the interface; not the device, which differs from rank to rank. */
static json_t *site_hash(const struct ms_report_stacks *stacks, const struct ms_site *site)
{
    char text[24];
    uint64_t hash = ms_report_stacks_hash(stacks, site->stack);
    hash = ms_report_hash(hash ? hash : MS_REPORT_HASH_START, ms_events_api_name(site->api),
                          strlen(ms_events_api_name(site->api)));
    hash = ms_report_hash(hash, ms_json_kind_name(site->kind), strlen(ms_json_kind_name(site->kind)));
    snprintf(text, sizeof text, "%016llx", (unsigned long long)hash);
    return json_string(text);
}

/* The estimate of what a sampled stack allocated altogether, as far as its blocks tell. */
static void add_estimate(json_t *json, const struct ms_estimate *total, const struct ms_estimate *live)
{
    json_object_set_new(json, "estimated_total_bytes", json_integer((json_int_t)total->bytes));
    json_object_set_new(json, "estimated_total_count",
                        json_integer((json_int_t)((total->count_q8 + 128) >> 8)));
    json_object_set_new(json, "estimated_live_bytes", json_integer((json_int_t)live->bytes));
    json_object_set_new(json, "estimated_live_count",
                        json_integer((json_int_t)((live->count_q8 + 128) >> 8)));
}

/* The bytes that a site held at the moments of the timeline: [moment, bytes], if that is another figure than
 * before. */
static void add_held(json_t *json, const struct ms_site *site, uint64_t now_ns)
{
    json_t *held = NULL;
    uint64_t before = 0;
    if (site->span_shift != ms_span_shift(now_ns))
        return;
    for (unsigned i = 0; i < site->span_last && i < MS_SPANS; i++) {
        uint64_t bytes = site->marks[i] < site->max_bytes ? site->marks[i] : site->max_bytes;
        if (bytes == before)
            continue;
        held = held ? held : json_array();
        json_array_append_new(held, json_pack("[i, I]", (int)i, (json_int_t)bytes));
        before = bytes;
    }
    if (held)
        json_object_set_new(json, "held", held);
}

static json_t *json_sites_site_json(uint32_t id, const struct ms_snapshot_site *copy,
                                    const struct ms_report_input *input)
{
    const struct ms_report_stacks *stacks = input->stacks;
    const struct ms_site *site = &copy->site;
    json_t *json = json_pack("{s:I, s:o, s:I}", "id", (json_int_t)id, "hash", site_hash(stacks, site),
                             "stack", (json_int_t)ms_report_stacks_at(stacks, site->stack));
    ms_json_set_device(json, site->device);
    json_t *rest =
        json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:s, s:I, s:I, s:I}", "api",
                  ms_events_api_name(site->api), "total_bytes", (json_int_t)site->total_bytes, "total_count",
                  (json_int_t)site->total_count, "live_bytes", (json_int_t)site->live_bytes, "live_count",
                  (json_int_t)site->live_count, "at_peak_bytes", (json_int_t)site->at_peak_bytes, "max_bytes",
                  (json_int_t)site->max_bytes, "lifetime_ns_sum", (json_int_t)site->lifetime_ns_sum,
                  "rounding_bytes", (json_int_t)site->rounding_bytes, "size_hist", size_histogram(site),
                  "kind", ms_json_kind_name(site->kind), "freed_count", (json_int_t)site->free_count,
                  "first_ns", (json_int_t)site->first_ns, "last_ns", (json_int_t)site->last_ns);
    json_object_update(json, rest);
    json_decref(rest);
    json_object_set_new(json, "requested_bytes",
                        json_integer((json_int_t)(site->total_bytes - site->total_rounding_bytes)));
    if (ms_site_grew(site))
        json_object_set_new(json, "grew_bytes", json_integer((json_int_t)ms_site_grew(site)));
    if (copy->row != id)
        json_object_set_new(json, "row", json_integer(copy->row));
    add_held(json, site, input->snapshot->now_ns);
    if (copy->max_is_bound)
        json_object_set_new(json, "max_is_bound", json_true());
    if (site->estimate.bytes)
        add_estimate(json, &site->estimate, &copy->live_estimate);
    return json;
}

/* Memory that the program allocated; registering or importing somebody's memory allocates none. */
static bool can_leak(unsigned kind)
{
    return kind != MS_KIND_REGISTERED && kind != MS_KIND_IMPORTED;
}

/* The memory that the program had to free: what is live, and what its context took along. Memory that is kept
 * for graphs is the driver's to give back. */
static void owed(const struct ms_snapshot_site *copy, uint64_t *bytes_p, uint64_t *count_p)
{
    bool is_graphs = copy->site.kind == MS_KIND_GRAPH;

    *bytes_p = (is_graphs ? copy->owed_bytes : copy->site.live_bytes) + copy->site.died_bytes;
    *count_p = (is_graphs ? copy->owed_count : copy->site.live_count) + copy->site.died_count;
}

/* The names of a site's live pieces, of the first ones. */
static void add_names(json_t *leak, uint32_t place, const struct ms_snapshot_blocks *inner)
{
    json_t *names = NULL;
    for (uint64_t i = 0; i < inner->count && json_array_size(names) < NAMES_OF_LEAK_MAX; i++) {
        const struct ms_block *block = &inner->list[i];
        if (!block->stream || block->site != place)
            continue;
        names = names ? names : json_array();
        json_array_append_new(names, ms_out_string(ms_phase_text_at((uint32_t)block->stream)));
    }
    if (names)
        json_object_set_new(leak, "names", names);
}

/* Most programs name nothing. */
static const struct ms_snapshot_blocks *named_pieces(const struct ms_snapshot *snapshot, enum ms_layer layer)
{
    const struct ms_snapshot_blocks *inner = &snapshot->blocks[MS_LAYER_INNER];
    for (uint64_t i = 0; layer == MS_LAYER_INNER && i < inner->count; i++) {
        if (inner->list[i].stream)
            return inner;
    }
    return NULL;
}

/* Allocated and never freed: what is live, and what its context took along. */
static void write_leak(struct ms_out *out, uint32_t id, const struct ms_snapshot_site *copy, uint32_t place,
                       const struct ms_snapshot_blocks *named)
{
    const struct ms_site *site = &copy->site;
    uint64_t bytes, count;
    owed(copy, &bytes, &count);
    if (!count || !can_leak(site->kind))
        return;
    uint64_t first_ns = site->died_count ? site->first_ns : copy->live_first_ns;
    uint64_t last_ns = site->died_count ? site->last_ns : copy->live_last_ns;
    json_t *json = json_pack(
        "{s:I, s:I, s:I, s:s, s:I, s:I, s:s, s:I}", "site", (json_int_t)id, "bytes", (json_int_t)bytes,
        "count", (json_int_t)count, "class", ms_site_is_growing(site) ? "growing" : "at_exit", "first_ns",
        (json_int_t)first_ns, "last_ns", (json_int_t)last_ns, "kind", ms_json_kind_name(site->kind),
        "died_with_context_bytes", (json_int_t)site->died_bytes);
    ms_json_set_device(json, site->device);
    if (named)
        add_names(json, place, named);
    ms_out_element(out, json);
}

void ms_json_describe_block(json_t *json, const struct ms_block *block)
{
    if (block->site != UINT32_MAX)
        json_object_set_new(json, "site", json_integer(block->site));
    json_t *rest = json_pack("{s:s, s:s, s:o, s:I, s:I, s:I}", "api", ms_events_api_name(block->api), "kind",
                             ms_json_kind_name(block->kind), "stream", ms_out_hex(block->stream), "thread",
                             (json_int_t)block->thread, "context", (json_int_t)block->context, "born_ns",
                             (json_int_t)block->born_ns);
    json_object_update(json, rest);
    json_decref(rest);
}

static json_t *block_json(const struct ms_block *block)
{
    json_t *json = json_pack("{s:i, s:I, s:I, s:s}", "offset", 0, "bytes", (json_int_t)block->bytes,
                             "requested", (json_int_t)block->requested, "state", "live");
    ms_json_describe_block(json, block);
    return json;
}

static json_t *segment(const struct ms_block *block)
{
    static const char *const spaces[MS_SPACE_COUNT] = {
        [MS_SPACE_ADDRESS] = "address",
        [MS_SPACE_HANDLE] = "handle",
        [MS_SPACE_ARRAY] = "array",
        [MS_SPACE_EXTERNAL] = "external",
    };
    json_t *json = json_object();
    ms_json_set_device(json, block->device);
    json_t *rest = json_pack("{s:o, s:I, s:s, s:s, s:[o], s:s}", "address", ms_out_hex(block->key), "bytes",
                             (json_int_t)block->bytes, "tier", "followed", "backing", "vendor", "blocks",
                             block_json(block), "space",
                             block->space < MS_SPACE_COUNT ? spaces[block->space] : "address");
    json_object_update(json, rest);
    json_decref(rest);
    return json;
}

void ms_json_layer_sites(struct ms_out *out, const struct ms_report_input *input, enum ms_layer layer)
{
    const struct ms_snapshot *snapshot = input->snapshot;
    bool is_inner = layer == MS_LAYER_INNER;
    uint32_t first = is_inner ? snapshot->outer_sites : 0,
             end = is_inner ? snapshot->site_count : snapshot->outer_sites;
    ms_out_key(out, is_inner ? "inner_sites" : "sites");
    ms_out_begin_array(out);
    for (uint32_t i = first; i < end; i++)
        ms_out_element(out, json_sites_site_json(i - first, &snapshot->sites[i], input));
    ms_out_end_array(out);

    const struct ms_snapshot_blocks *named = named_pieces(snapshot, layer);
    ms_out_key(out, is_inner ? "inner_leaks" : "leaks");
    ms_out_begin_array(out);
    for (uint32_t i = first; i < end; i++)
        write_leak(out, i - first, &snapshot->sites[i], i, named);
    ms_out_end_array(out);
}

void ms_json_sites(struct ms_out *out, const struct ms_report_input *input)
{
    const struct ms_snapshot *snapshot = input->snapshot;
    const struct ms_snapshot_blocks *blocks = &snapshot->blocks[MS_LAYER_OUTER];
    ms_json_layer_sites(out, input, MS_LAYER_OUTER);
    ms_out_key(out, "segments");
    ms_out_begin_array(out);
    ms_json_pool_segments(out, input);
    for (uint64_t i = 0; i < blocks->count; i++) {
        if (!blocks->list[i].is_served)
            ms_out_element(out, segment(&blocks->list[i]));
    }
    ms_out_end_array(out);
}
