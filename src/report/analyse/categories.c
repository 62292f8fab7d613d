/* categories.c - see categories.h.
 *
 * Floor 4, command line only. */
#include "report/analyse/categories.h"

#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "report/analyse/fold.h"

enum { TOO_MANY = MS_REPORT_DEPTH_MAX + 1, ANY }; /* of frames */

static const struct category_rule {
    const char *category, *file, *function;
    size_t strangers; /* how many frames of Python outside of PyTorch may be nearer to the allocation */
} rules[] = {
#define MS_CATEGORY(category, file, function)          {category, file, function, ANY},
#define MS_CATEGORY_NEAREST(category, file, strangers) {category, file, "", strangers},
#include "report/analyse/categories.def"
#undef MS_CATEGORY
#undef MS_CATEGORY_NEAREST
};

/* The rule of a frame is the place of the first that fits it, or one of these. */
enum { NOT_LOOKED_AT = 0, FIRST_RULE = 1, STRANGER = 254, NO_RULE = 255 };
_Static_assert(MS_ARRAY_LEN(rules) + FIRST_RULE < STRANGER, "a byte holds them all");

unsigned char *ms_categories_open(const struct ms_report *report)
{
    return calloc(json_array_size(report->frames) + 1, 1);
}

static unsigned char category_classify(const struct ms_report *report, const json_t *frame)
{
    const char *function = ms_report_text(frame, "function"), *file = ms_report_text(frame, "file");
    bool is_python = !strcmp(ms_report_text(frame, "kind"), "python");

    for (size_t i = 0; i < MS_ARRAY_LEN(rules); i++) {
        if (is_python == (*rules[i].file != '\0') && strstr(file, rules[i].file) &&
            strstr(function, rules[i].function))
            return *rules[i].category ? (unsigned char)(i + FIRST_RULE) : NO_RULE;
    }
    return is_python && !strstr(file, "/torch/") &&
                   (strstr(file, "-packages/") || ms_fold_is_own(report, frame))
               ? STRANGER
               : NO_RULE;
}

/* A rule that asks for a near frame is refused for the rest of a stack once one was too far, or another rule
 * was nearer: what a closure makes that an optimizer calls is not the optimizer's. */
const char *ms_category_of(const struct ms_report *report, unsigned char *known, json_int_t stack)
{
    unsigned char first = NO_RULE;
    size_t row, strangers = 0;
    json_t *frame;

    for (size_t depth = 0;
         known && depth < MS_REPORT_DEPTH_MAX && (frame = ms_report_stack_next(report, &stack, &row)) != NULL;
         depth++) {
        size_t allowed;

        if (known[row] == NOT_LOOKED_AT)
            known[row] = category_classify(report, frame);
        strangers += known[row] == STRANGER;
        if (known[row] == STRANGER || known[row] == NO_RULE)
            continue;
        allowed = rules[known[row] - FIRST_RULE].strangers;
        if (strangers <= allowed && known[row] < first)
            first = known[row];
        if (strangers > allowed || allowed == ANY)
            strangers = TOO_MANY;
    }
    return first == NO_RULE ? NULL : rules[first - FIRST_RULE].category;
}
