/* speedscope.c - speedscope's own JSON: a profile for each value, over one table of frames.
 *
 * Floor 4. Reference: file-format-spec.ts of speedscope, "sampled" profiles: as many weights as samples, a
 * sample is its frames from root to leaf, and the profile ends at the sum of its weights. */
#include "config.h"

#include <inttypes.h>

#include "export/export.h"
#include "export/json_text.h"

static void speedscope_put_frames(FILE *out, const struct ms_model *model)
{
    for (size_t i = 0; i < model->frame_count; i++) {
        const struct ms_model_frame *frame = &model->frames[i];

        ms_json_put_member(out, i ? ",\n{" : "\n{", "name", frame->name);
        if (*frame->file)
            ms_json_put_member(out, ",", "file", frame->file);
        if (*frame->file && frame->line)
            fprintf(out, ",\"line\":%" JSON_INTEGER_FORMAT, frame->line);
        fputc('}', out);
    }
}

static void put_samples(FILE *out, const struct ms_model *model, enum ms_value value)
{
    size_t told = 0;

    for (size_t i = 0; i < model->site_count; i++) {
        const struct ms_model_site *site = &model->sites[i];

        if (!site->values[value])
            continue;
        fputs(told++ ? ",\n[" : "\n[", out);
        for (size_t k = 0; k < site->depth; k++)
            fprintf(out, "%s%" PRIu32, k ? "," : "", model->path[site->first + k]);
        fputc(']', out);
    }
}

static void put_weights(FILE *out, const struct ms_model *model, enum ms_value value)
{
    size_t told = 0;

    for (size_t i = 0; i < model->site_count; i++)
        if (model->sites[i].values[value])
            fprintf(out, "%s%" JSON_INTEGER_FORMAT, told++ ? "," : "", model->sites[i].values[value]);
}

static void put_profile(FILE *out, const struct ms_model *model, enum ms_value value)
{
    const struct ms_value_name *name = &ms_value_names[value];

    ms_json_put_member(out, "{\"type\":\"sampled\",", "name", name->title);
    fprintf(out, ",\"unit\":\"%s\",\"startValue\":0,\"endValue\":%" JSON_INTEGER_FORMAT ",\"samples\":[",
            value == MS_VALUE_COUNT ? "none" : "bytes", ms_model_sum(model, value));
    put_samples(out, model, value);
    fputs("],\"weights\":[", out);
    put_weights(out, model, value);
    fputs("]}", out);
}

int ms_export_speedscope(FILE *out, const struct ms_export *job)
{
    const json_t *run = json_object_get(job->model->report->root, "run");

    fputs("{\"$schema\":\"https://www.speedscope.app/"
          "file-format-schema.json\",\"exporter\":\"memshim@" PACKAGE_VERSION "\",",
          out);
    ms_json_put_member(out, "", "name", ms_report_text(run, "exe"));
    fprintf(out, ",\"activeProfileIndex\":%d,\"shared\":{\"frames\":[", (int)job->value);
    speedscope_put_frames(out, job->model);
    fputs("]},\n\"profiles\":[", out);
    for (unsigned value = 0; value < MS_VALUES; value++) {
        fputs(value ? ",\n" : "\n", out);
        put_profile(out, job->model, (enum ms_value)value);
    }
    fputs("]}\n", out);
    return 0;
}
