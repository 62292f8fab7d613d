/* cmd_diff.c - memshim diff: two reports beside each other.
 *
 * Floor 5. */
#include <string.h>

#include "cli/cli.h"
#include "cli/screens/diff.h"
#include "cli/load.h"
#include "cli/screens/multi_report.h"

struct diff_options {
    struct ms_cli_printing printing;
    enum ms_diff_by by;
    enum ms_diff_value value;
    bool all_frames;
    long top;
};

/* The word's place in a list; -1 after an error line that names the list's words. */
static int word_of(const char *option, const char *text, const char *const *words, int count)
{
    char allowed[128] = "";
    size_t used = 0;

    for (int i = 0; i < count; i++) {
        if (!strcmp(words[i], text))
            return i;
        used += (size_t)snprintf(allowed + used, sizeof(allowed) - used, "%s%s", i ? ", " : "", words[i]);
    }
    ms_cli_error("%s '%s' is not allowed: one of %s", option, text, allowed);
    return -1;
}

static int diff_take(void *arg, int id, const char *value)
{
    struct diff_options *options = arg;
    int word;

    options->all_frames = options->all_frames || id == 'a';
    if (ms_cli_take_printing(&options->printing, id, value))
        return 0;
    if (id == 'n')
        return ms_cli_number("--top", value, 0, 1000000, &options->top);
    if (id == 'b') {
        word = word_of("--by", value, ms_diff_bys, MS_DIFF_BYS);
        options->by = (enum ms_diff_by)(word < 0 ? 0 : word);
    } else {
        word = word_of("--value", value, ms_diff_values, MS_DIFF_VALUES);
        options->value = (enum ms_diff_value)(word < 0 ? 0 : word);
    }
    return word < 0 ? -1 : 0;
}

static int diff_print(const struct diff_options *options, const struct ms_diff *diff)
{
    FILE *out = ms_cli_open_output(options->printing.output, options->printing.force);

    if (!out)
        return MS_EXIT_USAGE;
    if (options->printing.json)
        ms_cli_print_json(out, ms_diff_json(diff, (size_t)options->top));
    else
        ms_diff_put_text(out, diff, (size_t)options->top);
    return ms_cli_close_output(out);
}

int ms_cmd_diff(int argc, char **argv)
{
    struct diff_options options = {.top = 20};
    struct ms_diff diff = {.count = 0};
    int first = ms_cli_parse(argc, argv, false, diff_take, &options), status = MS_EXIT_USAGE;
    struct ms_report *reports;

    if (first < 0)
        return ms_cli_parse_status(first);
    if (argc - first != 2) {
        ms_cli_error("two reports are needed, %d given; usage: memshim diff [OPTION...] BEFORE AFTER",
                     argc - first);
        return MS_EXIT_USAGE;
    }
    diff.by = options.by;
    diff.value = options.value;
    diff.side[MS_DIFF_BEFORE].path = argv[first];
    diff.side[MS_DIFF_AFTER].path = argv[first + 1];
    reports = ms_many_load(argv + first, 2);
    if (!reports)
        return MS_EXIT_USAGE;
    if (ms_diff_open(&diff, &reports[0], &reports[1], options.all_frames) < 0) {
        ms_cli_error("no memory for %s and %s", argv[first], argv[first + 1]);
    } else {
        status = diff_print(&options, &diff);
        ms_diff_close(&diff);
    }
    ms_many_close(reports, 2);
    return status;
}
