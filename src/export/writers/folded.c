/* folded.c - folded stacks, as flamegraph.pl reads them: "root;inner;leaf WEIGHT" on a line.
 *
 * Floor 4. Reference: the stackcollapse scripts of FlameGraph. A semicolon in a name would be two frames, so
 * it becomes a colon; a blank is harmless, since the weight stands behind the last one. */
#include "export/export.h"

static void put_name(FILE *out, const char *name)
{
    for (; *name; name++)
        fputc(*name == ';' ? ':' : *name, out);
}

int ms_export_folded(FILE *out, const struct ms_export *job)
{
    const struct ms_model *model = job->model;

    for (size_t i = 0; i < model->site_count; i++) {
        const struct ms_model_site *site = &model->sites[i];

        if (!site->values[job->value])
            continue;
        for (size_t k = 0; k < site->depth; k++) {
            if (k)
                fputc(';', out);
            put_name(out, model->frames[model->path[site->first + k]].name);
        }
        fprintf(out, " %" JSON_INTEGER_FORMAT "\n", site->values[job->value]);
    }
    return 0;
}
