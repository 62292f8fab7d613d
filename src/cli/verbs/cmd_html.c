/* cmd_html.c - memshim html: reports as one page for a browser.
 *
 * Floor 5. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/load.h"
#include "cli/screens/suppress.h"
#include "cli/torch/what_if.h"
#include "html/page.h"
#include "report/analyse/analyse.h"
#include "report/analyse/contexts_others.h"
#include "report/read/layer.h"

static int html_take(void *arg, int id, const char *value)
{
    return ms_cli_take_stacks(arg, id, value) < 0 ? -1 : 0;
}

struct page {
    FILE *out;
    char **paths;
    int count;
    bool all_frames, blocks; /* blocks: the page begins with them, also where there are tensors */
    struct ms_report *kept;  /* of each path the report that cannot be read again */
    json_t *index, *least;   /* owned */
};

static bool can_be_read_again(const char *path)
{
    struct stat st;

    return strcmp(path, "-") != 0 && stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* Contexts take the same on cards of one model, so all reports are asked before the first is told. 0, or -1
 * after an error line. */
static int ask_all(struct page *page)
{
    for (int i = 0; page->count > 1 && i < page->count; i++) {
        struct ms_report report;

        if (ms_cli_read(page->paths[i], &report) < 0)
            return -1;
        ms_contexts_least(page->least, &report);
        if (can_be_read_again(page->paths[i]))
            ms_report_close(&report);
        else
            page->kept[i] = report;
    }
    return 0;
}

static int put_layer(struct page *page, const char *path, const struct ms_report *report)
{
    struct ms_model model;
    int status;

    if (ms_model_open(&model, report, page->all_frames) < 0)
        return -1;
    status = ms_html_page_put(page->out, path, &model, page->index);
    ms_model_close(&model);
    return status;
}

/* Both layers of a report that has tensors, first the one with which the page begins; rows of the list say
 * that they are of one report. The findings are those of both, in either. */
static int put_layers(struct page *page, const char *path, const struct ms_report *report)
{
    size_t first = json_array_size(page->index);
    struct ms_report inner;
    int status;

    if (!ms_report_has_inner(report))
        return put_layer(page, path, report);
    if (!ms_report_open_inner(report, &inner))
        return -1;
    ms_report_annotate(&inner, page->least);
    json_object_set(inner.root, "findings", json_object_get(report->root, "findings"));
    json_object_set(inner.root, "what_if", json_object_get(report->root, "what_if"));
    status = put_layer(page, path, page->blocks ? report : &inner);
    if (status == 0)
        status = put_layer(page, path, page->blocks ? &inner : report);
    for (size_t i = first; i < json_array_size(page->index); i++)
        json_object_set_new(json_array_get(page->index, i), "of", json_integer((json_int_t)first));
    ms_report_close(&inner);
    return status;
}

/* One report at a time is in memory; the last one stays until the process ends, as to give millions of values
 * back takes a while. 0, or -1 after an error line. */
static int put_report(struct page *page, int i)
{
    static struct ms_report report;
    const char *path = page->paths[i];
    json_t *what_if;
    int status;

    if (report.root)
        ms_report_close(&report);
    if (page->kept[i].root)
        report = page->kept[i];
    else if (ms_cli_read(path, &report) < 0)
        return -1;
    ms_cli_tell(path, &report, page->least);
    what_if = ms_torch_what_if_run(&report);
    if (what_if)
        json_object_set_new(report.root, "what_if", what_if);
    status = put_layers(page, path, &report);
    if (status < 0)
        ms_cli_error("no memory for %s", path);
    return status;
}

static int put_all(struct page *page)
{
    int done = 0;

    ms_html_page_begin(page->out);
    while (done < page->count && put_report(page, done) == 0)
        done++;
    if (done < page->count)
        return -1;
    if (ms_html_page_end(page->out, page->index) == 0)
        return 0;
    ms_cli_error("no memory for the page");
    return -1;
}

static int put_page(FILE *out, char **paths, int count, bool all_frames, bool blocks)
{
    struct page page = {out,          paths,        count,
                        all_frames,   blocks,       calloc((size_t)count, sizeof(struct ms_report)),
                        json_array(), json_object()};
    int status = -1;

    if (!page.kept || !page.index || !page.least)
        ms_cli_error("no memory for the page");
    else if (ms_suppress_load() == 0 && ask_all(&page) == 0)
        status = put_all(&page);
    free(page.kept);
    json_decref(page.index);
    json_decref(page.least);
    return status;
}

int ms_cmd_html(int argc, char **argv)
{
    struct ms_cli_stacks options = {.all_frames = false};
    int first = ms_cli_parse(argc, argv, false, html_take, &options);
    bool blocks = ms_cli_layer == MS_CLI_BLOCKS;
    FILE *out;

    if (first < 0)
        return ms_cli_parse_status(first);
    ms_cli_layer = MS_CLI_BLOCKS; /* both are written, of the report as it is */
    if (first == argc) {
        ms_cli_error("no report given; usage: memshim html REPORT... -o PAGE.html");
        return MS_EXIT_USAGE;
    }
    if (!options.printing.output && isatty(STDOUT_FILENO)) {
        ms_cli_error("a page is nothing for a terminal; give -o PAGE.html");
        return MS_EXIT_USAGE;
    }
    out = ms_cli_open_output(options.printing.output, options.printing.force);
    if (!out)
        return MS_EXIT_USAGE;
    if (put_page(out, argv + first, argc - first, options.all_frames, blocks) == 0)
        return ms_cli_close_output(out);
    ms_cli_discard_output(out);
    return MS_EXIT_USAGE;
}
