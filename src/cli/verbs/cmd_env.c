/* cmd_env.c - memshim env: every variable, its value here, where that comes from, and what is allowed.
 *
 * Floor 5. Everything comes from the rows of options.def; docs/user/environment.md and memshim-env(1) are
 * this verb's output. */
#include <ctype.h>
#include <string.h>

#include "base/options/options.h"
#include "cli/cli.h"
#include "cli/load.h"
#include "report/text/text.h"

extern char **environ;

enum form { FORM_TEXT, FORM_JSON, FORM_MARKDOWN, FORM_MAN };

static int env_take(void *arg, int id, const char *value)
{
    (void)value;
    *(enum form *)arg = id == 'j' ? FORM_JSON : id == 'm' ? FORM_MARKDOWN : FORM_MAN;
    return 0;
}

static const char *const sources[] = {"default", "environment", "file"};
static const char *const effects[] = {"now", "pool", "stacks", "ledger"};
static const char *const effect_texts[] = {
    NULL,
    "checked today; acts once memory is served from a pool",
    "checked today; acts once stacks carry Python frames",
    "checked today; acts once the ledger is a file",
};

/* The values that an option takes, for people. */
static const char *allowed(const struct ms_option_info *info, char *text, size_t bytes)
{
    char words[96];
    size_t i, used = 0;

    for (i = 0; info->values[i] && used + 3 < sizeof(words); i++) {
        words[used++] = info->values[i] == '|' ? ',' : info->values[i];
        if (info->values[i] == '|')
            words[used++] = ' ';
    }
    words[used] = '\0';
    switch (info->type) {
    case MS_TYPE_ENUM:
        snprintf(text, bytes, "%s", words);
        break;
    case MS_TYPE_INT:
        snprintf(text, bytes, "a whole number, %s", words);
        break;
    case MS_TYPE_SIZE:
        snprintf(
            text, bytes,
            "a size: a number with K, M, G, T (1.5G, 1GB and 1GiB too), or %% of the device's memory%s%s",
            used ? "; or " : "", words);
        break;
    case MS_TYPE_SHARE:
        snprintf(text, bytes,
                 "a size: a number with K, M, G, T (1.5G, 1GB and 1GiB too), or %% of live memory%s%s",
                 used ? "; or " : "", words);
        break;
    case MS_TYPE_BYTES:
        snprintf(text, bytes,
                 "a size: a number with K, M, G, T (1.5G, 1GB and 1GiB too), %.*s at least; or%s",
                 (int)strcspn(words, ","), words, words + strcspn(words, ",") + 1);
        break;
    case MS_TYPE_PAIR:
        snprintf(text, bytes, "one size or two, LEAST/MOST: as above, or %% of the device's memory");
        break;
    case MS_TYPE_PATH:
        snprintf(text, bytes, "a path%s%s", used ? ", or " : "", words);
        break;
    case MS_TYPE_REGEX:
        snprintf(text, bytes, "an extended regular expression");
        break;
    case MS_TYPE_STRING:
        snprintf(text, bytes, "a text");
        break;
    }
    return text;
}

static const char *or_unset(const char *text)
{
    return *text ? text : "(not set)";
}

static void env_print_text(void)
{
    char text[256];
    int id;

    for (id = 0; id < MS_OPT_COUNT; id++) {
        const struct ms_option_info *info = ms_option_info((enum ms_option_id)id);
        enum ms_option_source source = ms_option_source((enum ms_option_id)id);

        printf("MEMSHIM_%s = ", info->name);
        ms_text_put(stdout, or_unset(ms_option_text((enum ms_option_id)id)));
        if (source == MS_SOURCE_DEFAULT)
            printf("  [default]\n");
        else
            printf("  [%s; default %s]\n", sources[source], or_unset(info->default_text));
        printf("    %s\n    allowed: %s\n", info->text, allowed(info, text, sizeof(text)));
        if (effect_texts[info->effect])
            printf("    %s\n", effect_texts[info->effect]);
    }
}

