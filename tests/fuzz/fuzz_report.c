/* Fuzz target: a report, as every reading verb takes it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/consistent.h"
#include "report/read.h"
#include "report/schema.h"
#include "report/symbols.h"
#include "tests/fuzz/fuzz.h"

static void listen_to(void *arg, const char *path, const char *text)
{
    (void)arg;
    if (!*path || !*text)
        abort();
}

static void note(void *arg, const char *line)
{
    (void)arg;
    (void)line;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static json_t *schema;
    struct ms_symbol_places places = {NULL, NULL};
    struct ms_symbols_result result;
    struct ms_report report;
    json_t *frames[64];
    char error[4608];

    if (!schema)
        schema = ms_schema_of_report();
    fuzz_file(data, size);
    if (ms_report_read(fuzz_path(), &report, error, sizeof error) < 0)
        return 0;
    if (ms_schema_validate(schema, report.root, listen_to, NULL) == 0)
        ms_report_consistent(&report, listen_to, NULL);
    ms_report_stack(&report, (json_int_t)(size % 64), frames, 64);
    ms_report_leaked(&report, -1);
    ms_symbols_resolve(&report, &places, note, NULL, &result);
    ms_report_close(&report);
    return 0;
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
