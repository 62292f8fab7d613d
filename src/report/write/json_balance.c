/* json_balance.c - balances[]: what was in use on a device as its driver said, and whose each byte of it was.
 *
 * Floor 4. Runs in the process too. */
#include "report/write/json.h"

/* Of what contexts and modules took of the device at that time, how much was told from what was in use behind
 * them: others' memory may be in it. */
static void set_inferred(json_t *json, const struct ms_snapshot *snapshot, int device, uint64_t t_ns,
                         uint64_t contexts)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < snapshot->footprint_count; i++) {
        const struct ms_footprint_row *row = &snapshot->footprints[i];
        if (row->device == device && row->is_inferred && row->first_ns <= t_ns &&
            (!row->ended_ns || row->ended_ns > t_ns))
            bytes += row->total_bytes;
    }
    bytes = bytes < contexts ? bytes : contexts;
    if (bytes)
        json_object_set_new(json, "contexts_inferred", json_integer((json_int_t)bytes));
}

/* The terms are in the order of docs/user/report.md and add up to what is in use. */
static json_t *json_balance_row_json(const struct ms_snapshot *snapshot, int device, const char *moment,
                                     uint64_t t_ns, const struct ms_balance *balance)
{
    json_t *json = json_pack("{s:s, s:I, s:I}", "moment", moment, "t_ns", (json_int_t)t_ns, "asked_ns",
                             (json_int_t)balance->asked_ns);
    struct ms_parts parts = balance->parts;
    parts.rounding += balance->driver_rounding_bytes;
    parts.cached += balance->driver_cached_bytes;
    json_t *rest = json_pack(
        "{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s}", "in_use_bytes", (json_int_t)balance->in_use_bytes,
        "driver_rounding", (json_int_t)balance->driver_rounding_bytes, "driver_cached",
        (json_int_t)balance->driver_cached_bytes, "followed", (json_int_t)balance->followed_bytes, "contexts",
        (json_int_t)balance->contexts_bytes, "untracked", (json_int_t)balance->untracked_bytes,
        "managed_bytes", (json_int_t)balance->managed_bytes, "confidence",
        balance->is_inferred ? "inferred" : "exact");
    /* the page and the driver were asked one after the other */
    if (balance->neighbours_bytes)
        json_object_set_new(rest, "neighbours_bytes",
                            json_integer((json_int_t)(balance->neighbours_bytes < balance->untracked_bytes
                                                          ? balance->neighbours_bytes
                                                          : balance->untracked_bytes)));
    ms_json_figures(rest, &ms_figure_parts, MS_FIGURE_POOL, &parts);
    ms_json_set_device(json, device);
    json_object_update(json, rest);
    json_decref(rest);
    set_inferred(json, snapshot, device, t_ns, balance->contexts_bytes);
    return json;
}

static uint64_t contexts_now(const struct ms_snapshot *snapshot, int device)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < snapshot->footprint_count; i++)
        bytes += snapshot->footprints[i].device == device ? snapshot->footprints[i].bytes : 0;
    return bytes;
}

static uint64_t managed_now(const struct ms_snapshot *snapshot)
{
    uint64_t bytes = 0;
    for (unsigned i = 0; i < MS_ACCOUNTS; i++)
        bytes += snapshot->devices[i].account.kinds[MS_KIND_MANAGED].live_bytes;
    return bytes;
}

/* At the end nobody asks the driver any more: others hold what they held when it was asked last, and what
 * this process holds is added to that. */
static json_t *end_json(const struct ms_snapshot *snapshot, int number)
{
    const struct ms_snapshot_device *device = &snapshot->devices[number];
    const struct ms_account *account = &device->account;
    struct ms_balance balance = device->balances[MS_BALANCE_LATEST];
    uint64_t live = account->device.live_bytes - account->kinds[MS_KIND_MANAGED].live_bytes;
    balance.parts = device->pool.parts;
    balance.followed_bytes = live > device->served_bytes ? live - device->served_bytes : 0;
    balance.driver_rounding_bytes = device->driver_rounding_bytes;
    balance.contexts_bytes = contexts_now(snapshot, number);
    balance.managed_bytes = managed_now(snapshot);
    balance.in_use_bytes = ms_balance_known(&balance) + balance.untracked_bytes;
    balance.is_inferred = 1;
    /* another thread may have asked behind the snapshot's moment */
    uint64_t t_ns = balance.asked_ns > snapshot->now_ns ? balance.asked_ns : snapshot->now_ns;
    return json_balance_row_json(snapshot, number, "end", t_ns, &balance);
}

/* The balance by what the driver said when there was no memory; nothing if others were at it meanwhile. */
static json_t *oom_json(const struct ms_snapshot *snapshot, const struct ms_oom *oom, unsigned i)
{
    struct ms_balance balance = {.asked_ns = oom->t_ns,
                                 .in_use_bytes = oom->total_bytes - oom->free_bytes,
                                 .parts = oom->parts,
                                 .followed_bytes = oom->followed_bytes,
                                 .driver_rounding_bytes = oom->driver_rounding_bytes,
                                 .driver_cached_bytes = oom->driver_cached_bytes,
                                 .contexts_bytes = oom->taken_bytes};
    bool closes = ms_balance_close(&balance) || ms_balance_close_less(&balance);
    if (!oom->is_one_moment || !oom->total_bytes || oom->free_bytes > oom->total_bytes || !closes)
        return NULL;
    balance.is_inferred = oom->is_inferred || balance.untracked_bytes || balance.driver_rounding_bytes;
    json_t *json = json_balance_row_json(snapshot, oom->device, "oom", oom->t_ns, &balance);
    json_object_set_new(json, "oom", json_integer((json_int_t)i));
    json_object_del(json, "managed_bytes"); /* nobody noted it then */
    return json;
}

static void write_device(struct ms_out *out, const struct ms_snapshot *snapshot, int number)
{
    static const char *const moments[MS_BALANCE_MOMENTS] = {
        [MS_BALANCE_PEAK] = "peak", [MS_BALANCE_LATEST] = "latest"};
    const struct ms_snapshot_device *device = &snapshot->devices[number];
    for (unsigned moment = 0; moment < MS_BALANCE_MOMENTS; moment++) {
        if (device->has_balance[moment])
            ms_out_element(out, json_balance_row_json(snapshot, number, moments[moment],
                                                      device->balances[moment].asked_ns,
                                                      &device->balances[moment]));
    }
    if (device->has_balance[MS_BALANCE_LATEST])
        ms_out_element(out, end_json(snapshot, number));
}

void ms_json_balances(struct ms_out *out, const struct ms_report_input *input)
{
    const struct ms_snapshot *snapshot = input->snapshot;
    ms_out_key(out, "balances");
    ms_out_begin_array(out);
    for (int device = 0; device < MS_DEVICES_MAX; device++)
        write_device(out, snapshot, device);
    for (unsigned i = 0, place = 0; i < snapshot->events.oom_count; i++) {
        const struct ms_oom *oom = &snapshot->events.ooms[i];
        json_t *json = ms_device_is_known(oom->device) ? oom_json(snapshot, oom, place) : NULL;
        if (json)
            ms_out_element(out, json);
        place += !ms_device_is_inner(oom->device);
    }
    ms_out_end_array(out);
}
