/* pprof.c - pprof's profile.proto, gzipped.
 *
 * Floor 4. Reference: profile.proto and Profile.CheckValid of github.com/google/pprof: string 0 is empty, ids
 * are not zero and unique, a sample has one value for each type and its locations leaf first. Each module has
 * a stretch of addresses of its own, in which a location's address is the one in the module's file. */
#include "config.h"

#include <string.h>

#include "base/compiler.h"
#include "export/export.h"
#include "export/gzip.h"
#include "export/names.h"
#include "export/wire.h"

enum {
    PROFILE_TYPE = 1,
    PROFILE_SAMPLE = 2,
    PROFILE_MAPPING = 3,
    PROFILE_LOCATION = 4,
    PROFILE_FUNCTION = 5,
    PROFILE_STRING = 6,
    PROFILE_TIME = 9,
    PROFILE_DURATION = 10,
    PROFILE_PERIOD_TYPE = 11,
    PROFILE_PERIOD = 12,
    PROFILE_COMMENT = 13,
    PROFILE_DEFAULT_TYPE = 14
};
enum { TYPE_TYPE = 1, TYPE_UNIT = 2 };
enum { SAMPLE_LOCATIONS = 1, SAMPLE_VALUES = 2, SAMPLE_LABEL = 3, LABEL_KEY = 1, LABEL_TEXT = 2 };
enum {
    MAPPING_ID = 1,
    MAPPING_START = 2,
    MAPPING_LIMIT = 3,
    MAPPING_FILE = 5,
    MAPPING_BUILD_ID = 6,
    MAPPING_HAS_FUNCTIONS = 7,
    MAPPING_HAS_FILES = 8,
    MAPPING_HAS_LINES = 9,
    MAPPING_HAS_INLINED = 10
};
enum {
    LOCATION_ID = 1,
    LOCATION_MAPPING = 2,
    LOCATION_ADDRESS = 3,
    LOCATION_LINE = 4,
    LINE_FUNCTION = 1,
    LINE_LINE = 2
};
enum { FUNCTION_ID = 1, FUNCTION_NAME = 2, FUNCTION_SYSTEM_NAME = 3, FUNCTION_FILE = 4 };

#define STRETCH ((uint64_t)1 << 40)

static const struct {
    const char *type, *unit;
    enum ms_value value; /* MS_VALUES: how many are live */
} types[] = {
    {"alloc_objects", "count", MS_VALUE_COUNT},     {"alloc_space", "bytes", MS_VALUE_TOTAL},
    {"inuse_objects", "count", MS_VALUES},          {"inuse_space", "bytes", MS_VALUE_LIVE},
    {"peak_space", "bytes", MS_VALUE_PEAK},         {"leaked_space", "bytes", MS_VALUE_LEAKED},
    {"rounding_space", "bytes", MS_VALUE_ROUNDING},
};

struct writer {
    const struct ms_model *model;
    struct ms_wire profile, message, inner, packed;
    struct ms_names strings, modules;
};

static uint64_t string(struct writer *writer, const char *text)
{
    uint32_t number = ms_names_number(&writer->strings, text);

    writer->profile.failed = writer->profile.failed || number == UINT32_MAX;
    return number;
}

static void put_type(struct writer *writer, unsigned field, const char *type, const char *unit)
{
    ms_wire_number(&writer->message, TYPE_TYPE, string(writer, type));
    ms_wire_number(&writer->message, TYPE_UNIT, string(writer, unit));
    ms_wire_message(&writer->profile, field, &writer->message);
}

static void pprof_put_label(struct writer *writer, const char *key, const char *text)
{
    if (!*text)
        return;
    ms_wire_number(&writer->inner, LABEL_KEY, string(writer, key));
    ms_wire_number(&writer->inner, LABEL_TEXT, string(writer, text));
    ms_wire_message(&writer->message, SAMPLE_LABEL, &writer->inner);
}

static void put_sample(struct writer *writer, const struct ms_model_site *site)
{
    json_int_t live = ms_report_int(site->json, "live_count");

    for (size_t k = site->depth; k > 0; k--)
        ms_wire_varint(&writer->packed, (uint64_t)writer->model->path[site->first + k - 1] + 1);
    ms_wire_message(&writer->message, SAMPLE_LOCATIONS, &writer->packed);
    for (size_t i = 0; i < MS_ARRAY_LEN(types); i++)
        ms_wire_varint(&writer->packed, types[i].value < MS_VALUES ? (uint64_t)site->values[types[i].value]
                                                                   : (uint64_t)(live > 0 ? live : 0));
    ms_wire_message(&writer->message, SAMPLE_VALUES, &writer->packed);
    pprof_put_label(writer, "place", site->place);
    pprof_put_label(writer, "kind", ms_report_text(site->json, "kind"));
    pprof_put_label(writer, "owner", ms_report_text(site->json, "owner"));
    pprof_put_label(writer, "site", ms_report_text(site->json, "hash"));
    ms_wire_message(&writer->profile, PROFILE_SAMPLE, &writer->message);
}

