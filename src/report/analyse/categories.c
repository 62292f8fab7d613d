/* categories.c - see categories.h.
 *
 * Floor 4, command line only. */
#include "report/analyse/categories.h"

#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"

static const struct category_rule {
    const char *category, *file, *function;
} rules[] = {
#define MS_CATEGORY(category, file, function) {category, file, function},
#include "report/analyse/categories.def"
#undef MS_CATEGORY
};

/* The rule of a frame is the place of the first that fits it, or one of these. */
enum { NOT_LOOKED_AT = 0, FIRST_RULE = 1, NO_RULE = 255 };
_Static_assert(MS_ARRAY_LEN(rules) + FIRST_RULE < NO_RULE, "a byte holds them all");

unsigned char *ms_categories_open(const struct ms_report *report)
{
    return calloc(json_array_size(report->frames) + 1, 1);
}

static unsigned char category_classify(const json_t *frame)
{
    const char *function = ms_report_text(frame, "function"), *file = ms_report_text(frame, "file");
    bool is_python = !strcmp(ms_report_text(frame, "kind"), "python");

    for (size_t i = 0; i < MS_ARRAY_LEN(rules); i++) {
        if (is_python == (*rules[i].file != '\0') && strstr(file, rules[i].file) &&
            strstr(function, rules[i].function))
            return (unsigned char)(i + FIRST_RULE);
    }
    return NO_RULE;
}

const char *ms_category_of(const struct ms_report *report, unsigned char *known, json_int_t stack)
{
    unsigned char first = NO_RULE;
    json_t *frame;
    size_t row;

    for (size_t depth = 0;
         known && depth < MS_REPORT_DEPTH_MAX && (frame = ms_report_stack_next(report, &stack, &row)) != NULL;
         depth++) {
        if (known[row] == NOT_LOOKED_AT)
            known[row] = category_classify(frame);
        first = known[row] < first ? known[row] : first;
    }
    return first == NO_RULE ? NULL : rules[first - FIRST_RULE].category;
}
