/* analyse.c - what the command works out of a report once that has its names; see analyse.h.
 *
 * Floor 4, command line only. */
#include "report/analyse/analyse.h"

#include <stdint.h>
#include <string.h>

#include "base/compiler.h"
#include "report/analyse/callers.h"
#include "report/analyse/contexts_others.h"
#include "report/findings/findings.h"
#include "report/analyse/leak_class.h"
#include "report/analyse/owners.h"
#include "report/analyse/view.h"
#include "report/read/layer.h"

/* Findings that the process itself wrote are in the outer layer, and so have been told. */
static bool is_of_tensors(const json_t *row)
{
    static const char *const rules[] = {"growth", "graph_without_backward", "optimizer_state",
                                        "pinned_segment"};

    for (size_t i = 0; i < MS_ARRAY_LEN(rules); i++)
        if (!strcmp(ms_report_text(row, "rule"), rules[i]))
            return true;
    return false;
}

/* Findings of tensors stand among the others; a finding's site is a place in inner_sites[] then. */
static void add_tensors(struct ms_report *report)
{
    struct ms_report inner;
    json_t *row;
    size_t i;

    if (!ms_report_open_inner(report, &inner))
        return;
    ms_report_annotate(&inner, NULL);
    json_array_foreach (ms_report_array(inner.root, "findings"), i, row) {
        json_t *copy = is_of_tensors(row) ? json_copy(row) : NULL;

        if (!copy)
            continue;
        if (json_object_get(copy, "site"))
            json_object_set(copy, "inner_site", json_object_get(copy, "site"));
        json_object_del(copy, "site");
        ms_findings_put(report, copy);
    }
    ms_report_close(&inner);
}

void ms_report_annotate(struct ms_report *report, const json_t *least)
{
    json_t *known = least ? json_copy((json_t *)(uintptr_t)least) : json_object();

    ms_contexts_least(known, report);
    ms_contexts_annotate(report, known);
    json_decref(known);
    ms_view_annotate(report);
    ms_owners_annotate(report);
    ms_callers_annotate(report);
    ms_leak_classes_annotate(report);
    ms_findings_annotate(report);
    if (ms_report_has_inner(report) && !ms_report_is_inner(report))
        add_tensors(report);
}
