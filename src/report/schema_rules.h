/* schema_rules.h - between the two files that interpret a schema: schema.c reads it, schema_rules.c applies
 * its keywords.
 *
 * Floor 4, command line only; nobody else includes this. */
#ifndef MS_REPORT_SCHEMA_RULES_H
#define MS_REPORT_SCHEMA_RULES_H

#include <regex.h>

#include "base/compiler.h"
#include "report/schema.h"

#define MS_SCHEMA_PATTERNS_MAX 64

struct ms_schema_pattern {
    const json_t *text;
    regex_t compiled;
};

struct ms_schema_pass {
    const json_t *root;
    ms_schema_complaint_func_t complain; /* NULL while an alternative of oneOf is tried */
    void *arg;
    size_t complaints;
    int depth;
    char path[1024];
    struct ms_schema_pattern patterns[MS_SCHEMA_PATTERNS_MAX];
    size_t pattern_count;
};

/** Report one violation at the current path. */
void ms_schema_complain(struct ms_schema_pass *pass, const char *format, ...) MS_PRINTF(2, 3);
/** Descend by one step of the path; returns what ms_schema_leave() takes to come back. */
size_t ms_schema_enter(struct ms_schema_pass *pass, const char *format, ...) MS_PRINTF(2, 3);
void ms_schema_leave(struct ms_schema_pass *pass, size_t length);

/** Apply every keyword of `schema` to `value`. */
void ms_schema_apply(struct ms_schema_pass *pass, const json_t *schema, const json_t *value);
/** The compiled form of a "pattern", kept for the pass; NULL if it cannot be compiled. */
const regex_t *ms_schema_pattern_of(struct ms_schema_pass *pass, const json_t *rule);
/** The schema that a "$ref" names, or NULL. */
const json_t *ms_schema_referred(const struct ms_schema_pass *pass, const json_t *rule);

/** One keyword each: `rule` is its value in `schema`. Values of a type that a keyword is not about satisfy
 * it. */
typedef void ms_schema_rule_t(struct ms_schema_pass *pass, const json_t *schema, const json_t *rule,
                              const json_t *value);
ms_schema_rule_t ms_schema_type, ms_schema_required, ms_schema_properties, ms_schema_additional,
    ms_schema_property_names, ms_schema_prefix_items, ms_schema_items, ms_schema_enum, ms_schema_const,
    ms_schema_pattern, ms_schema_minimum, ms_schema_maximum, ms_schema_min_items, ms_schema_max_items,
    ms_schema_min_length, ms_schema_any_of, ms_schema_one_of, ms_schema_ref;

#endif
