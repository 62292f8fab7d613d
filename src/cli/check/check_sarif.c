/* check_sarif.c - failed checks as SARIF 2.1.0, for what shows findings beside the code; see check.h.
 *
 * Floor 5. A result stands at the program's own line that holds most, or at the innermost line of its stack
 * below the root; at the report itself where there is none. Its fingerprint is the rule, what it is of and
 * the names of the stack, so that it stays the same when lines move. */
#include "config.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "cli/check/check.h"
#include "export/json_text.h"
#include "report/text/text.h"

struct place {
    const char *file; /* relative to the root, or absolute */
    bool relative;
    json_int_t line;
};

/* `path` without `root`, if it lies below. */
static const char *below(const char *path, const char *root)
{
    size_t length = strlen(root);

    while (length && root[length - 1] == '/')
        length--;
    if (length && !strncmp(path, root, length) && path[length] == '/')
        return path + length + 1;
    return NULL;
}

static struct place check_sarif_place_of(const json_t *frame, const char *root)
{
    const char *file = ms_report_text(frame, "file"), *relative = below(file, root);

    if (!relative && *file && *file != '/')
        relative = file;
    return (struct place){relative ? relative : file, relative != NULL, ms_report_int(frame, "line")};
}

/* An address: everything but what needs no spelling is spelled. */
static void put_uri(FILE *out, const struct place *place)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/";

    fprintf(out, "\"uri\":\"%s", !place->relative && *place->file == '/' ? "file://" : "");
    for (const char *c = place->file; *c; c++) {
        if (strchr(plain, *c))
            fputc(*c, out);
        else
            fprintf(out, "%%%02X", (unsigned char)*c);
    }
    fputc('"', out);
}

static void put_location(FILE *out, const struct place *place, const char *message)
{
    fputs("{\"physicalLocation\":{\"artifactLocation\":{", out);
    put_uri(out, place);
    fputs(place->relative ? ",\"uriBaseId\":\"%SRCROOT%\"}" : "}", out);
    fprintf(out, ",\"region\":{\"startLine\":%" JSON_INTEGER_FORMAT "}}", place->line > 0 ? place->line : 1);
    if (message) {
        ms_json_put_member(out, ",\"message\":{", "text", message);
        fputc('}', out);
    }
    fputc('}', out);
}

/* The place where a result stands. */
static struct place main_place(const struct ms_check_result *result, const char *root)
{
    const json_t *site = ms_check_site(result);
    json_t *frames[MS_REPORT_DEPTH_MAX];
    json_int_t stack = ms_report_int(site, "stack");
    size_t count = site ? ms_report_stack(result->report, stack, frames, MS_REPORT_DEPTH_MAX) : 0;
    struct place place = check_sarif_place_of(ms_check_place(result), root);

    for (size_t i = 0; i < count && !place.relative; i++)
        if (check_sarif_place_of(frames[i], root).relative)
            place = check_sarif_place_of(frames[i], root);
    if (!*place.file)
        place = (struct place){result->path, *result->path != '/', 1};
    return place;
}

static uint64_t check_sarif_hash(uint64_t sum, const char *text)
{
    for (; *text; text++)
        sum = (sum ^ (unsigned char)*text) * 0x100000001b3u;
    return (sum ^ 0x1f) * 0x100000001b3u;
}

static uint64_t fingerprint(const struct ms_check_result *result)
{
    const json_t *site = ms_check_site(result);
    json_t *frames[MS_REPORT_DEPTH_MAX];
    size_t count =
        site ? ms_report_stack(result->report, ms_report_int(site, "stack"), frames, MS_REPORT_DEPTH_MAX) : 0;
    uint64_t sum = 0xcbf29ce484222325u;

    sum = check_sarif_hash(sum, ms_check_figures[result->measure.figure].name);
    sum = check_sarif_hash(sum, ms_check_kinds[result->measure.of]);
    if (result->measure.tensors)
        sum = check_sarif_hash(sum, "tensors");
    sum = check_sarif_hash(sum, result->measure.name);
    for (size_t i = 0; i < count; i++)
        sum = check_sarif_hash(sum, ms_report_text(frames[i], "function"));
    if (!count && result->measure.job_site >= 0)
        sum = check_sarif_hash(sum, ms_report_text(ms_check_place(result), "file"));
    return sum;
}

