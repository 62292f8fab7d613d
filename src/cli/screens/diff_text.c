/* diff_text.c - two reports beside each other, for people and as JSON; see diff.h.
 *
 * Floor 5. Every figure says whether it is of before or of after. */
#include <stdlib.h>
#include <string.h>

#include "cli/screens/diff.h"
#include "cli/screens/calls.h"
#include "cli/load.h"
#include "report/text/text.h"
#include "report/analyse/view.h"
#include "report/read/layer.h"

static const char *const sides[MS_DIFF_SIDES] = {"before", "after"};

/* A figure, with its sign if it is a change. */
static struct ms_text_number diff_text_number_of(json_int_t figure, enum ms_diff_value value, bool change)
{
    struct ms_text_number size = ms_text_size(figure), number;

    if (value == MS_DIFF_CALLS)
        snprintf(size.text, sizeof(size.text), "%" JSON_INTEGER_FORMAT, figure);
    snprintf(number.text, sizeof(number.text), "%s%.30s", change && figure > 0 ? "+" : "", size.text);
    return number;
}

static void diff_text_put_figures(FILE *out, const struct ms_diff_row *row, enum ms_diff_value value)
{
    for (unsigned side = 0; side < MS_DIFF_SIDES; side++)
        fprintf(out, "%11s",
                row->name[side] ? diff_text_number_of(row->values[side][value], value, false).text : "-");
    fprintf(out, "%12s", diff_text_number_of(ms_diff_change(row, value), value, true).text);
}

static void put_head(FILE *out, const struct ms_diff *diff)
{
    for (unsigned side = 0; side < MS_DIFF_SIDES; side++) {
        const json_t *run = json_object_get(diff->side[side].report->root, "run");

        fprintf(out, "%-7s ", sides[side]);
        ms_text_put(out, diff->side[side].path);
        fputs(": ", out);
        ms_text_put_program(out, diff->side[side].report, ms_report_text(run, "exe"));
        if (json_object_get(run, "rank"))
            fprintf(out, ", rank %" JSON_INTEGER_FORMAT, ms_report_int(run, "rank"));
        fprintf(out, ", process %" JSON_INTEGER_FORMAT "\n", ms_report_int(run, "pid"));
    }
    fprintf(out, "\n%-18s%11s%11s%12s\n", "", "before", "after", "change");
    for (size_t i = 0; i < diff->device_count; i++)
        for (unsigned value = 0; value < MS_DIFF_VALUES; value++) {
            const struct ms_diff_row *row = &diff->devices[i];

            ms_text_column(out, value ? "" : row->name[1] ? row->name[1] : row->name[0], 9);
            fprintf(out, "%-9s", ms_text_word(ms_diff_values[value]));
            diff_text_put_figures(out, row, (enum ms_diff_value)value);
            fputc('\n', out);
        }
    ms_calls_compare(out, diff->side[MS_DIFF_BEFORE].report, diff->side[MS_DIFF_AFTER].report);
}

static void put_row(FILE *out, const struct ms_diff *diff, const struct ms_diff_row *row)
{
    diff_text_put_figures(out, row, diff->value);
    fprintf(out, "  %-7s ", ms_diff_states[row->state]);
    ms_text_put(out, row->name[1] ? row->name[1] : row->name[0]);
    if (row->name[0] && row->name[1] && strcmp(row->name[0], row->name[1]) != 0) {
        fputs(", before: ", out);
        ms_text_put(out, row->name[0]);
    }
    fputc('\n', out);
}

