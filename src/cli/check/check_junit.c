/* check_junit.c - results of checks as JUnit's XML, a suite for each report; see check.h.
 *
 * Floor 5. */
#include <stdlib.h>
#include <string.h>

#include "cli/check/check.h"
#include "report/text/utf8.h"

/* The text as it stands between quotes or tags. A character that XML cannot say becomes a question mark. */
static void put_xml(FILE *out, const char *text)
{
    while (*text) {
        size_t length = ms_utf8_bytes(text);
        unsigned char c = (unsigned char)*text;
        bool odd =
            !length || ms_utf8_is_control(ms_utf8_character(text, length)) ||
            (length == 3 && c == 0xef && (unsigned char)text[1] == 0xbf && (unsigned char)text[2] >= 0xbe);

        if (odd)
            fputc('?', out);
        else if (c == '&')
            fputs("&amp;", out);
        else if (c == '<')
            fputs("&lt;", out);
        else if (c == '>')
            fputs("&gt;", out);
        else if (c == '"')
            fputs("&quot;", out);
        else
            fwrite(text, 1, length, out);
        text += length ? length : 1;
    }
}

static void put_attribute(FILE *out, const char *name, const char *text)
{
    fprintf(out, " %s=\"", name);
    put_xml(out, text);
    fputc('"', out);
}

/* The file and line that holds most of it. */
static void check_junit_put_place(FILE *out, const struct ms_check_result *result)
{
    const json_t *own = ms_check_place(result);

    if (!*ms_report_text(own, "file"))
        return;
    put_attribute(out, "file", ms_report_text(own, "file"));
    if (ms_report_int(own, "line") > 0)
        fprintf(out, " line=\"%" JSON_INTEGER_FORMAT "\"", ms_report_int(own, "line"));
}

static void put_case(FILE *out, const struct ms_check_result *result)
{
    char *title = ms_check_title(result), *name = NULL, *message = ms_check_message(result),
         *line = ms_check_line(result);

    if (!title || asprintf(&name, "%s (%s)", title, result->rule) < 0)
        name = NULL;
    fprintf(out, "    <testcase classname=\"memshim.%s\"", ms_check_figures[result->measure.figure].name);
    put_attribute(out, "name", name ? name : "?");
    if (!result->held)
        check_junit_put_place(out, result);
    fputs(" time=\"0\"", out);
    if (result->held) {
        fputs("/>\n", out);
    } else {
        fprintf(out, ">\n      <failure type=\"%s\"", ms_check_figures[result->measure.figure].name);
        put_attribute(out, "message", message ? message : "?");
        fputc('>', out);
        put_xml(out, line ? line : "");
        fputs("</failure>\n    </testcase>\n", out);
    }
    free(title);
    free(name);
    free(message);
    free(line);
}

static size_t put_suite(FILE *out, const struct ms_check_results *results, size_t from)
{
    size_t to = from, failed = 0;

    while (to < results->count && !strcmp(results->rows[to].path, results->rows[from].path))
        failed += !results->rows[to++].held;
    fputs("  <testsuite", out);
    put_attribute(out, "name", results->rows[from].path);
    fprintf(out, " tests=\"%zu\" failures=\"%zu\" errors=\"0\" skipped=\"0\" time=\"0\">\n", to - from,
            failed);
    for (size_t i = from; i < to; i++)
        put_case(out, &results->rows[i]);
    fputs("  </testsuite>\n", out);
    return to;
}

void ms_check_put_junit(FILE *out, const struct ms_check_results *results)
{
    fprintf(out,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"memshim check\" tests=\"%zu\" "
            "failures=\"%zu\" errors=\"0\" time=\"0\">\n",
            results->count, results->failed);
    for (size_t i = 0; i < results->count;)
        i = put_suite(out, results, i);
    fputs("</testsuites>\n", out);
}
