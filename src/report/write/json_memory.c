/* json_memory.c - devices[], memory[], pools[], apis[]; contexts[]: what the driver took of devices for
 * itself.
 *
 * Floor 4. */
#include <stdio.h>
#include <string.h>

#include "report/write/json.h"

static const char *const kind_names[MS_KIND_COUNT] = {
    [MS_KIND_DEVICE] = "device", [MS_KIND_ASYNC] = "async",           [MS_KIND_MANAGED] = "managed",
    [MS_KIND_ARRAY] = "array",   [MS_KIND_HANDLE] = "handle",         [MS_KIND_GRAPH] = "graph",
    [MS_KIND_PINNED] = "pinned", [MS_KIND_REGISTERED] = "registered", [MS_KIND_IMPORTED] = "imported",
    [MS_KIND_INNER] = "inner",
};

const char *ms_json_kind_name(enum ms_kind kind)
{
    return kind < MS_KIND_COUNT ? kind_names[kind] : "unknown";
}

static void set_amount(json_t *json, const struct ms_amount *amount)
{
    json_object_set_new(json, "live_bytes", json_integer((json_int_t)amount->live_bytes));
    json_object_set_new(json, "live_count", json_integer((json_int_t)amount->live_count));
    json_object_set_new(json, "peak_live_bytes", json_integer((json_int_t)amount->peak_live_bytes));
    json_object_set_new(json, "total_bytes", json_integer((json_int_t)amount->total_bytes));
    json_object_set_new(json, "total_count", json_integer((json_int_t)amount->total_count));
}

/* As nvidia-smi spells it. */
static json_t *uuid_text(const uint8_t *uuid)
{
    char text[48] = "GPU";
    size_t used = 3;
    for (unsigned i = 0; i < 16; i++) {
        bool dash = i == 0 || i == 4 || i == 6 || i == 8 || i == 10;
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%02x", dash ? "-" : "", uuid[i]);
    }
    return json_string(text);
}

static json_t *kinds(const struct ms_account *account)
{
    json_t *json = json_object();
    for (unsigned kind = 0; kind < MS_KIND_COUNT; kind++) {
        if (!account->kinds[kind].total_count)
            continue;
        json_t *amount = json_object();
        set_amount(amount, &account->kinds[kind]);
        json_object_set_new(json, kind_names[kind], amount);
    }
    return json;
}

static uint64_t allocations(const struct ms_account *account)
{
    uint64_t count = 0;
    for (unsigned kind = 0; kind < MS_KIND_COUNT; kind++)
        count += account->kinds[kind].total_count;
    return count;
}

void ms_json_figures(json_t *json, const struct ms_figure_list *list, unsigned told, const void *figures)
{
    for (unsigned i = 0; i < list->count; i++) {
        if (list->rows[i].told & told)
            json_object_set_new(json, list->rows[i].key,
                                json_integer((json_int_t)ms_figure_in(&list->rows[i], figures)));
    }
}

json_t *ms_json_parts(const struct ms_parts *parts)
{
    json_t *json = json_object();
    ms_json_figures(json, &ms_figure_parts, MS_FIGURE_POOL, parts);
    return json;
}

static uint64_t without(uint64_t all, uint64_t part)
{
    return all > part ? all - part : 0;
}

/* The allocations that the vendor was spared, each as long as those that it made took on average: what their
 * frees would have waited is not known. */
static uint64_t saved_ns(const struct ms_pool_figures *pool)
{
    uint64_t spared = without(pool->served_allocs, pool->vendor_allocs), ns;

    if (!pool->vendor_allocs || __builtin_mul_overflow(pool->vendor_ns / pool->vendor_allocs, spared, &ns) ||
        ns > INT64_MAX)
        return 0;
    return ns;
}

/* Calls that allocate or free device memory: those that the vendor saw, and those that it was spared. What
 * comes and goes with graphs nobody calls for. */
