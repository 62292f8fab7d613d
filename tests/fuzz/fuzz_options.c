/* Fuzz target: the variables. The input is a list of strings, each ended by a NUL: the first is the text of
 * MEMSHIM_CONFIG's file, the others are the environment. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/options/options.h"
#include "tests/fuzz/fuzz.h"

const char fuzz_name[] = "options";
enum { VARIABLES_MAX = 64 };

static void listen_to(void *arg, const char *line)
{
    (void)arg;
    if (!*line || strchr(line, '\n') || strlen(line) > 4096)
        abort();
}

/* Whatever was given, an option has a value that its row allows. */
static void check(enum ms_option_id id)
{
    const struct ms_option_info *info = ms_option_info(id);
    int64_t number = ms_option_int(id);
    long long low, high;

    if (strlen(ms_option_text(id)) >= 4096 || (!*ms_option_text(id) && *info->default_text))
        abort();
    if (ms_option_source(id) == MS_SOURCE_DEFAULT && strcmp(ms_option_text(id), info->default_text) != 0)
        abort();
    if (info->type == MS_TYPE_INT && sscanf(info->values, "%lld-%lld", &low, &high) == 2 &&
        (number < low || number > high))
        abort();
    if (info->type == MS_TYPE_SIZE && ms_option_size(id, UINT64_MAX) < ms_option_size(id, 0))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1), *variables[VARIABLES_MAX + 2] = {NULL}, config[128];
    size_t count = 0;

    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    size_t first = strlen(text);
    fuzz_file(data, first);
    snprintf(config, sizeof config, "MEMSHIM_CONFIG=%s", fuzz_path());
    variables[count++] = config;
    for (size_t at = first + 1; at < size && count < VARIABLES_MAX; at += strlen(text + at) + 1)
        variables[count++] = text + at;
    int complaints = ms_options_load(variables, listen_to, NULL);
    for (unsigned id = 0; id < MS_OPT_COUNT; id++)
        check(id);
    if (ms_options_load(variables, NULL, NULL) != complaints)
        abort();
    free(text);
    return 0;
}

size_t fuzz_seed(unsigned number, uint8_t *data, size_t max)
{
    static const char sound[] =
        "# a file\nMODE = track\nSTACK_DEPTH = 12\nLIMIT = 40%\nREPORT=x\n\0"
        "MEMSHIM_MODE=off\0MEMSHIM_KEEP=3G\0MEMSHIM_INCLUDE=^/usr/(bin|lib)/[a-z]+$\0"
        "MEMSHIM_TIMELINE=100\0MEMSHIM_STAKCS=fp\0MEMSHIM_LIMIT=none\0MEMSHIM_DIR=/tmp\0PATH=/bin\0";

    if (number > 0 || sizeof sound > max)
        return 0;
    memcpy(data, sound, sizeof sound);
    return sizeof sound;
}
