/* cmd_flamegraph.c - memshim flamegraph: a flame graph of letters, root first, as wide as the terminal.
 *
 * Floor 5. A line for each depth; a node is as wide as its share. With colours a node is a stretch of one
 * colour, which its name decides; without, it begins with a bar. */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/screens/multi_report.h"
#include "cli/load.h"
#include "export/tree.h"
#include "report/text/text.h"
#include "report/analyse/view.h"

struct view {
    struct ms_model model;
    struct ms_tree tree;
};

/* A node's place in its line. */
struct cell {
    uint32_t node;
    size_t from, to; /* columns */
};

struct line {
    struct cell *cells;
    size_t count;
};

static int flamegraph_take(void *arg, int id, const char *value)
{
    return ms_cli_take_stacks(arg, id, value) < 0 ? -1 : 0;
}

static void flamegraph_close_view(void *arg)
{
    struct view *view = arg;

    ms_tree_close(&view->tree);
    ms_model_close(&view->model);
}

static int flamegraph_open_view(const struct ms_report *report, const void *arg, void *view_p)
{
    const struct ms_cli_stacks *options = arg;
    struct view *view = view_p;

    *view = (struct view){.tree = {.node_count = 0}};
    if (ms_model_open(&view->model, report, options->all_frames) < 0 ||
        ms_tree_open(&view->tree, &view->model, options->value, options->inverted) < 0) {
        flamegraph_close_view(view);
        return -1;
    }
    return 0;
}

static void flamegraph_sum_up(const void *arg, json_int_t figures[MS_MANY_FIGURES])
{
    const struct view *view = arg;

    figures[0] = (json_int_t)ms_tree_stacks(&view->tree);
}

/* Six shades of warm background, on which black can be read. */
static void paint(FILE *out, const char *name)
{
    static const unsigned char shades[] = {215, 216, 209, 222, 221, 214};
    unsigned hash = 0;

    for (; *name; name++)
        hash = hash * 31 + (unsigned char)*name;
    fprintf(out, "\033[30;48;5;%um", shades[hash % sizeof(shades)]);
}

static void flamegraph_put_cell(FILE *out, const struct ms_tree_node *node, size_t width, bool colour)
{
    size_t used = 1;

    if (colour)
        paint(out, node->name);
    fputc(colour ? ' ' : '|', out);
    if (width > 3)
        used += ms_text_cut(out, node->name, width - 1);
    for (; used < width; used++)
        fputc(colour ? ' ' : '-', out);
    fputs(colour ? "\033[0m" : "", out);
}

static void flamegraph_put_line(FILE *out, const struct ms_tree *tree, const struct line *line, bool colour)
{
    size_t column = 0;

    for (size_t i = 0; i < line->count; i++) {
        const struct cell *cell = &line->cells[i];

        fprintf(out, "%*s", (int)(cell->from - column), "");
        flamegraph_put_cell(out, &tree->nodes[cell->node], cell->to - cell->from, colour);
        column = cell->to;
    }
    fputc('\n', out);
}

/* The children of a line's nodes; those of less than half a column are left out. A node's children take their
 * places from its left edge on, so that rounding never lets one stand above somebody else's. */
static struct line next_line(const struct ms_tree *tree, const struct line *above, size_t width)
{
    struct line line = {.cells = calloc(width + 1, sizeof(*line.cells))};
    double scale = (double)width / (double)(tree->nodes[0].total > 0 ? tree->nodes[0].total : 1);

    for (size_t i = 0; line.cells && i < above->count; i++) {
        const struct ms_tree_node *parent = &tree->nodes[above->cells[i].node];
        double at = (double)above->cells[i].from;
        size_t from = above->cells[i].from;

        for (uint32_t k = 0; k < parent->count && from < above->cells[i].to; k++) {
            uint32_t node = tree->children[parent->first + k];
            size_t to;

            at += scale * (double)tree->nodes[node].total;
            to = (size_t)(at + 0.5);
            to = to > above->cells[i].to ? above->cells[i].to : to;
            if (to <= from)
                break;
            line.cells[line.count++] = (struct cell){node, from, to};
            from = to;
        }
    }
    return line;
}

static void flamegraph_print_text(FILE *out, const struct ms_report *report, const void *arg,
                                  const void *more)
{
    const struct ms_cli_stacks *options = more;
    const struct view *view = arg;
    size_t width = ms_text_width(out);
    struct cell all = {.node = 0, .from = 0, .to = width};
    struct line line = {.cells = &all, .count = 1}, below;
    json_int_t total = view->tree.nodes[0].total;

    ms_view_print(out, report, "");
    fprintf(out, "%s: ", ms_value_names[options->value].title);
    if (options->value == MS_VALUE_COUNT)
        fprintf(out, "%" JSON_INTEGER_FORMAT "\n", total);
    else
        fprintf(out, "%s\n", ms_text_size(total).text);
    while (line.count) {
        below = next_line(&view->tree, &line, width);
        if (below.count)
            flamegraph_put_line(out, &view->tree, &below, ms_text_bold(out));
        if (line.cells != &all)
            free(line.cells);
        line = below;
    }
    if (line.cells != &all)
        free(line.cells);
}

int ms_cmd_flamegraph(int argc, char **argv)
{
    static const struct ms_many_verb verb = {.view_bytes = sizeof(struct view),
                                             .open = flamegraph_open_view,
                                             .close = flamegraph_close_view,
                                             .figures = flamegraph_sum_up,
                                             .columns = {{"stacks", MS_FIGURE_COUNT}},
                                             .after_path = ":\n",
                                             .text = flamegraph_print_text};
    struct ms_cli_stacks options = {.value = MS_VALUE_PEAK};

    return ms_many_run(argc, argv, flamegraph_take, &options.printing, &verb, &options);
}