/* The stack from the outside to the inside, as far as it has lines. */
static void put_flow(FILE *out, const struct ms_check_result *result, const char *root)
{
    const json_t *site = ms_check_site(result);
    json_t *frames[MS_REPORT_DEPTH_MAX];
    size_t count =
        site ? ms_report_stack(result->report, ms_report_int(site, "stack"), frames, MS_REPORT_DEPTH_MAX) : 0;
    const char *before = ",\"codeFlows\":[{\"threadFlows\":[{\"locations\":[";

    for (size_t i = count; i > 0; i--) {
        struct place place = check_sarif_place_of(frames[i - 1], root);

        if (!*place.file)
            continue;
        fprintf(out, "%s{\"location\":", before);
        put_location(out, &place,
                     *ms_report_text(frames[i - 1], "function") ? ms_report_text(frames[i - 1], "function")
                                                                : "?");
        fputc('}', out);
        before = ",";
    }
    if (*before == ',' && !before[1])
        fputs("]}]}]", out);
}

static void put_result(FILE *out, const struct ms_check_result *result, const char *root)
{
    char *message = ms_check_message(result), *line = ms_check_line(result), *text = NULL;
    struct place place = main_place(result, root);

    fprintf(out, "{\"ruleId\":\"memshim/%s\",\"ruleIndex\":%d,\"level\":\"error\"",
            ms_check_figures[result->measure.figure].name, (int)result->measure.figure);
    if (!message || (line && asprintf(&text, "%s; %s by %s", message,
                                      ms_text_size(result->measure.site_bytes).text, line) < 0))
        text = NULL;
    ms_json_put_member(out, ",\"message\":{", "text", text ? text : message ? message : "?");
    fputs("},\"locations\":[", out);
    put_location(out, &place, NULL);
    fprintf(out, "],\"partialFingerprints\":{\"memshimCheck/v1\":\"%016" PRIx64 "\"}", fingerprint(result));
    put_flow(out, result, root);
    fputc('}', out);
    free(message);
    free(line);
    free(text);
}

static void put_rules(FILE *out)
{
    for (unsigned figure = 0; figure < MS_CHECK_FIGURES; figure++) {
        const struct ms_check_figure_info *info = &ms_check_figures[figure];

        fprintf(out, "%s{\"id\":\"memshim/%s\",\"name\":\"GpuMemory%c%s\"", figure ? ",\n" : "", info->name,
                info->name[0] - 'a' + 'A', info->name + 1);
        fprintf(out,
                ",\"shortDescription\":{\"text\":\"%s\"},\"fullDescription\":{\"text\":\"%s\"},"
                "\"help\":{\"text\":\"%s memshim summary shows who holds it.\"},"
                "\"defaultConfiguration\":{\"level\":\"error\"},"
                "\"properties\":{\"precision\":\"very-high\",\"problem.severity\":\"error\"}}",
                info->text, info->text, info->text);
    }
}

void ms_check_put_sarif(FILE *out, const struct ms_check_results *results, const char *root)
{
    const char *before = "";

    fputs("{\"$schema\":\"https://json.schemastore.org/sarif-2.1.0.json\",\"version\":\"2.1.0\",\n"
          "\"runs\":[{\"tool\":{\"driver\":{\"name\":\"memshim\",\"version\":\"" PACKAGE_VERSION "\","
          "\"rules\":[\n",
          out);
    put_rules(out);
    fputs("]}},\n\"columnKind\":\"utf16CodeUnits\",\"results\":[\n", out);
    for (size_t i = 0; i < results->count; i++) {
        if (results->rows[i].held)
            continue;
        fputs(before, out);
        put_result(out, &results->rows[i], root);
        before = ",\n";
    }
    fputs("\n]}]}\n", out);
}