static void set_vendor_calls(json_t *json, const struct ms_snapshot_device *device)
{
    const struct ms_pool_figures *pool = &device->pool;
    const struct ms_amount *graphs = &device->account.kinds[MS_KIND_GRAPH];
    uint64_t all = without(allocations(&device->account) + device->freed_count,
                           2 * graphs->total_count - graphs->live_count);
    uint64_t served = pool->served_allocs + pool->served_frees,
             made = pool->vendor_allocs + pool->vendor_frees;
    json_object_set_new(json, "program_calls", json_integer((json_int_t)all));
    json_object_set_new(json, "vendor_calls", json_integer((json_int_t)(without(all, served) + made)));
    json_object_set_new(json, "vendor_calls_saved", json_integer((json_int_t)without(served, made)));
    json_object_set_new(json, "vendor_ns", json_integer((json_int_t)pool->vendor_ns));
    json_object_set_new(json, "vendor_ns_saved", json_integer((json_int_t)saved_ns(pool)));
}

void ms_json_set_device(json_t *json, int number)
{
    number = ms_device_plain(number);
    json_object_set_new(json, "device", json_integer(ms_device_index(number)));
    if (number >= 0 && ms_device_maker(number) != MS_MAKER_CUDA)
        json_object_set_new(json, "device_api", json_string(ms_device_api(number)));
}

/* Of parts whose keys mislead: "pinned" is no pinned memory. Beside the parts, which add up. */
static void set_plain_names(json_t *json, const struct ms_pool_figures *pool)
{
    json_object_set_new(json, "fragmented_bytes", json_integer((json_int_t)pool->parts.stranded));
    json_object_set_new(json, "peak_fragmented_bytes", json_integer((json_int_t)pool->peak_parts.stranded));
    json_object_set_new(json, "shared_bytes", json_integer((json_int_t)pool->parts.pinned));
    json_object_set_new(json, "peak_shared_bytes", json_integer((json_int_t)pool->peak_parts.pinned));
}

/* The state of balances[]: whether it has rows of the device that the driver was asked for, and if not,
 * why. */
static const char *balance_state(const struct ms_snapshot_device *device)
{
    return device->has_balance[MS_BALANCE_LATEST]           ? "told"
           : device->balance_missed[MS_BALANCE_NEVER_STILL] ? "never_still"
           : device->balance_missed[MS_BALANCE_MORE_HELD]   ? "more_held"
                                                            : "unasked";
}

/* Figures that were noted at different moments of a call are put right: no more was live, or reserved, than
 * was held. */
static uint64_t most_held(const struct ms_snapshot_device *device, uint64_t held)
{
    uint64_t most = device->peak_held_bytes > held ? device->peak_held_bytes : held;
    if (device->account.device.peak_live_bytes > most)
        most = device->account.device.peak_live_bytes;
    return device->pool.peak_reserved_bytes > most ? device->pool.peak_reserved_bytes : most;
}

static json_t *device(int number, const struct ms_snapshot_device *device)
{
    static const uint8_t no_uuid[16];
    struct ms_device_info info;
    const struct ms_amount *amount = &device->account.device;
    const struct ms_pool_figures *pool = &device->pool;
    if (!ms_events_device(number, &info))
        memset(&info, 0, sizeof info);
    json_t *json = json_pack("{s:i, s:s, s:o}", "index", ms_device_index(number), "api",
                             ms_device_api(number), "name", ms_out_string(info.name));
    if (memcmp(info.uuid, no_uuid, sizeof no_uuid) != 0)
        json_object_set_new(json, "uuid", uuid_text(info.uuid));
    json_t *rest = json_pack(
        "{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:I, s:I, s:o}", "total_bytes",
        (json_int_t)info.total_bytes, "granularity_bytes", (json_int_t)info.granularity_bytes, "live_bytes",
        (json_int_t)amount->live_bytes, "live_count", (json_int_t)amount->live_count, "peak_live_bytes",
        (json_int_t)amount->peak_live_bytes, "peak_ns", (json_int_t)device->account.peak_ns, "reserved_bytes",
        (json_int_t)pool->reserved_bytes, "peak_reserved_bytes", (json_int_t)pool->peak_reserved_bytes,
        "followed_bytes", (json_int_t)without(amount->live_bytes, device->served_bytes), "reserved_parts",
        ms_json_parts(&pool->parts), "peak_parts", ms_json_parts(&pool->peak_parts), "allocated_bytes",
        (json_int_t)amount->total_bytes, "allocated_count", (json_int_t)amount->total_count, "kinds",
        kinds(&device->account));
    json_object_update(json, rest);
    set_plain_names(json, pool);
    set_vendor_calls(json, device);
    uint64_t held = ms_snapshot_held(device);
    json_object_set_new(json, "held_bytes", json_integer((json_int_t)held));
    json_object_set_new(json, "peak_held_bytes", json_integer((json_int_t)most_held(device, held)));
    json_object_set_new(json, "balance", json_string(balance_state(device)));
    json_object_set_new(json, "balance_missed",
                        json_integer((json_int_t)device->balance_missed[MS_BALANCE_NEVER_STILL]));
    if (device->has_balance[MS_BALANCE_LATEST])
        json_object_set_new(json, "untracked_bytes",
                            json_integer((json_int_t)device->balances[MS_BALANCE_LATEST].untracked_bytes));
    return json;
}

