/* cmd_doctor.c - memshim doctor: how a program reaches the GPU, what memshim sees of it, and what it cannot
 * see and why.
 *
 * Floor 5. Looks first, without running anything; then runs the program under memshim and looks at what was
 * seen. */
#include <stdlib.h>

#include "cli/run/child.h"
#include "cli/cli.h"
#include "cli/doctor/doctor.h"
#include "cli/load.h"

struct doctor_options {
    bool json, sim, static_only;
};

static int doctor_take(void *arg, int id, const char *value)
{
    struct doctor_options *options = arg;

    (void)value;
    if (id == 'j')
        options->json = true;
    else if (id == 's')
        options->sim = true;
    else
        options->static_only = true;
    return 0;
}

/* The last line, and the exit status that goes with it. */
static int conclude(json_t *findings)
{
    const json_t *program = json_object_get(findings, "program"), *run = json_object_get(findings, "run");
    const char *verdict = "memshim can follow this program as far as its files tell";
    int status = MS_EXIT_OK;

    if (!*ms_report_text(json_object_get(findings, "machine"), "library")) {
        verdict = "memshim is not installed completely";
        status = MS_EXIT_CONDITION;
    } else if (json_array_size(json_object_get(program, "obstacles"))) {
        verdict = "memshim cannot follow this program, for the reasons given as obstacles";
        status = MS_EXIT_CONDITION;
    } else if (!program) {
        return status;
    } else if (run && !ms_report_int(run, "reports")) {
        verdict = "this run used no GPU memory that memshim could see";
    } else if (run && (json_array_size(json_object_get(run, "blind_spots")) ||
                       ms_report_int(json_object_get(run, "counts"), "unseen_frees"))) {
        verdict = "memshim saw this run, but not all of it";
        status = MS_EXIT_CONDITION;
    } else if (run) {
        verdict = "memshim saw this run, and knows of nothing that it missed";
    }
    json_object_set_new(findings, "verdict", json_string(verdict));
    return status;
}

static int examine(const struct doctor_options *options, char **argv)
{
    json_t *findings = json_object(), *program = NULL, *run = NULL;
    char *path = NULL;
    int status = *argv ? ms_child_find(*argv, &path) : 0;

    if (status) {
        json_decref(findings);
        return MS_EXIT_USAGE;
    }
    json_object_set_new(findings, "machine", ms_doctor_machine());
    if (path) {
        program = ms_doctor_program(path, options->sim, true);
        json_object_set_new(findings, "program", program);
    }
    if (path && !options->static_only && !json_array_size(json_object_get(program, "obstacles"))) {
        run = ms_doctor_run(path, argv, options->sim);
        if (run)
            json_object_set_new(findings, "run", run);
    }
    status = conclude(findings);
    if (options->json)
        ms_cli_print_json(stdout, json_incref(findings));
    else
        ms_doctor_print(stdout, findings);
    json_decref(findings);
    free(path);
    return ms_cli_close_output(stdout) == MS_EXIT_OK ? status : MS_EXIT_USAGE;
}

int ms_cmd_doctor(int argc, char **argv)
{
    struct doctor_options options = {0};
    int first = ms_cli_parse(argc, argv, true, doctor_take, &options);

    if (first < 0)
        return ms_cli_parse_status(first);
    return examine(&options, argv + first);
}