/* The number of a module's mapping, 0 for none; a new one is put down. Rows of one file are one mapping. */
static uint64_t mapping(struct writer *writer, const json_t *module)
{
    const char *path = ms_report_text(module, "path"), *build_id = ms_report_text(module, "build_id");
    size_t known = writer->modules.count;
    uint64_t number;

    if (!*path)
        return 0;
    number = (uint64_t)ms_names_number(&writer->modules, path) + 1;
    if (number <= known)
        return number;
    ms_wire_number(&writer->message, MAPPING_ID, number);
    ms_wire_number(&writer->message, MAPPING_START, number * STRETCH);
    ms_wire_number(&writer->message, MAPPING_LIMIT, (number + 1) * STRETCH);
    ms_wire_number(&writer->message, MAPPING_FILE, string(writer, path));
    ms_wire_number(&writer->message, MAPPING_BUILD_ID, string(writer, build_id));
    for (unsigned has = MAPPING_HAS_FUNCTIONS; has <= MAPPING_HAS_INLINED; has++)
        ms_wire_number(&writer->message, has, 1);
    ms_wire_message(&writer->profile, PROFILE_MAPPING, &writer->message);
    return number;
}

/* Each frame is a location and a function of the same number. */
static void pprof_put_frame(struct writer *writer, size_t i)
{
    const struct ms_model_frame *frame = &writer->model->frames[i];
    uint64_t map = mapping(writer, frame->module), name = string(writer, frame->name);

    ms_wire_number(&writer->message, FUNCTION_ID, i + 1);
    ms_wire_number(&writer->message, FUNCTION_NAME, name);
    ms_wire_number(&writer->message, FUNCTION_SYSTEM_NAME, name);
    ms_wire_number(&writer->message, FUNCTION_FILE, string(writer, frame->file));
    ms_wire_message(&writer->profile, PROFILE_FUNCTION, &writer->message);
    ms_wire_number(&writer->inner, LINE_FUNCTION, i + 1);
    ms_wire_number(&writer->inner, LINE_LINE, (uint64_t)frame->line);
    ms_wire_number(&writer->message, LOCATION_ID, i + 1);
    ms_wire_number(&writer->message, LOCATION_MAPPING, map);
    ms_wire_number(&writer->message, LOCATION_ADDRESS, map ? map * STRETCH + frame->rel_pc % STRETCH : 0);
    ms_wire_message(&writer->message, LOCATION_LINE, &writer->inner);
    ms_wire_message(&writer->profile, PROFILE_LOCATION, &writer->message);
}

static void put_head(struct writer *writer, enum ms_value shown)
{
    const json_t *run = json_object_get(writer->model->report->root, "run");
    json_int_t begin = ms_report_int(run, "start_unix_ns"), end = ms_report_int(run, "end_unix_ns");

    string(writer, ""); /* 0 */
    for (size_t i = 0; i < MS_ARRAY_LEN(types); i++) {
        put_type(writer, PROFILE_TYPE, types[i].type, types[i].unit);
        if (types[i].value == shown)
            ms_wire_number(&writer->profile, PROFILE_DEFAULT_TYPE, string(writer, types[i].type));
    }
    ms_wire_number(&writer->profile, PROFILE_TIME, (uint64_t)(begin > 0 ? begin : 0));
    ms_wire_number(&writer->profile, PROFILE_DURATION,
                   (uint64_t)(begin > 0 && end > begin ? end - begin : 0));
    put_type(writer, PROFILE_PERIOD_TYPE, "space", "bytes");
    ms_wire_number(&writer->profile, PROFILE_PERIOD, 1);
    ms_wire_number(&writer->profile, PROFILE_COMMENT, string(writer, "memshim " PACKAGE_VERSION));
}

int ms_export_pprof(FILE *out, const struct ms_export *job)
{
    struct writer writer;
    int result;

    memset(&writer, 0, sizeof(writer));
    writer.model = job->model;
    put_head(&writer, job->value);
    for (size_t i = 0; i < job->model->site_count; i++)
        put_sample(&writer, &job->model->sites[i]);
    for (size_t i = 0; i < job->model->frame_count; i++)
        pprof_put_frame(&writer, i);
    for (size_t i = 0; i < writer.strings.count; i++)
        ms_wire_field(&writer.profile, PROFILE_STRING, writer.strings.texts[i],
                      strlen(writer.strings.texts[i]));
    result = writer.profile.failed ? -1 : ms_gzip_write(out, writer.profile.bytes, writer.profile.count);
    ms_wire_close(&writer.profile);
    ms_wire_close(&writer.message);
    ms_wire_close(&writer.inner);
    ms_wire_close(&writer.packed);
    ms_names_close(&writer.strings);
    ms_names_close(&writer.modules);
    return result;
}
