/* doctor_text.c - what the doctor found, as text; see doctor.h.
 *
 * Floor 5. */
#include <string.h>

#include "cli/doctor/doctor.h"
#include "cli/live/stale_text.h"
#include "report/read/read.h"
#include "report/text/text.h"

static void print_fact(FILE *out, const char *name, const char *text)
{
    fprintf(out, "  %-12s ", name);
    ms_text_put(out, text);
    fputc('\n', out);
}

static void print_lines(FILE *out, const char *name, const json_t *lines)
{
    json_t *line;
    size_t i;

    json_array_foreach (lines, i, line)
        print_fact(out, i ? "" : name, json_string_value(line) ? json_string_value(line) : "");
}

static const char *path_or(const json_t *object, const char *key, const char *otherwise)
{
    const char *path = ms_report_text(object, key);

    return *path ? path : otherwise;
}

static void print_library(FILE *out, const json_t *library)
{
    const char *device = ms_report_text(library, "device_file");

    print_fact(out, ms_report_text(library, "api"), ms_report_text(library, "path"));
    if (!*device || ms_report_bool(library, "device_files"))
        return;
    fprintf(out, "  %-12s ", "device");
    ms_text_put(out, device);
    fputs(" is not here: that library will find no device\n", out);
}

static bool drives(const json_t *libraries)
{
    json_t *library;
    size_t i;

    json_array_foreach (libraries, i, library)
        if (*ms_report_text(library, "device_file"))
            return true;
    return false;
}

/* Whose devices there may be. */
static void print_vendors(FILE *out, const json_t *machine)
{
    json_t *libraries = json_object_get(machine, "libraries"), *library;
    size_t i;

    print_fact(out, "driver",
               path_or(machine, "driver",
                       drives(libraries)
                           ? "libcuda.so.1 is not here: programs with CUDA run on the simulator only (--sim)"
                           : "libcuda.so.1 is not here, nor another vendor's: programs run on the simulator "
                             "only (--sim)"));
    if (*ms_report_text(machine, "driver") && !ms_report_bool(machine, "device_files"))
        print_fact(out, "device", "/dev/nvidiactl is not here: the driver will find no device");
    json_array_foreach (libraries, i, library)
        print_library(out, library);
}

static void print_stale(FILE *out, const json_t *row)
{
    struct ms_stale_sum sum = {(size_t)ms_report_int(row, "count"), (uint64_t)ms_report_int(row, "bytes")};
    char text[64];

    fprintf(out, "  %-12s %s of processes that ended in ", "left behind",
            ms_stale_sum_text(&sum, text, sizeof(text)));
    ms_text_put(out, ms_report_text(row, "directory"));
    fputs(": memshim recover makes reports of them, memshim clean removes old ones\n", out);
}

/* --- whose memory it is --- */

static void print_size(FILE *out, const json_t *object, const char *key)
{
    struct ms_text_number size = ms_text_size(ms_report_int(object, key));

    fputs(json_object_get(object, key) ? size.text : "some memory", out);
}

/* Memory that nobody of this user's works with is told by process: a zombie's, and that of a process which
 * is not there. */
static void print_holder(FILE *out, const json_t *process)
{
    bool zombie = strcmp(ms_report_text(process, "state"), "zombie") == 0;

    fprintf(out, "  %-12s ", "");
    print_size(out, process, "used_bytes");
    fprintf(out, " by process %lld, ", (long long)ms_report_int(process, "pid"));
    if (zombie) {
        fputs("a zombie of ", out);
        ms_text_put(out, ms_report_text(process, "user"));
        fputs("'s: a thread of it still runs, or its parent has not waited for it\n", out);
        return;
    }
    fputs("which is not here: it is another container's, or has ended and left its memory behind\n", out);
}

/* Others' processes in one line for each user, at the first of them. */
static void print_others(FILE *out, const json_t *processes, size_t at)
{
    const json_t *first = json_array_get(processes, at), *process;
    json_int_t bytes = 0;
    unsigned count = 0;
    size_t i;

    json_array_foreach (processes, i, process) {
        if (strcmp(ms_report_text(process, "user"), ms_report_text(first, "user")) != 0 ||
            strcmp(ms_report_text(process, "state"), "running") != 0)
            continue;
        if (i < at)
            return;
        bytes += ms_report_int(process, "used_bytes");
        count++;
    }
    fprintf(out, "  %-12s %s by user ", "", ms_text_size(bytes).text);
    ms_text_put(out, ms_report_text(first, "user"));
    fprintf(out, ", %u process%s\n", count, count == 1 ? "" : "es");
}

static void print_device(FILE *out, const json_t *device)
{
    json_t *processes = json_object_get(device, "processes"), *process;
    size_t i;

    fprintf(out, "  %-12s ", "memory");
    print_size(out, device, "free_bytes");
    fputs(" free of ", out);
    print_size(out, device, "total_bytes");
    fprintf(out, " on device %lld, ", (long long)ms_report_int(device, "index"));
    ms_text_put(out, ms_report_text(device, "name"));
    fputc('\n', out);
    json_array_foreach (processes, i, process) {
        if (strcmp(ms_report_text(process, "state"), "running") != 0)
            print_holder(out, process);
        else if (!ms_report_bool(process, "own"))
            print_others(out, processes, i);
    }
    if (!ms_report_int(device, "unaccounted_bytes"))
        return;
    fprintf(out, "  %-12s ", "");
    print_size(out, device, "unaccounted_bytes");
    fputs(" by no process that the driver names: its own, or left behind\n", out);
}

