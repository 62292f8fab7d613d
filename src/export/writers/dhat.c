/* dhat.c - the JSON of valgrind's DHAT, version 2: a program point for each call site.
 *
 * Floor 4. Reference: dh_main.c and dh_view.js of valgrind. Bytes are those of the report; how many blocks a
 * site held at its most and at the peak is not recorded, so that is told from the mean size of its blocks. */
#include <inttypes.h>
#include <stdlib.h>

#include "export/export.h"
#include "export/json_text.h"

/* DHAT calls a block short-lived that lives no longer; in nanoseconds. As in dhat-rs. */
enum { SHORT_LIVED_NS = 10000 };

static json_int_t positive(json_int_t value)
{
    return value > 0 ? value : 0;
}

/* At least one where there are bytes; no more than there ever were. */
static json_int_t blocks_of(const struct ms_model_site *site, json_int_t bytes)
{
    json_int_t total = site->values[MS_VALUE_TOTAL], count = site->values[MS_VALUE_COUNT];
    double blocks = total > 0 ? (double)bytes / (double)total * (double)count + 0.5 : 0;

    if (bytes <= 0)
        return 0;
    return blocks < 1 ? 1 : blocks > (double)count ? count : (json_int_t)blocks;
}

static void dhat_put_site(FILE *out, const struct ms_model *model, const struct ms_model_site *site)
{
    json_int_t most = positive(ms_report_int(site->json, "max_bytes")), peak = site->values[MS_VALUE_PEAK];

    fprintf(out,
            "{\"tb\":%" JSON_INTEGER_FORMAT ",\"tbk\":%" JSON_INTEGER_FORMAT ",\"tl\":%" JSON_INTEGER_FORMAT
            ",\"mb\":%" JSON_INTEGER_FORMAT ",\"mbk\":%" JSON_INTEGER_FORMAT ",\"gb\":%" JSON_INTEGER_FORMAT
            ",\"gbk\":%" JSON_INTEGER_FORMAT ",\"eb\":%" JSON_INTEGER_FORMAT ",\"ebk\":%" JSON_INTEGER_FORMAT
            ",\"fs\":[",
            site->values[MS_VALUE_TOTAL], site->values[MS_VALUE_COUNT],
            positive(ms_report_int(site->json, "lifetime_ns_sum")), most, blocks_of(site, most), peak,
            blocks_of(site, peak), site->values[MS_VALUE_LIVE],
            positive(ms_report_int(site->json, "live_count")));
    for (size_t k = site->depth; k > 0; k--)
        fprintf(out, "%s%" PRIu32, k < site->depth ? "," : "", model->path[site->first + k - 1] + 1);
    fputs("]}", out);
}

/* "0xADDRESS: function (file:line)", as valgrind spells it; a name alone where no more is known. */
static void dhat_put_frame(FILE *out, const struct ms_model_frame *frame)
{
    char *text = NULL;
    size_t bytes;
    FILE *words;

    words = *frame->file || frame->module ? open_memstream(&text, &bytes) : NULL;
    if (!words) {
        ms_json_put(out, frame->name);
        return;
    }
    fprintf(words, "0x%" PRIX64 ": %s (", frame->rel_pc, frame->name);
    if (!*frame->file)
        fprintf(words, "in %s", ms_report_text(frame->module, "path"));
    else if (frame->line)
        fprintf(words, "%s:%" JSON_INTEGER_FORMAT, frame->file, frame->line);
    else
        fputs(frame->file, words);
    fputc(')', words);
    if (fclose(words) == 0)
        ms_json_put(out, text);
    free(text);
}

static json_int_t peak_ns(const struct ms_report *report)
{
    const json_t *device;
    json_int_t most = 0, ns = 0;
    size_t i;

    json_array_foreach (ms_report_array(report->root, "devices"), i, device)
        if (ms_report_int(device, "peak_live_bytes") > most) {
            most = ms_report_int(device, "peak_live_bytes");
            ns = positive(ms_report_int(device, "peak_ns"));
        }
    return ns;
}

int ms_export_dhat(FILE *out, const struct ms_export *job)
{
    const struct ms_model *model = job->model;
    const json_t *run = json_object_get(model->report->root, "run");
    json_int_t begin = ms_report_int(run, "start_unix_ns"), end = ms_report_int(run, "end_unix_ns");

    fputs("{\"dhatFileVersion\":2,\"mode\":\"heap\",\"verb\":\"Allocated\",\"bklt\":true,\"bkacc\":false,"
          "\"tu\":\"ns\","
          "\"Mtu\":\"ms\",",
          out);
    ms_json_put_member(out, "", "cmd", ms_report_text(run, "exe"));
    fprintf(out,
            ",\"tuth\":%d,\"pid\":%" JSON_INTEGER_FORMAT ",\"tg\":%" JSON_INTEGER_FORMAT
            ",\"te\":%" JSON_INTEGER_FORMAT ",\"pps\":[",
            SHORT_LIVED_NS, ms_report_int(run, "pid"), peak_ns(model->report),
            begin > 0 && end > begin ? end - begin : 0);
    for (size_t i = 0; i < model->site_count; i++) {
        fputs(i ? ",\n" : "\n", out);
        dhat_put_site(out, model, &model->sites[i]);
    }
    fputs("],\"ftbl\":[\"[root]\"", out);
    for (size_t i = 0; i < model->frame_count; i++) {
        fputs(",\n", out);
        dhat_put_frame(out, &model->frames[i]);
    }
    fputs("]}\n", out);
    return 0;
}