static bool was_used(int index, const struct ms_snapshot_device *device)
{
    return ms_ledger_device_known(index) || allocations(&device->account) > 0;
}

static void write_apis(struct ms_out *out, const struct ms_snapshot *snapshot)
{
    const struct ms_api_row *row;
    for (unsigned i = 0; i < snapshot->counts_count && (row = ms_events_api(i)) != NULL; i++) {
        const struct ms_counts *counts = &snapshot->counts[i];
        if (!counts->calls)
            continue;
        ms_out_element(out, json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:s}", "name", row->name, "calls",
                                      (json_int_t)counts->calls, "bytes", (json_int_t)counts->bytes,
                                      "failures", (json_int_t)counts->failures, "served",
                                      (json_int_t)counts->served, "followed",
                                      (json_int_t)(counts->calls - counts->served), "family", row->family));
    }
}

/* Whatever devices[] does not show: host memory, and memory of no known device. */
static void write_memory(struct ms_out *out, const struct ms_snapshot *snapshot)
{
    const struct ms_account *no_device = &snapshot->devices[MS_DEVICES_MAX].account;
    for (unsigned kind = 0; kind < MS_KIND_COUNT; kind++) {
        const struct ms_amount *amount =
            ms_kind_is_device(kind) ? &no_device->kinds[kind] : &snapshot->kinds[kind];
        if (!amount->total_count)
            continue;
        json_t *json = json_pack("{s:s}", "kind", kind_names[kind]);
        set_amount(json, amount);
        ms_out_element(out, json);
    }
}

void ms_json_devices(struct ms_out *out, const struct ms_report_input *input)
{
    const struct ms_snapshot *snapshot = input->snapshot;
    ms_out_key(out, "devices");
    ms_out_begin_array(out);
    for (int i = 0; i < MS_DEVICES_MAX; i++) {
        if (was_used(i, &snapshot->devices[i]))
            ms_out_element(out, device(i, &snapshot->devices[i]));
    }
    ms_out_end_array(out);

    ms_out_key(out, "memory");
    ms_out_begin_array(out);
    write_memory(out, snapshot);
    ms_out_end_array(out);

    ms_json_pools(out, input);

    ms_out_key(out, "apis");
    ms_out_begin_array(out);
    write_apis(out, snapshot);
    ms_out_end_array(out);
}

static json_t *contexts_row_json(const struct ms_footprint_row *row, const struct ms_report_input *input)
{
    uint64_t ended_ns = row->ended_ns;
    char context[32];
    snprintf(context, sizeof context, "0x%llx", (unsigned long long)row->context);
    json_t *json = json_pack("{s:s}", "kind", row->kind == MS_FOOTPRINT_CONTEXT ? "context" : "module");
    ms_json_set_device(json, row->device);
    json_t *rest = json_pack(
        "{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s}", "context", context, "api",
        ms_events_api_name(row->api), "stack", (json_int_t)ms_report_stacks_at(input->stacks, row->stack),
        "thread", (json_int_t)row->thread, "t_ns", (json_int_t)row->first_ns, "bytes", (json_int_t)row->bytes,
        "count", (json_int_t)row->count, "total_bytes", (json_int_t)row->total_bytes, "total_count",
        (json_int_t)row->total_count, "confidence", row->is_inferred ? "inferred" : "exact");
    json_object_update(json, rest);
    json_decref(rest);
    if (ended_ns)
        json_object_set_new(json, "ended_ns", json_integer((json_int_t)ended_ns));
    return json;
}

void ms_json_contexts(struct ms_out *out, const struct ms_report_input *input)
{
    ms_out_key(out, "contexts");
    ms_out_begin_array(out);
    for (uint32_t i = 0; i < input->snapshot->footprint_count; i++)
        ms_out_element(out, contexts_row_json(&input->snapshot->footprints[i], input));
    ms_out_end_array(out);
}
