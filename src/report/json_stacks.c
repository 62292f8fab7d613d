/* json_stacks.c - modules[], frames[], stacks[].
 *
 * Floor 4. No names are resolved here: a frame is a module and an address in it. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/objects.h"
#include "report/json.h"

/* Whose code a file is, by how its name begins. */
static const struct {
    const char *start, *owner;
} known_files[] = {
    {"libmemshim.so", "memshim"},
    {"libcudart", "cuda_runtime"},
    {"libcuda.so", "cuda_driver"},
    {"libnccl", "nccl"},
    {"libcublas", "cuda_library"},
    {"libcudnn", "cuda_library"},
    {"libcufft", "cuda_library"},
    {"libcurand", "cuda_library"},
    {"libcusolver", "cuda_library"},
    {"libcusparse", "cuda_library"},
    {"libnvrtc", "cuda_library"},
    {"libnvJitLink", "cuda_library"},
    {"libpython", "python"},
    {"linux-vdso", "kernel"},
    {"ld-linux", "libc"},
    {"ld-", "libc"},
    {"libc.so", "libc"},
    {"libc-", "libc"},
    {"libm.so", "libc"},
    {"libdl.so", "libc"},
    {"librt.so", "libc"},
    {"libpthread", "libc"},
    {"libgcc_s", "libc"},
    {"libstdc++", "libc"},
};

static const char *owner_of(const struct ms_object *object, uint32_t row)
{
    const char *slash = strrchr(object->path, '/');
    const char *file = slash ? slash + 1 : object->path;
    if (row == 0) /* the loader lists the executable first */
        return "program";
    for (unsigned i = 0; i < MS_ARRAY_LEN(known_files); i++) {
        if (strncmp(file, known_files[i].start, strlen(known_files[i].start)) == 0)
            return known_files[i].owner;
    }
    if (strstr(file, ".cpython-") || strstr(file, ".abi3.so") || strstr(object->path, "/lib-dynload/"))
        return "python_extension";
    return "other";
}

static json_t *build_id_text(const struct ms_object *object)
{
    char text[2 * sizeof object->build_id + 1] = "";
    for (unsigned i = 0; i < object->build_id_bytes; i++)
        snprintf(text + 2 * i, 3, "%02x", object->build_id[i]);
    return json_string(text);
}

static json_t *module(uint32_t row)
{
    const struct ms_object *object = ms_object(row);
    json_t *json = json_pack("{s:I, s:o}", "id", (json_int_t)row, "path", ms_out_string(object->path));
    if (object->build_id_bytes)
        json_object_set_new(json, "build_id", build_id_text(object));
    json_object_set_new(json, "generation", json_integer(object->generation));
    json_object_set_new(json, "owner", json_string(owner_of(object, row)));
    json_object_set_new(json, "address", ms_out_hex(object->bias));
    json_object_set_new(json, "loaded", json_boolean(!atomic_load(&object->gone)));
    return json;
}

static json_t *frame(const struct ms_report_frame *frame)
{
    json_t *json = json_pack("{s:s}", "kind", "native");
    if (frame->module >= 0)
        json_object_set_new(json, "module", json_integer(frame->module));
    json_object_set_new(json, "rel_pc", ms_out_hex(frame->rel_pc));
    return json;
}

void ms_json_stacks(struct ms_out *out, const struct ms_report_input *input)
{
    const struct ms_report_stacks *stacks = input->stacks;
    ms_out_key(out, "modules");
    ms_out_begin_array(out);
    for (uint32_t row = 0; row < ms_object_count(); row++)
        ms_out_element(out, module(row));
    ms_out_end_array(out);

    ms_out_key(out, "frames");
    ms_out_begin_array(out);
    for (uint32_t i = 0; i < stacks->frame_count; i++)
        ms_out_element(out, frame(&stacks->frames[i]));
    ms_out_end_array(out);

    ms_out_key(out, "stacks");
    ms_out_begin_array(out);
    ms_out_element(out, json_pack("[i, i]", 0, -1)); /* number 0 is no stack, and ends every one */
    for (uint32_t i = 1; i <= stacks->stack_count; i++)
        ms_out_element(out, json_pack("[I, I]", (json_int_t)stacks->stacks[i].parent,
                                      (json_int_t)stacks->stacks[i].frame));
    ms_out_end_array(out);
}
