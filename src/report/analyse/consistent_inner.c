/* consistent_inner.c - whether the figures of the inner layer agree with each other, and with the blocks in
 * which its pieces lie; see consistent.h.
 *
 * Floor 4, command line only. What the layers' lists have in common is held by the same functions of
 * consistent.c. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/analyse/inquiry.h"

/* Of each row of inner_devices[], the sums that other lists have. */
struct inner_sums {
    json_int_t live_bytes, live_count, at_peak_bytes, total_bytes, total_count; /* of its sites */
    json_int_t pieces, heaps_bytes, heaps_count;
    bool is_told;  /* some pieces are of a program's own word, which may have them overlap */
    bool left_out; /* pieces, by nobody knows how many bytes: earlier reports do not say it */
};

static void add(json_int_t *sum, const json_t *row, const char *key)
{
    *sum = ms_report_sum(*sum, ms_report_int(row, key));
}

static void add_sites(const struct ms_report *report, struct inner_sums *sums)
{
    json_t *site;
    size_t i, device;

    json_array_foreach (report->sites, i, site) {
        device = ms_report_device_of(report, site);
        if (device == SIZE_MAX)
            continue;
        sums[device].is_told = sums[device].is_told || strcmp(ms_report_text(site, "api"), "PyTorch") != 0;
        add(&sums[device].live_bytes, site, "live_bytes");
        add(&sums[device].live_count, site, "live_count");
        add(&sums[device].at_peak_bytes, site, "at_peak_bytes");
        add(&sums[device].total_bytes, site, "total_bytes");
        add(&sums[device].total_count, site, "total_count");
    }
}

static void add_pieces(const struct ms_report *report, struct inner_sums *sums)
{
    json_t *segment, *piece;
    size_t i, k, device;

    json_array_foreach (ms_report_array(report->root, "segments"), i, segment) {
        device = ms_report_device_of(report, segment);
        if (device == SIZE_MAX)
            continue;
        add(&sums[device].pieces, segment, "bytes_left_out");
        sums[device].left_out = sums[device].left_out || (ms_report_int(segment, "blocks_left_out") &&
                                                          !json_object_get(segment, "bytes_left_out"));
        json_array_foreach (ms_report_array(segment, "blocks"), k, piece)
            if (!strcmp(ms_report_text(piece, "state"), "live"))
                add(&sums[device].pieces, piece, "bytes");
    }
}

static void add_heaps(const struct ms_report *report, struct inner_sums *sums)
{
    json_t *heap;
    size_t i, device;

    json_array_foreach (ms_report_array(report->root, "heaps"), i, heap) {
        device = ms_report_device_of(report, heap);
        if (device == SIZE_MAX)
            continue;
        add(&sums[device].heaps_bytes, heap, "live_bytes");
        add(&sums[device].heaps_count, heap, "live_count");
    }
}

/* A device's pieces are as many and as much by their sites and by their segments; heaps have some of them. */
static void check_inner_sums(struct ms_inquiry *inquiry, const json_t *device, size_t i,
                             const struct inner_sums *sums)
{
    static const char what[] = "the sum of its sites";

    ms_figure_equal(inquiry, "devices", i, device, "live_bytes", what, sums->live_bytes);
    ms_figure_equal(inquiry, "devices", i, device, "live_count", what, sums->live_count);
    ms_figure_equal(inquiry, "devices", i, device, "peak_live_bytes", what, sums->at_peak_bytes);
    ms_figure_equal(inquiry, "devices", i, device, "allocated_bytes", what, sums->total_bytes);
    ms_figure_equal(inquiry, "devices", i, device, "allocated_count", what, sums->total_count);
    if (!sums->left_out)
        ms_figure_equal(inquiry, "devices", i, device, "live_bytes", "the sum of the pieces in its segments",
                        ms_report_sum(sums->pieces, ms_report_int(device, "bytes_left_out")));
    ms_expect_at_most(inquiry, "$.heaps", sums->heaps_bytes, "live_bytes of their device",
                      ms_report_int(device, "live_bytes"));
    ms_expect_at_most(inquiry, "$.heaps", sums->heaps_count, "live_count of their device",
                      ms_report_int(device, "live_count"));
}

/* Pieces lie in blocks, and a framework's never over each other: there is never more of them. */
static void check_outer(struct ms_inquiry *inquiry, const json_t *device, size_t i,
                        const struct ms_report *outer)
{
    static const char *const keys[] = {"live_bytes", "peak_live_bytes"};
    size_t row = ms_report_device_first(outer, device);
    const json_t *blocks =
        row == SIZE_MAX ? NULL : json_array_get(ms_report_array(outer->root, "devices"), row);

    for (size_t k = 0; k < 2; k++)
        ms_figure_at_most(inquiry, "devices", i, device, keys[k], "the device's blocks",
                          ms_report_int(blocks, keys[k]));
}

static void check_inner_device(struct ms_inquiry *inquiry, const json_t *device, size_t i)
{
    json_int_t held = ms_report_int(device, "held_bytes"), peak = ms_report_int(device, "peak_held_bytes");

    ms_figure_at_most(inquiry, "devices", i, device, "live_bytes", "peak_live_bytes",
                      ms_report_int(device, "peak_live_bytes"));
    ms_figure_at_most(inquiry, "devices", i, device, "peak_live_bytes", "peak_held_bytes", peak);
    ms_figure_at_most(inquiry, "devices", i, device, "held_bytes", "peak_held_bytes", peak);
    ms_figure_equal(inquiry, "devices", i, device, "cached_bytes", "held_bytes without live_bytes",
                    held - ms_report_int(device, "live_bytes"));
}

static void check_heap(struct ms_inquiry *inquiry, const json_t *heap, size_t i)
{
    json_int_t reserved = ms_report_int(heap, "reserved_bytes"), live = ms_report_int(heap, "live_bytes");
    char path[64];

    if (!json_object_get(heap, "reserved_bytes"))
        return;
    snprintf(path, sizeof(path), "$.heaps[%zu].cached_bytes", i);
    ms_expect_equal(inquiry, path, ms_report_int(heap, "cached_bytes"), "reserved_bytes without live_bytes",
                    reserved > live ? reserved - live : 0);
    snprintf(path, sizeof(path), "$.heaps[%zu].reserved_bytes", i);
    ms_expect_at_most(inquiry, path, reserved, "peak_reserved_bytes",
                      ms_report_int(heap, "peak_reserved_bytes"));
}

void ms_consistent_inner(struct ms_inquiry *inquiry, const struct ms_report *outer)
{
    const struct ms_report *report = inquiry->report;
    json_t *devices = ms_report_array(report->root, "devices"), *row;
    struct inner_sums *sums =
        ms_inquiry_adds_up(outer) ? calloc(json_array_size(devices) + 1, sizeof(*sums)) : NULL;
    size_t i, first;

    if (sums) {
        add_sites(report, sums);
        add_pieces(report, sums);
        add_heaps(report, sums);
    }
    json_array_foreach (devices, i, row) {
        first = ms_report_device_first(report, row);
        check_inner_device(inquiry, row, i);
        if (!sums || first == SIZE_MAX)
            continue;
        check_inner_sums(inquiry, row, i, &sums[first]);
        if (!sums[first].is_told)
            check_outer(inquiry, row, i, outer);
    }
    json_array_foreach (ms_report_array(report->root, "heaps"), i, row)
        check_heap(inquiry, row, i);
    free(sums);
}
