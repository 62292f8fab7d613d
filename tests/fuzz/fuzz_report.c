/* Fuzz target: a report, as the verbs summary, leaks and validate take it, and as its frames get names. Most
 * changes are of its values, not of its letters, so that they get behind the parser, which is held to what
 * jansson's own makes of the same text. Files that a report names are not opened: names come from resolver.c.
 * A report that is valid must be so still when its frames have names. */
#include "config.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "report/analyse/consistent.h"
#include "report/read/parse.h"
#include "report/symbols/symbols.h"
#include "tests/fuzz/fuzz.h"

const char fuzz_name[] = "report";

static void run(const char *verb, const char *argument)
{
    char *path = (char *)fuzz_path();
    char *argv[] = {(char *)verb, (char *)argument, path, NULL};

    if (!argument)
        argv[1] = path, argv[2] = NULL;
    ms_verb_find(verb)->run(argument ? 3 : 2, argv);
}

static void ignore(void *arg, const char *path, const char *text)
{
    (void)arg;
    (void)path;
    (void)text;
}

static size_t violations(const struct ms_report *report)
{
    return ms_report_consistent(report, ignore, NULL);
}

static void name_frames(void)
{
    struct ms_symbol_places places = {NULL, NULL};
    struct ms_symbols_result result;
    struct ms_report report;
    char error[4608];
    bool valid;

    if (ms_report_read(fuzz_path(), &report, error, sizeof error) < 0)
        return;
    valid = violations(&report) == 0;
    ms_symbols_resolve(&report, &places, NULL, NULL, &result);
    if (result.resolved > result.frames || (valid && violations(&report) != 0))
        abort();
    ms_report_close(&report);
}

/* What the verbs print is of no interest, and there is much of it; a sanitizer writes to the descriptor. */
static void run_verbs(void)
{
    static FILE *nowhere;
    FILE *out = stdout, *error = stderr;

    if (!nowhere && !(nowhere = fopen("/dev/null", "we")))
        abort();
    stdout = stderr = nowhere;
    run("validate", NULL);
    run("summary", NULL);
    run("summary", "--json");
    run("leaks", NULL);
    run("leaks", "--json");
    stdout = out;
    stderr = error;
}

/* Whether a text has what yajl takes and jansson does not: half of a pair of surrogates, which becomes a
 * question mark, and two more characters between tokens. */
static bool may_differ(const uint8_t *data, size_t size)
{
    return memchr(data, '\v', size) || memchr(data, '\f', size) || memmem(data, size, "\\u", 2);
}

/* Our reader takes what jansson's parser takes, and makes the same of it; but for a byte 0 behind a number,
 * which jansson passes over. */
static void compare_parsers(const uint8_t *data, size_t size)
{
    bool has_zero = memchr(data, 0, size) != NULL;
    struct ms_parse_fault fault;
    json_t *ours = ms_parse_text((const char *)data, size, &fault);
    json_t *theirs = json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, NULL);

    if ((!ours && theirs && !has_zero) || (ours && theirs && !json_equal(ours, theirs)) ||
        (ours && !theirs && !may_differ(data, size)))
        abort();
    json_decref(ours);
    json_decref(theirs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    compare_parsers(data, size);
    fuzz_file(data, size);
    name_frames();
    run_verbs();
    return 0;
}

static json_t *make_value(unsigned random)
{
    static const json_int_t numbers[] = {0,         1,         -1,        2,         3,         255,
                                         INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, UINT32_MAX};
    static const char *const texts[] = {
        "",       "0x1",  "0xffffffffffffffff",  "native", "suppressed", "growing", "\x1b[31m",
        "\u202e", "cuda", "99999999999999999999"};

    switch (random % 8) {
    case 0:
        return json_null();
    case 1:
        return json_boolean(random & 8);
    case 2:
        return json_string(texts[random / 8 % MS_ARRAY_LEN(texts)]);
    case 3:
        return random & 8 ? json_array() : json_object();
    case 4:
        return json_real((double)random * 1e300);
    case 5:
        return json_integer(random / 8 % 64);
    default:
        return json_integer(numbers[random / 8 % MS_ARRAY_LEN(numbers)]);
    }
}

/* One change somewhere below `value`: an element or member is replaced, removed, or put in another's
 * place. */
static void change(json_t *value, unsigned *state)
{
    unsigned random = (unsigned)rand_r(state);
    size_t count = json_is_array(value) ? json_array_size(value) : json_object_size(value), at;
    void *member = json_object_iter(value);
    json_t *child;

    if (!count)
        return;
    at = random % count;
    for (size_t i = 0; i < at && member; i++)
        member = json_object_iter_next(value, member);
    child = json_is_array(value) ? json_array_get(value, at) : json_object_iter_value(member);
    if ((json_is_array(child) || json_is_object(child)) && rand_r(state) % 8) {
        change(child, state);
        return;
    }
    random = (unsigned)rand_r(state);
    if (json_is_array(value)) {
        if (random % 8 == 0)
            json_array_remove(value, at);
        else if (random % 8 == 1)
            json_array_insert_new(value, random / 8 % count, json_deep_copy(child));
        else if (json_is_integer(child) && random % 8 < 5)
            json_integer_set(child,
                             (json_int_t)((uint64_t)json_integer_value(child) + (random & 1 ? 1u : -1u)));
        else
            json_array_set_new(value, at, make_value(random / 8));
    } else if (random % 8 == 0) {
        json_object_del(value, json_object_iter_key(member));
    } else if (json_is_integer(child) && random % 8 < 4) {
        json_integer_set(child, (json_int_t)((uint64_t)json_integer_value(child) + (random & 1 ? 1u : -1u)));
    } else {
        json_object_iter_set_new(value, member, make_value(random / 8));
    }
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    json_t *root = seed % 8 ? json_loadb((const char *)data, size, JSON_ALLOW_NUL, NULL) : NULL;
    size_t length;

    if (!root)
        return LLVMFuzzerMutate(data, size, max_size);
    for (unsigned i = 0; i <= seed / 8 % 4; i++)
        change(root, &seed);
    length = json_dumpb(root, (char *)data, max_size, JSON_COMPACT);
    json_decref(root);
    return length && length <= max_size ? length : LLVMFuzzerMutate(data, size, max_size);
}

size_t fuzz_seed(unsigned number, uint8_t *data, size_t max)
{
    const char *top = getenv("top_srcdir");
    char path[4096];
    FILE *file;
    size_t size;

    snprintf(path, sizeof path, "%s/tests/cli/data/train.json", top ? top : ".");
    file = number == 0 ? fopen(path, "r") : NULL;
    if (!file)
        return 0;
    size = fread(data, 1, max, file);
    fclose(file);
    return size;
}
