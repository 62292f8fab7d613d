/* json_stacks.c - modules[], frames[], codes[], stacks[].
 *
 * Floor 4. No names are resolved here: a frame is a module and an address in it, or a code object of Python
 * and an offset in that. */
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/objects/objects.h"
#include "report/write/json.h"
#include "unwind/frame.h"
#include "unwind/python/python.h"

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

static const char *mark_name(enum ms_pseudo_frame mark)
{
    static const char *const names[MS_PSEUDO_COUNT] = {
        [MS_PSEUDO_APART] = "apart",
        [MS_PSEUDO_INFERRED] = "inferred",
        [MS_PSEUDO_THREAD] = "thread",
        [MS_PSEUDO_UNSURE] = "unsure",
        [MS_PSEUDO_COMMUNICATOR] = "communicator",
    };
    return mark < MS_PSEUDO_COUNT ? names[mark] : NULL;
}

/* A number that a damaged ledger has of no code object and of no mark is left out. */
static json_t *frame_of_python(const struct ms_report_stacks *stacks, uint64_t frame)
{
    json_t *json = json_pack("{s:s}", "kind", "python");
    uint32_t row = ms_frame_code(frame);
    if (row < stacks->code_total && stacks->codes[row]) {
        json_object_set_new(json, "code", json_integer((json_int_t)stacks->codes[row] - 1));
        if (ms_frame_offset(frame) != MS_PYTHON_NOT_BEGUN)
            json_object_set_new(json, "offset", json_integer((json_int_t)ms_frame_offset(frame)));
    }
    return json;
}

static json_t *frame_of_mark(uint64_t frame)
{
    json_t *json = json_pack("{s:s}", "kind", "mark");
    const char *mark = mark_name(ms_frame_pseudo_of(frame));
    if (mark)
        json_object_set_new(json, "mark", json_string(mark));
    if (ms_frame_pseudo_of(frame) == MS_PSEUDO_THREAD || ms_frame_pseudo_of(frame) == MS_PSEUDO_COMMUNICATOR)
        json_object_set_new(json, "name", ms_out_string(ms_code_text(ms_frame_pseudo_text(frame))));
    return json;
}

static json_t *frame(const struct ms_report_stacks *stacks, const struct ms_report_frame *frame)
{
    if (frame->module == MS_REPORT_NOT_NATIVE && ms_frame_kind(frame->rel_pc) == MS_FRAME_PYTHON)
        return frame_of_python(stacks, frame->rel_pc);
    if (frame->module == MS_REPORT_NOT_NATIVE)
        return frame_of_mark(frame->rel_pc);
    json_t *json = json_pack("{s:s}", "kind", "native");
    if (frame->module >= 0)
        json_object_set_new(json, "module", json_integer(frame->module));
    json_object_set_new(json, "rel_pc", ms_out_hex(frame->rel_pc));
    return json;
}

/* Of all line tables together no more is written than the record has of them: in a damaged one every row may
 * claim all of it. No function's own table comes near LINES_MAX. */
enum { LINES_MAX = 4 << 20 };

static json_t *code(const struct ms_code *code, uint32_t number, uint64_t *lines_left_p)
{
    char version[16];
    snprintf(version, sizeof version, "%d.%d", code->version >> 8, code->version & 0xff);
    json_t *json = json_pack("{s:I, s:o, s:o, s:I, s:s}", "id", (json_int_t)number, "file",
                             ms_out_string(ms_code_text(code->file)), "function",
                             ms_out_string(ms_code_text(code->name)), "first_line",
                             (json_int_t)code->first_line, "version", version);
    const unsigned char *lines = ms_code_lines(code);
    if (lines && code->lines_bytes <= LINES_MAX && code->lines_bytes <= *lines_left_p) {
        *lines_left_p -= code->lines_bytes;
        json_object_set_new(json, "lines", ms_out_base64(lines, code->lines_bytes));
    }
    return json;
}

static void write_codes(struct ms_out *out, const struct ms_report_stacks *stacks)
{
    uint64_t lines_left = ms_table_rows(MS_TABLE_CODE_TEXT);
    ms_out_key(out, "codes");
    ms_out_begin_array(out);
    for (uint32_t i = 0; i < stacks->code_count; i++)
        ms_out_element(out, code(ms_code_at(stacks->code_rows[i]), i, &lines_left));
    ms_out_end_array(out);
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
        ms_out_element(out, frame(stacks, &stacks->frames[i]));
    ms_out_end_array(out);

    write_codes(out, stacks);

    ms_out_key(out, "stacks");
    ms_out_begin_array(out);
    ms_out_element(out, json_pack("[i, i]", 0, -1)); /* number 0 is no stack, and ends every one */
    for (uint32_t i = 1; i <= stacks->stack_count; i++)
        ms_out_element(out, json_pack("[I, I]", (json_int_t)stacks->stacks[i].parent,
                                      (json_int_t)stacks->stacks[i].frame));
    ms_out_end_array(out);
}
