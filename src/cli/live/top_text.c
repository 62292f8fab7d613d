/* top_text.c - columns of memshim top; see top.h.
 *
 * Floor 5. Every text of a process's goes through report/text/text.h. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/devices.h"
#include "cli/live/top.h"
#include "report/write/out.h"
#include "report/text/text.h"

enum column {
    PID,
    RANK,
    DEVICE,
    LIVE,
    PEAK,
    RESERVED,
    TENSORS,
    CACHED,
    LIMBO,
    FULL,
    BLOCKS,
    RATE,
    OOMS,
    PHASE,
    COLUMNS
};
/* The command takes what is left, and this much at least. */
enum { COMMAND_COLUMNS_MIN = 20, TEXT_BYTES = 64 };

/* The least `need` goes first where a terminal is narrow. */
static const struct {
    const char *title;
    int width; /* below 0: to the left */
    unsigned need;
} columns_of[COLUMNS] = {
    [PID] = {"PID", 7, 9},          [RANK] = {"RANK", 4, 6},      [DEVICE] = {"DEVICE", -7, 9},
    [LIVE] = {"ALLOCATED", 10, 9},  [PEAK] = {"PEAK", 10, 8},     [RESERVED] = {"RESERVED", 10, 7},
    [TENSORS] = {"TENSORS", 10, 8}, [CACHED] = {"CACHED", 10, 5}, [LIMBO] = {"PENDING", 10, 2},
    [FULL] = {"OF", 10, 1},         [BLOCKS] = {"BLOCKS", 8, 3},  [RATE] = {"ALLOCS/S", 9, 5},
    [OOMS] = {"OOMS", 4, 4},        [PHASE] = {"PHASE", -14, 2},
};

static bool is_of_tensors(enum column column)
{
    return column == TENSORS || column == CACHED;
}

/* True if a column is shown in a line of so many. */
static bool is_shown(enum column column, size_t columns, bool tensors)
{
    size_t used = COMMAND_COLUMNS_MIN;

    for (enum column i = 0; i < COLUMNS; i++) {
        bool before = columns_of[i].need == columns_of[column].need && i <= column;

        if ((before || columns_of[i].need > columns_of[column].need) && (tensors || !is_of_tensors(i)))
            used += (size_t)abs(columns_of[i].width) + 1;
    }
    return used <= columns && (tensors || !is_of_tensors(column));
}

static void cell_text(char text[TEXT_BYTES], enum column column, const struct ms_top_row *row)
{
    const uint64_t sizes[COLUMNS] = {
        [LIVE] = row->live_bytes,
        [PEAK] = row->peak_bytes,
        [RESERVED] = row->reserved_bytes,
        [LIMBO] = row->limbo_bytes,
        [FULL] = row->total_bytes,
        [BLOCKS] = row->live_count,
        [OOMS] = row->ooms,
        [PID] = (uint64_t)row->pid,
        [TENSORS] = row->tensors_bytes,
        [CACHED] = row->heaps_bytes > row->tensors_bytes ? row->heaps_bytes - row->tensors_bytes : 0};

    if (column == RANK)
        snprintf(text, TEXT_BYTES, "%s",
                 *row->rank && strspn(row->rank, "0123456789") == strlen(row->rank) ? row->rank : "-");
    else if (column == DEVICE)
        snprintf(text, TEXT_BYTES, "%s %d", ms_device_api(row->device), ms_device_index(row->device));
    else if (column == PHASE)
        snprintf(text, TEXT_BYTES, "%.*s", TEXT_BYTES - 1, *row->phase ? row->phase : "-");
    else if (column == RATE)
        snprintf(text, TEXT_BYTES, "%.1f", row->allocations_per_second);
    else if (column >= LIVE && column <= FULL)
        snprintf(text, TEXT_BYTES, "%s", ms_text_size((json_int_t)sizes[column]).text);
    else
        snprintf(text, TEXT_BYTES, "%" PRIu64, sizes[column]);
}

static size_t top_text_put_cell(FILE *out, enum column column, const char *text)
{
    size_t width = (size_t)abs(columns_of[column].width), used;

    if (columns_of[column].width > 0) {
        fprintf(out, "%*s ", (int)width, text);
        return strlen(text) > width ? strlen(text) + 1 : width + 1;
    }
    used = ms_text_cut(out, text, width);
    fprintf(out, "%*s", (int)(width - used + 1), "");
    return width + 1;
}

void ms_top_put_head(FILE *out, size_t columns, bool tensors)
{
    for (enum column i = 0; i < COLUMNS; i++)
        if (is_shown(i, columns, tensors))
            top_text_put_cell(out, i, columns_of[i].title);
    fputs("COMMAND", out);
}

