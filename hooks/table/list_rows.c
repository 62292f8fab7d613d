/* list_rows.c - prints the rows of the .def files: for docs/user/hooks.md, and for tests that hold the rows
 * against headers and exports.
 *
 * A program of the build, not of the library. `list_rows` prints "interface symbol class outcome lookup
 * version per-thread" a line; `list_rows --markdown` prints docs/user/hooks.md. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct row {
    const char *api, *symbol, *class, *outcome, *lookup;
    int version, per_thread;
    const char *reason;
};

#define LOOKUP(name, version, per_thread) name, version, per_thread
#define MS_HOOK(result, symbol, params, args, class, outcome, look, reason, ...)                             \
    {FAMILY, #symbol, #class, #outcome, LOOKUP look, reason},
#define MS_HOOK0(result, symbol, class, outcome, look, reason, ...)                                          \
    {FAMILY, #symbol, #class, #outcome, LOOKUP look, reason},
#define MS_PASS(symbol, class, reason) {FAMILY, #symbol, #class, "PASSED", 0, 0, 0, reason},

static const struct row rows[] = {
#define FAMILY "cuda_driver"
#include "hooks/table/cuda_driver.def"
#undef FAMILY
#define FAMILY "cuda_driver"
#include "hooks/table/cuda_status.def"
#undef FAMILY
#define FAMILY "cuda_driver"
#include "hooks/table/cuda_uses.def"
#undef FAMILY
#define FAMILY "cuda_runtime"
#include "hooks/table/cuda_runtime.def"
#undef FAMILY
#define FAMILY "nccl"
#include "hooks/table/nccl.def"
#undef FAMILY
#define FAMILY "cupti"
#include "hooks/table/cupti.def"
#undef FAMILY
#define FAMILY "hip"
#include "hooks/table/hip.def"
#undef FAMILY
#define FAMILY "acl"
#include "hooks/table/acl.def"
#undef FAMILY
#define FAMILY "roctx"
#include "hooks/table/roctx.def"
#undef FAMILY
#define FAMILY "nvml"
#include "hooks/table/nvml.def"
#undef FAMILY
#define FAMILY "pytorch"
#include "hooks/table/pytorch.def"
#undef FAMILY
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

static const struct {
    const char *api, *title;
} families[] = {
#define MS_FAMILY_ROW(api, tag, title, ...) {#tag, title},
#include "hooks/table/families.def"
};
#define FAMILIES (sizeof(families) / sizeof(families[0]))

static unsigned list_rows_count(const char *api, const char *outcome)
{
    unsigned n = 0;

    for (size_t i = 0; i < ROWS; i++)
        n += strcmp(rows[i].api, api) == 0 && strcmp(rows[i].outcome, outcome) == 0;
    return n;
}

static bool has_rows(const char *api)
{
    return list_rows_count(api, "SERVED") + list_rows_count(api, "FOLLOWED") +
               list_rows_count(api, "PASSED") >
           0;
}

static void print_lower(const char *text)
{
    for (; *text; text++)
        putchar(*text >= 'A' && *text <= 'Z' ? *text + 32 : *text);
}

static void print_totals(void)
{
    puts("| interface | served | followed | passed | all |\n|---|---|---|---|---|");
    for (size_t f = 0; f < FAMILIES; f++) {
        if (!has_rows(families[f].api))
            continue;
        unsigned served = list_rows_count(families[f].api, "SERVED"),
                 followed = list_rows_count(families[f].api, "FOLLOWED"),
                 passed = list_rows_count(families[f].api, "PASSED");
        printf("| %s | %u | %u | %u | %u |\n", families[f].title, served, followed, passed,
               served + followed + passed);
    }
}

/* True if the two are rows of one interface, and it says the same of both functions. */
static bool list_rows_same(size_t i, size_t k)
{
    return strcmp(rows[i].api, rows[k].api) == 0 && strcmp(rows[i].class, rows[k].class) == 0 &&
           strcmp(rows[i].outcome, rows[k].outcome) == 0 && strcmp(rows[i].reason, rows[k].reason) == 0;
}

static void print_markdown(void)
{
    puts("# What is intercepted\n\n"
         "<!-- Made by hooks/list_rows --markdown from hooks/table/*.def; "
         "`scripts/generate docs` writes it anew. -->\n\n"
         "Every function of the vendors' interfaces that allocates, frees, maps, unmaps, imports, exports,\n"
         "registers or reports memory, or ends the life of what does. *Served*: answered from memshim's "
         "pool.\n"
         "*Followed*: answered by the vendor and recorded. *Passed*: no wrapper exists, the call goes "
         "straight\n"
         "to the vendor. Functions of which the same holds share a row.\n");
    print_totals();
    for (size_t f = 0; f < FAMILIES; f++) {
        if (!has_rows(families[f].api))
            continue;
        printf("\n## %s\n\n| function | class | outcome | reason |\n|---|---|---|---|\n", families[f].title);
        for (size_t i = 0; i < ROWS; i++) {
            if (strcmp(rows[i].api, families[f].api) != 0)
                continue;
            printf("%s`%s`", i > 0 && list_rows_same(i, i - 1) ? ", " : "| ", rows[i].symbol);
            if (i + 1 < ROWS && list_rows_same(i, i + 1))
                continue;
            printf(" | ");
            print_lower(rows[i].class);
            printf(" | ");
            print_lower(rows[i].outcome);
            printf(" | %s |\n", rows[i].reason);
        }
    }
}

static void print_plain(void)
{
    for (size_t i = 0; i < ROWS; i++)
        printf("%s %s %s %s %s %d %d\n", rows[i].api, rows[i].symbol, rows[i].class, rows[i].outcome,
               rows[i].lookup ? rows[i].lookup : "-", rows[i].version, rows[i].per_thread);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--markdown") == 0)
        print_markdown();
    else
        print_plain();
    return 0;
}