void ms_diff_put_text(FILE *out, const struct ms_diff *diff, size_t top)
{
    const struct ms_report *before = diff->side[MS_DIFF_BEFORE].report,
                           *after = diff->side[MS_DIFF_AFTER].report;
    size_t changed = 0, shown = 0;

    if (ms_report_is_inner(before) != ms_report_is_inner(after))
        fprintf(out,
                "%s has no tensors, so that its blocks stand beside tensors; --layer blocks shows blocks of "
                "both\n",
                diff->side[ms_report_is_inner(before) ? MS_DIFF_AFTER : MS_DIFF_BEFORE].path);
    else if (ms_report_is_inner(after))
        ms_view_print(out, after, "");
    put_head(out, diff);
    fprintf(out, "\n%s by %s:", ms_text_word(ms_diff_values[diff->value]), ms_diff_bys[diff->by]);
    for (unsigned state = 0; state < MS_DIFF_STATES; state++)
        fprintf(out, "%s %zu %s", state ? "," : "", diff->states[state], ms_diff_states[state]);
    fprintf(out, "\n%11s%11s%12s\n", "before", "after", "change");
    for (size_t i = 0; i < diff->count; i++) {
        if (!ms_diff_change(&diff->rows[i], diff->value))
            continue;
        if (changed++ < top) {
            put_row(out, diff, &diff->rows[i]);
            shown++;
        }
    }
    if (changed > shown)
        fprintf(out, "%zu more changed\n", changed - shown);
    if (!changed)
        fputs("nothing changed\n", out);
}

static void set_side(json_t *row, const struct ms_diff *diff, const struct ms_diff_row *from, unsigned side)
{
    json_t *object;

    if (!from->name[side])
        return;
    object = json_pack("{s:s}", "name", from->name[side]);
    for (unsigned value = 0; value < MS_DIFF_VALUES; value++)
        json_object_set_new(object, ms_diff_values[value], json_integer(from->values[side][value]));
    if (from->site[side]) {
        json_object_set(object, "site", json_object_get(from->site[side], "id"));
        json_object_set(object, "hash", json_object_get(from->site[side], "hash"));
        ms_cli_set_stack(object, diff->side[side].report, ms_report_int(from->site[side], "stack"));
    }
    json_object_set_new(row, sides[side], object);
}

static json_t *diff_text_row_json(const struct ms_diff *diff, const struct ms_diff_row *from)
{
    json_t *row = json_pack("{s:s}", "state", ms_diff_states[from->state]), *change = json_object();

    for (unsigned side = 0; side < MS_DIFF_SIDES; side++)
        set_side(row, diff, from, side);
    for (unsigned value = 0; value < MS_DIFF_VALUES; value++)
        json_object_set_new(change, ms_diff_values[value],
                            json_integer(ms_diff_change(from, (enum ms_diff_value)value)));
    json_object_set_new(row, "change", change);
    return row;
}

json_t *ms_diff_json(const struct ms_diff *diff, size_t top)
{
    json_t *object = json_object(), *states = json_object(), *rows = json_array(), *devices = json_array();

    for (unsigned side = 0; side < MS_DIFF_SIDES; side++) {
        json_t *head = json_pack("{s:s}", "file", diff->side[side].path);

        json_object_set(head, "run", json_object_get(diff->side[side].report->root, "run"));
        json_object_set_new(head, "calls", ms_calls_json(diff->side[side].report));
        json_object_set_new(object, sides[side], head);
    }
    json_object_set_new(object, "by", json_string(ms_diff_bys[diff->by]));
    json_object_set_new(object, "value", json_string(ms_diff_values[diff->value]));
    for (unsigned state = 0; state < MS_DIFF_STATES; state++)
        json_object_set_new(states, ms_diff_states[state], json_integer((json_int_t)diff->states[state]));
    json_object_set_new(object, "states", states);
    for (size_t i = 0; i < diff->device_count; i++)
        json_array_append_new(devices, diff_text_row_json(diff, &diff->devices[i]));
    json_object_set_new(object, "devices", devices);
    for (size_t i = 0; i < diff->count && i < top; i++)
        json_array_append_new(rows, diff_text_row_json(diff, &diff->rows[i]));
    json_object_set_new(object, "rows", rows);
    return object;
}
