/* cmd_tree.c - memshim tree: the stacks that hold memory, laid over each other.
 *
 * Floor 5. */
#include <stdlib.h>

#include "cli/cli.h"
#include "cli/load.h"
#include "cli/screens/multi_report.h"
#include "export/tree.h"
#include "report/text/text.h"
#include "report/analyse/view.h"

struct tree_options {
    struct ms_cli_stacks stacks;
    long top;
};

struct view {
    struct ms_model model;
    struct ms_tree tree;
    bool *shown; /* by node */
};

static int tree_take(void *arg, int id, const char *value)
{
    struct tree_options *options = arg;
    int taken = ms_cli_take_stacks(&options->stacks, id, value);

    if (taken)
        return taken < 0 ? -1 : 0;
    return ms_cli_number("--top", value, 1, 1000000, &options->top);
}

static void tree_close_view(void *arg)
{
    struct view *view = arg;

    free(view->shown);
    ms_tree_close(&view->tree);
    ms_model_close(&view->model);
}

static int tree_open_view(const struct ms_report *report, const void *arg, void *view_p)
{
    const struct tree_options *options = arg;
    struct view *view = view_p;

    *view = (struct view){.shown = NULL};
    if (ms_model_open(&view->model, report, options->stacks.all_frames) < 0 ||
        ms_tree_open(&view->tree, &view->model, options->stacks.value, options->stacks.inverted) < 0 ||
        !(view->shown = calloc(view->tree.node_count, sizeof(*view->shown))) ||
        ms_tree_heaviest(&view->tree, (size_t)options->top + 1, view->shown) < 0) {
        tree_close_view(view);
        return -1;
    }
    return 0;
}

static void tree_sum_up(const void *arg, json_int_t figures[MS_MANY_FIGURES])
{
    const struct view *view = arg;

    figures[0] = (json_int_t)ms_tree_stacks(&view->tree);
}

/* The node that comes after this one when a tree is told from top to bottom, or 0. `place`: the places among
 * their siblings of those above it, by depth. */
static uint32_t next_node(const struct view *view, uint32_t node, uint32_t *place, bool down)
{
    const struct ms_tree *tree = &view->tree;

    if (down && tree->nodes[node].count) {
        place[tree->nodes[node].depth] = 0;
        return tree->children[tree->nodes[node].first];
    }
    while (node) {
        const struct ms_tree_node *parent = &tree->nodes[tree->nodes[node].parent];
        uint32_t *at = &place[parent->depth];

        if (++*at < parent->count)
            return tree->children[parent->first + *at];
        node = tree->nodes[node].parent;
    }
    return 0;
}

static json_t *nodes_json(const struct view *view)
{
    uint32_t *place = calloc(view->tree.node_count + 1, sizeof(*place)), node = 0;
    json_t *rows = json_array();

    while (place && (node = next_node(view, node, place, view->shown[node])) != 0) {
        const struct ms_tree_node *told = &view->tree.nodes[node];

        if (view->shown[node])
            json_array_append_new(rows,
                                  json_pack("{s:I, s:s, s:I, s:I}", "depth", (json_int_t)told->depth, "name",
                                            told->name, "total", told->total, "self", told->self));
    }
    free(place);
    return rows;
}

static json_t *tree_report_json(const char *path, const struct ms_report *report, const void *arg,
                                const void *more)
{
    const struct tree_options *options = more;
    const struct view *view = arg;
    json_t *object =
        json_pack("{s:s, s:s, s:b, s:I, s:o}", "file", path, "value",
                  ms_value_names[options->stacks.value].name, "inverted", (int)options->stacks.inverted,
                  "total", view->tree.nodes[0].total, "nodes", nodes_json(view));

    ms_cli_set_view(object, report);
    return object;
}

static void print_weight(FILE *out, json_int_t weight, enum ms_value value)
{
    if (value == MS_VALUE_COUNT)
        fprintf(out, "%10" JSON_INTEGER_FORMAT, weight);
    else
        fprintf(out, "%10s", ms_text_size(weight).text);
}

/* "  12.0 MiB  10.0%" and blanks up to where the name goes, at most half of the width. */
static size_t print_left(FILE *out, json_int_t weight, json_int_t whole, const struct tree_options *options,
                         size_t depth, size_t width)
{
    size_t indent = depth < width / 4 ? 2 * depth : width / 2;

    print_weight(out, weight, options->stacks.value);
    fprintf(out, " %5.1f%%  %*s", whole > 0 ? 100.0 * (double)weight / (double)whole : 0.0, (int)indent, "");
    return 19 + indent;
}

/* The children of a node that are not shown, on a line of their own. */
static void print_rest(FILE *out, const struct view *view, uint32_t node, const struct tree_options *options,
                       size_t width)
{
    const struct ms_tree_node *parent = &view->tree.nodes[node];
    json_int_t rest = 0;
    size_t left = 0;

    for (uint32_t k = 0; k < parent->count; k++) {
        uint32_t child = view->tree.children[parent->first + k];

        if (view->shown[child])
            continue;
        rest = ms_report_sum(rest, view->tree.nodes[child].total);
        left++;
    }
    if (!left)
        return;
    print_left(out, rest, view->tree.nodes[0].total, options, parent->depth, width);
    fprintf(out, "... %zu more\n", left);
}

static void print_node(FILE *out, const struct view *view, uint32_t node, const struct tree_options *options,
                       size_t width)
{
    const struct ms_tree_node *told = &view->tree.nodes[node];
    bool bold = ms_text_bold(out) && told->self;
    size_t used = print_left(out, told->total, view->tree.nodes[0].total, options, told->depth - 1, width);

    fputs(bold ? "\033[1m" : "", out);
    ms_text_cut(out, told->name, width > used + 8 ? width - used : 8);
    fputs(bold ? "\033[0m\n" : "\n", out);
}

static void tree_print_text(FILE *out, const struct ms_report *report, const void *arg, const void *more)
{
    const struct tree_options *options = more;
    const struct view *view = arg;
    size_t width = ms_text_width(out);
    uint32_t *place = calloc(view->tree.node_count + 1, sizeof(*place)), node = 0, before = 0;

    ms_view_print(out, report, "");
    fprintf(out, "%s: ", ms_value_names[options->stacks.value].title);
    if (options->stacks.value == MS_VALUE_COUNT)
        fprintf(out, "%" JSON_INTEGER_FORMAT "\n", view->tree.nodes[0].total);
    else
        fprintf(out, "%s\n", ms_text_size(view->tree.nodes[0].total).text);
    while (place && (node = next_node(view, node, place, view->shown[node])) != 0) {
        if (view->shown[node])
            print_node(out, view, node, options, width);
        else if (before != view->tree.nodes[node].parent + 1)
            print_rest(out, view, view->tree.nodes[node].parent, options, width);
        before = view->shown[node] ? 0 : view->tree.nodes[node].parent + 1;
    }
    free(place);
}

int ms_cmd_tree(int argc, char **argv)
{
    static const struct ms_many_verb verb = {.view_bytes = sizeof(struct view),
                                             .open = tree_open_view,
                                             .close = tree_close_view,
                                             .figures = tree_sum_up,
                                             .json = tree_report_json,
                                             .columns = {{"stacks", MS_FIGURE_COUNT}},
                                             .after_path = ":\n",
                                             .text = tree_print_text};
    struct tree_options options = {.top = 60, .stacks = {.value = MS_VALUE_PEAK}};

    return ms_many_run(argc, argv, tree_take, &options.stacks.printing, &verb, &options);
}
