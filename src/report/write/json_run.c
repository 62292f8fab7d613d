/* json_run.c - run: which process this was, when, and its place in a parallel job.
 *
 * Floor 4. All of it was written down by the process itself. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/write/json.h"

static void set_text(json_t *json, const char *key)
{
    const char *value = ms_process_text(key);
    if (value)
        json_object_set_new(json, key, ms_out_string(value));
}

/* A rank or a number of ranks. */
static void set_number(json_t *json, const char *key)
{
    const char *value = ms_process_text(key);
    long number = value ? strtol(value, NULL, 10) : -1;
    if (number >= 0)
        json_object_set_new(json, key, json_integer(number));
}

static json_t *required_text(const char *key)
{
    const char *value = ms_process_text(key);
    return ms_out_string(value ? value : "");
}

static json_t *arguments(void)
{
    const char *argument;
    uint64_t cursor = 0;
    json_t *json = json_array();
    while ((argument = ms_process_next_text("arg", &cursor)) != NULL)
        json_array_append_new(json, ms_out_string(argument));
    return json;
}

static const char *reason_name(enum ms_end_reason reason)
{
    static const char *const names[MS_END_COUNT] = {
        [MS_END_NONE] = "running",    [MS_END_EXIT] = "exit", [MS_END_SIGNAL] = "signal",
        [MS_END_EXEC] = "exec",       [MS_END_OOM] = "oom",   [MS_END_KILLED] = "killed",
        [MS_END_RUNNING] = "running",
    };
    return names[reason];
}

/* As text: a number of 64 bits is more than some readers of JSON can hold. */
static json_t *run_id_text(uint64_t id)
{
    char text[24];
    snprintf(text, sizeof text, MS_RUN_ID_FORMAT, id);
    return json_string(text);
}

static bool is_option(const char *name, const char *wanted)
{
    const char *option;
    uint64_t cursor = 0;
    size_t length = strlen(name);
    while ((option = ms_process_next_text("option", &cursor)) != NULL) {
        if (strncmp(option, name, length) == 0 && option[length] == '=' && option[length + 1])
            return strcmp(option + length + 2, wanted) == 0;
    }
    return false;
}

/* A version as PY_VERSION_HEX has it, without the release level. */
static json_t *version_text(uint32_t version)
{
    char text[24];
    if (version & 0xffff)
        snprintf(text, sizeof text, "%u.%u.%u", version >> 24, version >> 16 & 0xff, version >> 8 & 0xff);
    else /* 3.9 and 3.10 do not say more */
        snprintf(text, sizeof text, "%u.%u", version >> 24, version >> 16 & 0xff);
    return json_string(text);
}

static json_t *python(const struct ms_report_python *stacks)
{
    const struct ms_process *process = ms_process();
    uint32_t version = atomic_load(&process->python_version);
    const char *state = is_option("PYTHON", "off")              ? "off"
                        : !version                              ? "absent"
                        : atomic_load(&process->python_is_read) ? "read"
                                                                : "unread";
    json_t *json = json_pack("{s:s, s:I, s:I, s:I, s:I}", "state", state, "merged",
                             (json_int_t)stacks->merged, "apart", (json_int_t)stacks->apart, "inferred",
                             (json_int_t)stacks->inferred, "unsure", (json_int_t)stacks->unsure);
    if (version)
        json_object_set_new(json, "version", version_text(version));
    return json;
}

void ms_json_run(struct ms_out *out, const struct ms_report_input *input)
{
    const struct ms_process *process = ms_process();
    json_t *json = json_pack("{s:o, s:o, s:o, s:o, s:i, s:i}", "argv", arguments(), "exe",
                             required_text("exe"), "cwd", required_text("cwd"), "host", required_text("host"),
                             "pid", (int)process->pid, "ppid", (int)process->ppid);
    if (process->run_id)
        json_object_set_new(json, "id", run_id_text(process->run_id));
    set_number(json, "rank");
    set_number(json, "local_rank");
    set_number(json, "world_size");
    set_text(json, "job_id");
    set_text(json, "trace");
    json_object_set_new(json, "start_unix_ns", json_integer((json_int_t)process->start_unix_ns));
    json_object_set_new(json, "end_unix_ns",
                        json_integer((json_int_t)(process->start_unix_ns + input->snapshot->now_ns)));
    json_object_set_new(json, "end_reason", json_string(reason_name(input->reason)));
    if (input->reason == MS_END_EXIT && input->code >= 0)
        json_object_set_new(json, "exit_code", json_integer(input->code));
    if ((input->reason == MS_END_SIGNAL || input->reason == MS_END_KILLED) && input->code > 0)
        json_object_set_new(json, "signal", json_integer(input->code));
    json_object_set_new(json, "complete", json_boolean(input->snapshot->consistent));
    json_object_set_new(json, "symbolized", json_false());
    json_object_set_new(json, "python", python(&input->stacks->python));
    ms_out_key(out, "run");
    ms_out_value(out, json);
}