static void print_json(void)
{
    json_t *array = json_array();
    char text[256];
    int id;

    for (id = 0; id < MS_OPT_COUNT; id++) {
        const struct ms_option_info *info = ms_option_info((enum ms_option_id)id);
        char name[64];

        snprintf(name, sizeof(name), "MEMSHIM_%s", info->name);
        json_array_append_new(array,
                              json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "name", name, "value",
                                        ms_option_text((enum ms_option_id)id), "source",
                                        sources[ms_option_source((enum ms_option_id)id)], "default",
                                        info->default_text, "allowed", allowed(info, text, sizeof(text)),
                                        "effect", effects[info->effect], "text", info->text));
    }
    ms_cli_print_json(stdout, array);
}

static void env_put_cell(const char *text)
{
    for (; *text; text++) {
        if (*text == '|')
            putchar('\\');
        putchar(*text);
    }
}

static void print_markdown(void)
{
    char text[256];
    int id;

    printf(
        "# Variables\n\n"
        "<!-- Made by `memshim env --markdown` from src/base/options/options.def; a test holds this page "
        "against "
        "it. -->\n\n"
        "Sizes take K, M, G, T, alone or with B or iB (all powers of 1024), a fraction such as `1.5G`,\n"
        "or `%%` of the device's memory. A file (MEMSHIM_CONFIG) has names in any case. An unknown\n"
        "`MEMSHIM_*` or a bad value gets one line on standard error that names it and what is allowed, and\n"
        "the default is used; `memshim run` refuses to start instead (exit 2). `memshim env` prints the\n"
        "values in force and where each comes from. A number of bytes without a unit that is less than 1M "
        "gets\n"
        "a line too, which names the unit that is likely meant.\n\n"
        "| name | default | allowed | meaning |\n|---|---|---|---|\n");
    for (id = 0; id < MS_OPT_COUNT; id++) {
        const struct ms_option_info *info = ms_option_info((enum ms_option_id)id);

        printf("| MEMSHIM_%s | ", info->name);
        if (*info->default_text)
            printf("`%s`", info->default_text);
        printf(" | ");
        env_put_cell(allowed(info, text, sizeof(text)));
        printf(" | ");
        env_put_cell(info->text);
        printf(" |\n");
    }
}

/* A line of text for roff: a leading dot or quote would be a request, a backslash an escape, a minus a
 * hyphen. */
static void put_roff(const char *text)
{
    if (*text == '.' || *text == '\'')
        fputs("\\&", stdout);
    for (; *text; text++) {
        if (*text == '\\')
            fputs("\\e", stdout);
        else if (*text == '-')
            fputs("\\-", stdout);
        else
            putchar(*text);
    }
}

static void print_man(void)
{
    char text[256];
    int id;

    for (id = 0; id < MS_OPT_COUNT; id++) {
        const struct ms_option_info *info = ms_option_info((enum ms_option_id)id);

        printf(".TP\n.B MEMSHIM_%s\n", info->name);
        put_roff(info->text);
        printf("\n.br\nAllowed: ");
        put_roff(allowed(info, text, sizeof(text)));
        printf(".\n");
        if (*info->default_text) {
            printf("Default: ");
            put_roff(info->default_text);
            putchar('\n');
        }
        if (effect_texts[info->effect])
            printf("(%s)\n", effect_texts[info->effect]);
    }
}

static void env_complain(void *arg, const char *line)
{
    (void)arg;
    ms_cli_error("%s", line);
}

int ms_cmd_env(int argc, char **argv)
{
    enum form form = FORM_TEXT;
    int first = ms_cli_parse(argc, argv, false, env_take, &form);
    int complaints, status;

    if (first < 0)
        return ms_cli_parse_status(first);
    if (first < argc) {
        ms_cli_error("takes no operand, got '%s'", argv[first]);
        return MS_EXIT_USAGE;
    }
    complaints = ms_options_load(environ, env_complain, NULL);
    switch (form) {
    case FORM_TEXT:
        env_print_text();
        break;
    case FORM_JSON:
        print_json();
        break;
    case FORM_MARKDOWN:
        print_markdown();
        break;
    case FORM_MAN:
        print_man();
        break;
    }
    status = ms_cli_close_output(stdout);
    return complaints ? MS_EXIT_USAGE : status;
}
