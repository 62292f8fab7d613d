/* table.c - call sites as a table: CSV, and JSON with an object on each line.
 *
 * Floor 4. Reference: RFC 4180; JSON Lines. Both have the same columns in the same order, in JSON each with
 * one type in every row, so that a column can be told from its first row. In CSV a text that a spreadsheet
 * would take for a formula has an apostrophe in front (OWASP, "CSV injection"). */
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "export/export.h"
#include "export/json_text.h"
#include "report/analyse/fold.h"
#include "report/text/text.h"

/* The source of a column's value. */
enum from { TEXT, NUMBER, VALUE, LEAF, LEAF_FILE, LEAF_LINE, PLACE, STACK };

static const struct column {
    const char *name;
    enum from from;
    enum ms_value value;
} columns[] = {
    {"id", NUMBER, 0},
    {"hash", TEXT, 0},
    {"place", PLACE, 0},
    {"kind", TEXT, 0},
    {"api", TEXT, 0},
    {"owner", TEXT, 0},
    {"at_peak_bytes", VALUE, MS_VALUE_PEAK},
    {"live_bytes", VALUE, MS_VALUE_LIVE},
    {"live_count", NUMBER, 0},
    {"leaked_bytes", VALUE, MS_VALUE_LEAKED},
    {"total_bytes", VALUE, MS_VALUE_TOTAL},
    {"total_count", VALUE, MS_VALUE_COUNT},
    {"rounding_bytes", VALUE, MS_VALUE_ROUNDING},
    {"max_bytes", NUMBER, 0},
    {"freed_count", NUMBER, 0},
    {"lifetime_ns_sum", NUMBER, 0},
    {"first_ns", NUMBER, 0},
    {"last_ns", NUMBER, 0},
    {"function", LEAF, 0},
    {"file", LEAF_FILE, 0},
    {"line", LEAF_LINE, 0},
    {"stack", STACK, 0},
};

/* The program's own line (report/analyse/fold.h). */
static const json_t *own_line(const struct ms_model *model, const struct ms_model_site *site)
{
    bool inferred;

    return ms_fold_own(model->report, ms_report_int(site->json, "stack"), &inferred);
}

static const char *table_text_of(const struct ms_model *model, const struct ms_model_site *site,
                                 const struct column *column)
{
    switch (column->from) {
    case LEAF:
        return ms_report_text(own_line(model, site), "function");
    case LEAF_FILE:
        return ms_report_text(own_line(model, site), "file");
    case PLACE:
        return site->place;
    default:
        return ms_report_text(site->json, column->name);
    }
}

static bool table_is_number(const struct column *column)
{
    return column->from == NUMBER || column->from == VALUE || column->from == LEAF_LINE;
}

static json_int_t table_number_of(const struct ms_model *model, const struct ms_model_site *site,
                                  const struct column *column)
{
    if (column->from == VALUE)
        return site->values[column->value];
    if (column->from == LEAF_LINE)
        return ms_report_int(own_line(model, site), "line");
    return ms_report_int(site->json, column->name);
}

/* The inside of a quoted field. */
static void put_inside(FILE *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', out);
        fputc(*text, out);
    }
}

/* Every text has quotes; no control character is left in it, so a row is a line. */
static void put_field(FILE *out, const char *text)
{
    char *clean = NULL;
    size_t bytes;
    FILE *words = open_memstream(&clean, &bytes);

    if (words)
        ms_text_put(words, text);
    if (!words || fclose(words) != 0)
        clean = NULL;
    fputc('"', out);
    if (*text && strchr("=+-@\t\r\n", *text))
        fputc('\'', out);
    if (clean)
        put_inside(out, clean);
    fputc('"', out);
    free(clean);
}

/* Names are clean; what they begin with counts for the first alone. */
static void table_put_stack(FILE *out, const struct ms_model *model, const struct ms_model_site *site)
{
    fputc('"', out);
    for (size_t k = 1; k + 1 < site->depth; k++) {
        const char *name = model->frames[model->path[site->first + k]].name;

        if (k > 1)
            fputc(';', out);
        else if (strchr("=+-@", *name))
            fputc('\'', out);
        for (; *name; name++)
            fputs(*name == '"' ? "\"\"" : *name == ';' ? ":" : (const char[]){*name, '\0'}, out);
    }
    fputc('"', out);
}

int ms_export_csv(FILE *out, const struct ms_export *job)
{
    const struct ms_model *model = job->model;

    for (size_t c = 0; c < MS_ARRAY_LEN(columns); c++)
        fprintf(out, "%s%s", c ? "," : "", columns[c].name);
    fputs("\r\n", out);
    for (size_t i = 0; i < model->site_count; i++) {
        for (size_t c = 0; c < MS_ARRAY_LEN(columns); c++) {
            const struct column *column = &columns[c];

            fputs(c ? "," : "", out);
            if (table_is_number(column))
                fprintf(out, "%" JSON_INTEGER_FORMAT, table_number_of(model, &model->sites[i], column));
            else if (column->from == STACK)
                table_put_stack(out, model, &model->sites[i]);
            else
                put_field(out, table_text_of(model, &model->sites[i], column));
        }
        fputs("\r\n", out);
    }
    return 0;
}

static void put_stack_json(FILE *out, const struct ms_model *model, const struct ms_model_site *site)
{
    fputc('[', out);
    for (size_t k = 1; k + 1 < site->depth; k++) {
        fputs(k > 1 ? "," : "", out);
        ms_json_put(out, model->frames[model->path[site->first + k]].name);
    }
    fputc(']', out);
}

int ms_export_jsonl(FILE *out, const struct ms_export *job)
{
    const struct ms_model *model = job->model;

    for (size_t i = 0; i < model->site_count; i++) {
        for (size_t c = 0; c < MS_ARRAY_LEN(columns); c++) {
            const struct column *column = &columns[c];

            fprintf(out, "%s\"%s\":", c ? "," : "{", column->name);
            if (table_is_number(column))
                fprintf(out, "%" JSON_INTEGER_FORMAT, table_number_of(model, &model->sites[i], column));
            else if (column->from == STACK)
                put_stack_json(out, model, &model->sites[i]);
            else
                ms_json_put(out, table_text_of(model, &model->sites[i], column));
        }
        fputs("}\n", out);
    }
    return 0;
}
