/* json_events.c - timeline, oom[], findings[].
 *
 * Floor 4. Findings are only what the record proves. */
#include <stdio.h>
#include <string.h>

#include "base/size.h"
#include "report/write/json.h"

/* The numbers by which rules speak. */
enum {
#define MS_FINDING(rule, by, severity, confidence)
#define MS_FINDING_NUMBER(name, value, text, rule) name = (value),
#include "report/findings/findings.def"
#undef MS_FINDING
#undef MS_FINDING_NUMBER
};

/* One array of the timeline; `values` NULL is all zeros. */
static void write_series(struct ms_out *out, const char *key, const uint64_t *values, unsigned count)
{
    ms_out_raw(out, ",\"");
    ms_out_raw(out, key);
    ms_out_raw(out, "\":[");
    out->fresh = true;
    for (unsigned i = 0; i < count; i++)
        ms_out_number(out, values ? values[i] : 0);
    ms_out_raw(out, "]");
}

void ms_json_timeline(struct ms_out *out, const struct ms_snapshot *snapshot, enum ms_layer layer)
{
    ms_out_key(out, layer == MS_LAYER_INNER ? "inner_timeline" : "timeline");
    char text[64];
    unsigned count = snapshot->timeline_count;
    snprintf(text, sizeof text, "{\"bucket_ns\":%llu,\n\"t\":[", 1ULL << snapshot->timeline_shift);
    ms_out_raw(out, text);
    out->fresh = true;
    for (unsigned i = 0; i < count; i++)
        ms_out_number(out, (uint64_t)i << snapshot->timeline_shift);
    ms_out_raw(out, "],\n\"moments\":[");
    out->fresh = true;
    unsigned span = ms_span_shift(snapshot->now_ns);
    for (uint64_t i = 1; i <= snapshot->now_ns >> span; i++)
        ms_out_number(out, i << span);
    ms_out_raw(out, "],\n\"devices\":[");
    bool first = true;
    for (int i = 0; i < MS_DEVICES_MAX; i++) {
        const struct ms_snapshot_device *device = &snapshot->devices[layer * MS_LAYER_ACCOUNTS + i];
        if (!device->timeline && !device->reserved)
            continue;
        snprintf(text, sizeof text, "%s{\"device\":%d", first ? "\n" : ",\n", ms_device_index(i));
        ms_out_raw(out, text);
        if (ms_device_maker(i) != MS_MAKER_CUDA) {
            snprintf(text, sizeof text, ",\"device_api\":\"%s\"", ms_device_api(i));
            ms_out_raw(out, text);
        }
        write_series(out, "live", device->timeline, count);
        if (layer == MS_LAYER_OUTER) {
            write_series(out, "reserved", device->reserved, count);
            write_series(out, "limbo", device->pending, count);
        }
        ms_out_raw(out, "}");
        first = false;
    }
    ms_out_raw(out, "]}");
    out->fresh = false;
}

/* Messages are for people: sizes as they read them. What is exact stands in `bytes`. */
struct size_text {
    char text[MS_SIZE_BYTES];
};

static struct size_text size_text(uint64_t bytes)
{
    struct size_text size;
    ms_size_write(bytes, size.text, sizeof size.text);
    return size;
}

static json_t *death_finding(const struct ms_context_died *death)
{
    char message[160];
    snprintf(message, sizeof message, "context %llu was destroyed with %llu block%s (%s) that %s never freed",
             (unsigned long long)death->context, (unsigned long long)death->count,
             death->count == 1 ? "" : "s", size_text(death->bytes).text, death->count == 1 ? "was" : "were");
    json_t *json = json_pack("{s:s, s:s, s:s, s:I}", "rule", "context_died_with_blocks", "severity", "info",
                             "confidence", "exact", "bytes", (json_int_t)death->bytes);
    if (death->device >= 0)
        ms_json_set_device(json, death->device);
    json_object_set_new(json, "message", json_string(message));
    json_object_set_new(json, "advice",
                        json_string("free blocks before their context, or rely on its destruction on "
                                    "purpose: leaks[] counts them"));
    json_object_set_new(json, "t_ns", json_integer((json_int_t)death->t_ns));
    json_object_set_new(json, "count", json_integer((json_int_t)death->count));
    return json;
}