void ms_top_put_row(FILE *out, const struct ms_top_row *row, size_t columns, bool tensors)
{
    char text[TEXT_BYTES];
    size_t used = 0;

    for (enum column i = 0; i < COLUMNS; i++) {
        if (!is_shown(i, columns, tensors))
            continue;
        cell_text(text, i, row);
        used += top_text_put_cell(out, i, text);
    }
    if (used < columns)
        ms_text_cut(out, row->command, columns - used);
}

void ms_top_put_sum(FILE *out, const struct ms_top *top)
{
    uint64_t live = 0, reserved = 0, tensors = 0;

    for (size_t i = 0; i < top->count; i++) {
        live += top->rows[i].live_bytes;
        reserved += top->rows[i].reserved_bytes;
        tensors += top->rows[i].tensors_bytes;
    }
    fprintf(out, "%zu process%s, %s allocated, %s reserved", top->processes, top->processes == 1 ? "" : "es",
            ms_text_size((json_int_t)live).text, ms_text_size((json_int_t)reserved).text);
    if (top->has_tensors)
        fprintf(out, ", %s by tensors", ms_text_size((json_int_t)tensors).text);
    if (top->left_out)
        fprintf(out, ", %zu not shown", top->left_out);
}

const char *const ms_top_order_names[MS_TOP_ORDERS] = {"live", "peak", "reserved", "allocs", "pid"};

static enum ms_top_order sorted_by;

static uint64_t weight(const struct ms_top_row *row)
{
    return sorted_by == MS_TOP_LIVE       ? row->live_bytes
           : sorted_by == MS_TOP_PEAK     ? row->peak_bytes
           : sorted_by == MS_TOP_RESERVED ? row->reserved_bytes
           : sorted_by == MS_TOP_RATE     ? (uint64_t)(row->allocations_per_second * 10)
                                          : 0;
}

static int top_text_compare(const void *a, const void *b)
{
    const struct ms_top_row *x = a, *y = b;
    uint64_t left = weight(x), right = weight(y);

    if (left != right)
        return left > right ? -1 : 1;
    if (x->pid != y->pid)
        return x->pid < y->pid ? -1 : 1;
    return (x->device > y->device) - (x->device < y->device);
}

void ms_top_sort(struct ms_top *top, enum ms_top_order order)
{
    sorted_by = order;
    if (top->count)
        qsort(top->rows, top->count, sizeof(*top->rows), top_text_compare);
}

static json_t *top_text_row_json(const struct ms_top_row *row)
{
    json_t *json = json_pack("{s:i, s:I, s:s, s:i}", "pid", (int)row->pid, "start_unix_ns",
                             (json_int_t)row->start_unix_ns, "api", ms_device_api(row->device), "device",
                             ms_device_index(row->device));
    const struct {
        const char *key;
        uint64_t value;
    } figures[] = {{"live_bytes", row->live_bytes},
                   {"live_count", row->live_count},
                   {"peak_bytes", row->peak_bytes},
                   {"reserved_bytes", row->reserved_bytes},
                   {"limbo_bytes", row->limbo_bytes},
                   {"total_bytes", row->total_bytes},
                   {"allocated_bytes", row->allocated_bytes},
                   {"allocated_count", row->allocated_count},
                   {"oom_count", row->ooms}};
    const struct {
        const char *key;
        uint64_t value;
    } inner[] = {{"inner_live_bytes", row->tensors_bytes},
                 {"inner_live_count", row->tensors_count},
                 {"inner_peak_bytes", row->tensors_peak_bytes},
                 {"inner_held_bytes", row->heaps_bytes}};
    const struct {
        const char *key, *text;
    } texts[] = {{"rank", row->rank}, {"host", row->host}, {"phase", row->phase}, {"command", row->command}};

    for (size_t i = 0; i < MS_ARRAY_LEN(figures); i++)
        json_object_set_new(json, figures[i].key, json_integer((json_int_t)figures[i].value));
    for (size_t i = 0; row->tensors_peak_bytes && i < MS_ARRAY_LEN(inner); i++)
        json_object_set_new(json, inner[i].key, json_integer((json_int_t)inner[i].value));
    json_object_set_new(json, "allocations_per_second", json_real(row->allocations_per_second));
    for (size_t i = 0; i < MS_ARRAY_LEN(texts); i++)
        if (*texts[i].text)
            json_object_set_new(json, texts[i].key, ms_out_string(texts[i].text));
    return json;
}

json_t *ms_top_json(const struct ms_top *top)
{
    json_t *rows = json_array();

    for (size_t i = 0; i < top->count; i++)
        json_array_append_new(rows, top_text_row_json(&top->rows[i]));
    return json_pack("{s:I, s:I, s:I, s:o, s:o}", "t_unix_ns", (json_int_t)top->taken_unix_ns, "processes",
                     (json_int_t)top->processes, "left_out", (json_int_t)top->left_out, "rows", rows,
                     "shares", json_incref(top->shares));
}