static void print_machine(FILE *out, const json_t *machine)
{
    json_t *row;
    size_t i;

    fputs("This machine\n", out);
    print_fact(out, "machine", ms_report_text(machine, "machine"));
    print_fact(out, "library",
               path_or(machine, "library", "libmemshim.so is not where this command looks for it"));
    print_fact(out, "simulator", path_or(machine, "simulator", "not there"));
    print_vendors(out, machine);
    json_array_foreach (json_object_get(machine, "devices"), i, row)
        print_device(out, row);
    if (!ms_report_bool(machine, "lookup_hooks"))
        print_fact(out, "lookups",
                   "not followed on this machine: dlsym and cuGetProcAddress pass by memshim");
    print_fact(out, "ledger", ms_report_text(machine, "ledger"));
    json_array_foreach (json_object_get(machine, "stale_ledgers"), i, row)
        print_stale(out, row);
    print_lines(out, "preloaded", json_object_get(machine, "other_preloads"));
}

static void print_object(FILE *out, const json_t *object)
{
    const char *path = ms_report_text(object, "path"), *user = ms_report_text(object, "needed_by");

    fputs("  ", out);
    ms_text_put(out, *path ? path : ms_report_text(object, "name"));
    if (*user) {
        fputs(" (needed by ", out);
        ms_text_put(out, user);
        fputc(')', out);
    }
    fputs("\n      ", out);
    ms_text_put(out, ms_report_text(object, "role"));
    if (*ms_report_text(object, "seen")) {
        fputs("\n      ", out);
        ms_text_put(out, ms_report_text(object, "seen"));
    }
    fputc('\n', out);
}

static void print_program(FILE *out, const json_t *program)
{
    json_t *objects = json_object_get(program, "objects"), *object;
    size_t i;

    ms_text_heading(out, "Program");
    print_fact(out, "program", ms_report_text(program, "path"));
    if (strcmp(ms_report_text(program, "path"), path_or(program, "file", ms_report_text(program, "path"))))
        print_fact(out, "run by", ms_report_text(program, "file"));
    print_lines(out, "obstacle", json_object_get(program, "obstacles"));
    if (!*ms_report_text(program, "file"))
        return;
    ms_text_heading(out, "How its files reach a GPU");
    json_array_foreach (objects, i, object)
        print_object(out, object);
    if (!json_array_size(objects))
        fputs("  nothing that it is linked with does\n", out);
    if (ms_report_bool(program, "python"))
        fputs("  Python opens extension modules at run time: only a run tells what they do\n", out);
    else if (ms_report_bool(program, "opens_more"))
        fputs("  more may be opened at run time (dlopen is imported): only a run tells\n", out);
}

static void print_run(FILE *out, const json_t *run)
{
    json_t *routes = json_object_get(run, "routes");

    ms_text_heading(out, "Run under memshim");
    fprintf(out,
            "  ended with status %" JSON_INTEGER_FORMAT "; %" JSON_INTEGER_FORMAT " process%s reported\n",
            ms_report_int(run, "status"), ms_report_int(run, "reports"),
            ms_report_int(run, "reports") == 1 ? "" : "es");
    if (!ms_report_int(run, "reports"))
        return;
    fprintf(out, "  %" JSON_INTEGER_FORMAT " memory calls seen, peak %s\n", ms_report_int(run, "calls"),
            ms_text_size(ms_report_int(run, "peak_bytes")).text);
    fprintf(out,
            "  reached by exported name %" JSON_INTEGER_FORMAT ", dlsym %" JSON_INTEGER_FORMAT
            ", cuGetProcAddress %" JSON_INTEGER_FORMAT "\n",
            ms_report_int(routes, "exported"), ms_report_int(routes, "dlsym"),
            ms_report_int(routes, "get_proc_address"));
    if (ms_report_int(json_object_get(run, "counts"), "unseen_frees"))
        fprintf(out, "  %" JSON_INTEGER_FORMAT " frees of memory whose allocation was not seen\n",
                ms_report_int(json_object_get(run, "counts"), "unseen_frees"));
    print_lines(out, "not seen", json_object_get(run, "blind_spots"));
    print_lines(out, "said", json_object_get(run, "diagnostics"));
}

void ms_doctor_print(FILE *out, const json_t *findings)
{
    json_t *run = json_object_get(findings, "run");

    print_machine(out, json_object_get(findings, "machine"));
    if (json_object_get(findings, "program"))
        print_program(out, json_object_get(findings, "program"));
    if (run)
        print_run(out, run);
    if (json_object_get(findings, "verdict"))
        fprintf(out, "\n%s\n", ms_report_text(findings, "verdict"));
}