static json_t *unseen_frees_finding(uint64_t count)
{
    char message[160];
    snprintf(message, sizeof message, "%llu block%s freed whose allocation memshim did not see",
             (unsigned long long)count, count == 1 ? " was" : "s were");
    return json_pack("{s:s, s:s, s:s, s:i, s:s, s:s}", "rule", "unseen_frees", "severity", "warning",
                     "confidence", "exact", "bytes", 0, "message", message, "advice",
                     "see coverage.blind_spots; `memshim doctor` tells how the program reaches the GPU");
}

/* True if the program was given memory at its start, by MEMSHIM_PREALLOC: it is meant to lie free. */
static bool is_preallocated(void)
{
    static const char name[] = "PREALLOC=";
    const char *option;
    uint64_t cursor = 0;
    while ((option = ms_process_next_text("option", &cursor)) != NULL) {
        if (!strncmp(option, name, sizeof name - 1) && option[sizeof name - 1])
            return strcmp(option + sizeof name, "0") != 0;
    }
    return false;
}

/* Findings from the pool's figures at their peak, if they are large. Memory that was in use later on, within
 * the same reserve, was not lost: no more counts than what the pool held beyond all that was ever live. True
 * if anything was said. */
static bool write_pool_findings(struct ms_out *out, int device, const struct ms_snapshot_device *of)
{
    bool said = false;
    const struct ms_pool_figures *pool = &of->pool;
    uint64_t live = of->account.device.peak_live_bytes;
    uint64_t beyond = pool->peak_reserved_bytes > live ? pool->peak_reserved_bytes - live : 0;
    const struct {
        const char *rule, *text, *advice;
        uint64_t bytes;
    } rules[] = {
        {"stranded_memory", "were inactive between allocated blocks",
         "`memshim frag` says whose blocks hold it: free them together; or set MEMSHIM_BACKING=vmm, which "
         "uses what is free wherever it lies, for more calls to the driver (memshim diff has both)",
         is_preallocated() ? 0 : pool->peak_parts.stranded},
        {"limbo_memory", "were freed, and the device could still use them",
         "the host runs far ahead of the device: wait for it now and then, or set MEMSHIM_LIMBO lower",
         pool->peak_parts.pending},
    };
    for (unsigned i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        uint64_t lost = rules[i].bytes < beyond ? rules[i].bytes : beyond;
        char message[160];
        if (lost < POOL_LEAST || lost < pool->peak_reserved_bytes / POOL_SHARE)
            continue;
        snprintf(message, sizeof message, "when the pool held most, %s of its %s %s",
                 size_text(rules[i].bytes).text, size_text(pool->peak_reserved_bytes).text, rules[i].text);
        json_t *json = json_pack("{s:s, s:s, s:s, s:I, s:s, s:s}", "rule", rules[i].rule, "severity",
                                 "warning", "confidence", "exact", "bytes", (json_int_t)rules[i].bytes,
                                 "message", message, "advice", rules[i].advice);
        ms_json_set_device(json, device);
        ms_out_element(out, json);
        said = true;
    }
    return said;
}

struct share {
    const char *what, *advice;
    uint64_t bytes;
};

/* The parts of the pool's most that were not the program's, the largest first. */
static void find_shares(const struct ms_parts *parts, struct share shares[5])
{
    const struct share all[5] = {
        {"pending (freed, and the device could still use it)",
         "the host runs far ahead of the device: wait for it now and then, or set MEMSHIM_LIMBO lower",
         parts->pending},
        {"inactive in whole segments (kept for what comes)", "MEMSHIM_KEEP says how much may be kept",
         parts->cached},
        {"inactive between allocated blocks (fragmentation)",
         "`memshim frag` says whose blocks hold it; MEMSHIM_BACKING=vmm uses it wherever it lies, for more "
         "calls to the driver",
         parts->stranded},
        {"rounding (granted beyond what was asked for)", "ask for one large block and divide it",
         parts->rounding},
        {"shared (freed here, and open elsewhere)", "whoever opened it has to close it", parts->pinned},
    };
    for (unsigned i = 0; i < 5; i++) {
        unsigned at = i;
        for (; at > 0 && shares[at - 1].bytes < all[i].bytes; at--)
            shares[at] = shares[at - 1];
        shares[at] = all[i];
    }
}

