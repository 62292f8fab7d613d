/* load.h - a report with names, for the verbs that read one.
 *
 * Floor 5. */
#ifndef MS_CLI_LOAD_H
#define MS_CLI_LOAD_H

#include "cli/cli.h"
#include "export/model.h"
#include "report/symbols/pyframes.h"
#include "report/read/read.h"

/** reading.c: Read a report, or the ledger of a process as `memshim recover` does, and leave it there.
 * Returns 0, or -1 after an error line. */
int ms_cli_read(const char *path, struct ms_report *report_p);
/** True if there is a ledger under this name. */
bool ms_cli_is_ledger(const char *path);

/** Read a report as ms_cli_read() does and resolve the names that it lacks, as far as the modules are at hand
 * here; what could not be resolved gets one note on stderr. Returns 0, or -1 after an error line. */
int ms_cli_load(const char *path, struct ms_report *report_p);
/** As ms_cli_load(), but of a report that is read already: `least` as ms_report_annotate() takes it. */
void ms_cli_tell(const char *path, struct ms_report *report, const json_t *least);

/** One note if frames are astray, of the report in the file `path`. */
void ms_cli_note_dangling(const char *path, const struct ms_report *report,
                          const struct ms_pyframes_dangling *astray);

/** The sites as an array of their own, largest `key` first, equal ones by id; free() it. NULL if there are
 * none. */
json_t **ms_cli_sites_by(const struct ms_report *report, const char *key, size_t *count_p);

/** A stack as JSON: an array of {kind, function?, file?, line?, module?, rel_pc?, mark?, name?}, innermost
 * first. */
json_t *ms_cli_stack_json(const struct ms_report *report, json_int_t stack);

/** Puts `stack` into what a verb prints as JSON, and as `own` the program's own line in it
 * (report/analyse/fold.h), if there is one; with `inferred` if it is of another thread; and as `callers` who
 * called it (report/analyse/callers.h). */
void ms_cli_set_stack(json_t *object, const struct ms_report *report, json_int_t stack);

/** Puts what run says of the view (report/analyse/view.h) into what a verb prints as JSON. */
void ms_cli_set_view(json_t *object, const struct ms_report *report);

/** The weight of stacks, by its name (export/model.h); -1 after an error line that names `what`. */
int ms_cli_value(const char *what, const char *text, enum ms_value *value_p);

/** The options of verbs that lay out stacks: --value, --inverted and --all-frames, and what is printed
 * where. */
struct ms_cli_stacks {
    struct ms_cli_printing printing;
    enum ms_value value;
    bool inverted, all_frames;
};
/** Takes the option with this id if it is one of them: 1, or -1 after an error line; else 0. */
int ms_cli_take_stacks(struct ms_cli_stacks *stacks, int id, const char *value);

/** The function that the program called, or "?". */
const char *ms_cli_site_api(const json_t *site);

/** Print a JSON value and a newline, and let go of it. */
void ms_cli_print_json(FILE *out, json_t *value);

#endif
