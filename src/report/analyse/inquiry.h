/* inquiry.h - how an equation of consistent.c is told that it does not hold: of which figure, in which layer.
 *
 * Floor 4, command line only. */
#ifndef MS_REPORT_ANALYSE_INQUIRY_H
#define MS_REPORT_ANALYSE_INQUIRY_H

#include "base/compiler.h"
#include "report/analyse/consistent.h"

struct ms_inquiry {
    const struct ms_report *report; /* of the inner layer: the view whose lists are that layer's */
    ms_complaint_func_t complain;
    void *arg;
    size_t complaints;
    bool inner; /* paths are those of the inner layer's lists */
};

void ms_inquiry_complain(struct ms_inquiry *inquiry, const char *path, const char *format, ...)
    MS_PRINTF(3, 4);
/** "$.name[index].key", or "$.inner_name[index].key"; good until the next call. */
const char *ms_inquiry_at(const struct ms_inquiry *inquiry, const char *name, size_t index, const char *key);

void ms_expect_equal(struct ms_inquiry *inquiry, const char *path, json_int_t value, const char *what,
                     json_int_t other);
void ms_expect_at_most(struct ms_inquiry *inquiry, const char *path, json_int_t value, const char *what,
                       json_int_t bound);
/** Likewise of a member of a row: where it is no integer, that is told. */
void ms_figure_equal(struct ms_inquiry *inquiry, const char *list, size_t i, const json_t *row,
                     const char *key, const char *what, json_int_t other);
void ms_figure_at_most(struct ms_inquiry *inquiry, const char *list, size_t i, const json_t *row,
                       const char *key, const char *what, json_int_t bound);

/** True if sums must hold: events that found no room are in no sum, and a record that was read while it
 * changed need not add up. */
bool ms_inquiry_adds_up(const struct ms_report *report);

/** The figures of the inner layer's devices and heaps, which `outer` has its blocks for. consistent_inner.c
 */
void ms_consistent_inner(struct ms_inquiry *inquiry, const struct ms_report *outer);

#endif