/* The most that the pool held, against the most that was live: a finding if that is beyond the bound of
 * docs/internals/pool.md for programs that wait for nothing. */
static void write_reserved_finding(struct ms_out *out, int device, const struct ms_snapshot_device *of)
{
    uint64_t live = of->account.device.peak_live_bytes, reserved = of->pool.peak_reserved_bytes;
    struct share shares[5];
    char message[400];
    if (reserved <= live + live / RESERVED_SHARE + RESERVED_ROOM)
        return;
    find_shares(&of->pool.peak_parts, shares);
    int used = snprintf(
        message, sizeof message,
        "the pool held %s at most, and %s were allocated at most: when it held most, %s were %s",
        size_text(reserved).text, size_text(live).text, size_text(shares[0].bytes).text, shares[0].what);
    for (unsigned i = 1;
         i < 5 && shares[i].bytes >= (reserved - live) / RESERVED_SHARE && used < (int)sizeof message; i++)
        used += snprintf(message + used, sizeof message - (size_t)used, ", %s %s",
                         size_text(shares[i].bytes).text, shares[i].what);
    json_t *json =
        json_pack("{s:s, s:s, s:s, s:I, s:s, s:s}", "rule", "reserved_far_above_live", "severity", "warning",
                  "confidence", "exact", "bytes", (json_int_t)(reserved - live), "message", message, "advice",
                  is_preallocated() ? "MEMSHIM_PREALLOC takes it at the start: set it to what the "
                                      "program needs"
                                    : shares[0].advice);
    ms_json_set_device(json, device);
    ms_out_element(out, json);
}

/* Of what a site held when it held most, how much was the granularity's, in proportion to all that it ever
 * asked for. */
static void write_rounding_finding(struct ms_out *out, uint32_t id, const struct ms_site *site)
{
    uint64_t extra = site->total_rounding_bytes, total = site->total_bytes;
    uint64_t bytes = total ? (uint64_t)((double)site->max_bytes * ((double)extra / (double)total)) : 0;
    char message[240];
    if (bytes < ROUNDING_LEAST || extra < total / ROUNDING_SHARE)
        return;
    snprintf(message, sizeof message,
             "%s was asked for %s in %llu blocks and took %s: the rest is granularity",
             ms_events_api_name(site->api), size_text(total - extra).text,
             (unsigned long long)site->total_count, size_text(total).text);
    json_t *json = json_pack("{s:s, s:s, s:s, s:I, s:I, s:s, s:s}", "rule", "granularity_rounding",
                             "severity", "warning", "confidence", "inferred", "bytes", (json_int_t)bytes,
                             "site", (json_int_t)id, "message", message, "advice",
                             "ask for one large block and divide it: each one takes whole granules");
    ms_json_set_device(json, site->device);
    ms_out_element(out, json);
}

void ms_json_events(struct ms_out *out, const struct ms_report_input *input)
{
    const struct ms_events_copy *events = &input->snapshot->events;
    ms_json_timeline(out, input->snapshot, MS_LAYER_OUTER);

    ms_json_ooms(out, input, MS_LAYER_OUTER);

    ms_out_key(out, "findings");
    ms_out_begin_array(out);
    for (unsigned i = 0; i < events->death_count; i++)
        ms_out_element(out, death_finding(&events->deaths[i]));
    ms_json_invalid_frees(out, input);
    if (events->unseen_frees)
        ms_out_element(out, unseen_frees_finding(events->unseen_frees));
    for (int i = 0; i < MS_DEVICES_MAX; i++) {
        if (!input->snapshot->devices[i].has_pool)
            continue;
        if (!write_pool_findings(out, i, &input->snapshot->devices[i]))
            write_reserved_finding(out, i, &input->snapshot->devices[i]);
    }
    for (uint32_t i = 0; i < input->snapshot->outer_sites; i++)
        write_rounding_finding(out, i, &input->snapshot->sites[i].site);
    ms_out_end_array(out);
}
