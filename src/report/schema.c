/* schema.c - a JSON value held against a JSON Schema; see schema.h.
 *
 * Floor 4, command line only. Each keyword is one row of a table: how to check that the schema spells it
 * right, and how to apply it (schema_rules.c). The path to the value in hand is kept in one buffer of the
 * pass. */
#include "report/schema_rules.h"

#include <stdbool.h>
#include <string.h>

#include "base/compiler.h"

#define DEPTH_MAX 64 /* nesting of schemas; a $ref that refers to itself ends there */

typedef void (*check_func_t)(struct ms_schema_pass *pass, const json_t *rule);

static void check(struct ms_schema_pass *pass, const json_t *schema);

static void check_names(struct ms_schema_pass *pass, const json_t *rule)
{
    json_t *name;
    size_t i;

    if (!json_is_array(rule))
        ms_schema_complain(pass, "is no array of names");
    json_array_foreach (rule, i, name)
        if (!json_is_string(name))
            ms_schema_complain(pass, "holds something that is no name");
}

static void check_type(struct ms_schema_pass *pass, const json_t *rule)
{
    if (!json_is_string(rule))
        check_names(pass, rule);
}

static void check_schemas(struct ms_schema_pass *pass, const json_t *rule)
{
    const char *name;
    json_t *schema;
    size_t i, length;

    if (!json_is_object(rule) && !json_is_array(rule))
        ms_schema_complain(pass, "holds no schemas");
    json_object_foreach ((json_t *)rule, name, schema) {
        length = ms_schema_enter(pass, ".%s", name);
        check(pass, schema);
        ms_schema_leave(pass, length);
    }
    json_array_foreach (rule, i, schema) {
        length = ms_schema_enter(pass, "[%zu]", i);
        check(pass, schema);
        ms_schema_leave(pass, length);
    }
}

static void check_schema_or_boolean(struct ms_schema_pass *pass, const json_t *rule)
{
    if (!json_is_boolean(rule))
        check(pass, rule);
}

static void check_array(struct ms_schema_pass *pass, const json_t *rule)
{
    if (!json_array_size(rule))
        ms_schema_complain(pass, "is no list of values");
}

static void check_number(struct ms_schema_pass *pass, const json_t *rule)
{
    if (!json_is_number(rule))
        ms_schema_complain(pass, "is no number");
}

static void check_count(struct ms_schema_pass *pass, const json_t *rule)
{
    if (!json_is_integer(rule) || json_integer_value(rule) < 0)
        ms_schema_complain(pass, "is no count");
}

/* Classes such as \d are not POSIX and would match the letter. */
static void check_pattern(struct ms_schema_pass *pass, const json_t *rule)
{
    const char *text = json_string_value(rule), *escape;

    if (!text || !ms_schema_pattern_of(pass, rule)) {
        ms_schema_complain(pass, "is no extended regular expression");
        return;
    }
    for (escape = strchr(text, '\\'); escape; escape = strchr(escape + 2, '\\'))
        if (!escape[1] || !strchr(".[]{}()*+?^$|\\/", escape[1]))
            ms_schema_complain(pass, "has an escape that POSIX expressions do not know");
}

static void check_ref(struct ms_schema_pass *pass, const json_t *rule)
{
    if (!ms_schema_referred(pass, rule))
        ms_schema_complain(pass, "refers to nothing under #/$defs/");
}

static void check_nothing(struct ms_schema_pass *pass, const json_t *rule)
{
    (void)pass, (void)rule;
}

static const struct keyword {
    const char *name;
    check_func_t check;
    ms_schema_rule_t *apply; /* NULL: says nothing about values */
} keywords[] = {
    {"type", check_type, ms_schema_type},
    {"required", check_names, ms_schema_required},
    {"properties", check_schemas, ms_schema_properties},
    {"additionalProperties", check_schema_or_boolean, ms_schema_additional},
    {"propertyNames", check, ms_schema_property_names},
    {"items", check_schema_or_boolean, ms_schema_items},
    {"prefixItems", check_schemas, ms_schema_prefix_items},
    {"enum", check_array, ms_schema_enum},
    {"const", check_nothing, ms_schema_const},
    {"pattern", check_pattern, ms_schema_pattern},
    {"minimum", check_number, ms_schema_minimum},
    {"maximum", check_number, ms_schema_maximum},
    {"minItems", check_count, ms_schema_min_items},
    {"maxItems", check_count, ms_schema_max_items},
    {"minLength", check_count, ms_schema_min_length},
    {"anyOf", check_schemas, ms_schema_any_of},
    {"oneOf", check_schemas, ms_schema_one_of},
    {"$ref", check_ref, ms_schema_ref},
    {"$defs", check_schemas, NULL},
    {"$schema", check_nothing, NULL},
    {"$id", check_nothing, NULL},
    {"$comment", check_nothing, NULL},
    {"title", check_nothing, NULL},
    {"description", check_nothing, NULL},
    {"examples", check_nothing, NULL},
};

static const struct keyword *find_keyword(const char *name)
{
    size_t i;

    for (i = 0; i < MS_ARRAY_LEN(keywords); i++)
        if (!strcmp(keywords[i].name, name))
            return &keywords[i];
    return NULL;
}

void ms_schema_apply(struct ms_schema_pass *pass, const json_t *schema, const json_t *value)
{
    const struct keyword *keyword;
    const char *name;
    json_t *rule;

    if (pass->depth >= DEPTH_MAX) {
        ms_schema_complain(pass, "lies deeper than a report can be");
        return;
    }
    pass->depth++;
    json_object_foreach ((json_t *)schema, name, rule) {
        keyword = find_keyword(name);
        if (keyword && keyword->apply)
            keyword->apply(pass, schema, rule, value);
    }
    pass->depth--;
}

static void check(struct ms_schema_pass *pass, const json_t *schema)
{
    const char *name;
    json_t *rule;

    if (!json_is_object(schema)) {
        ms_schema_complain(pass, "is no schema");
        return;
    }
    json_object_foreach ((json_t *)schema, name, rule) {
        const struct keyword *keyword = find_keyword(name);
        size_t length = ms_schema_enter(pass, ".%s", name);

        if (keyword)
            keyword->check(pass, rule);
        else
            ms_schema_complain(pass, "is a keyword that is not interpreted");
        ms_schema_leave(pass, length);
    }
}

static void finish(struct ms_schema_pass *pass)
{
    while (pass->pattern_count)
        regfree(&pass->patterns[--pass->pattern_count].compiled);
}

size_t ms_schema_check(const json_t *schema, ms_schema_complaint_func_t listener, void *arg)
{
    struct ms_schema_pass pass = {.root = schema, .complain = listener, .arg = arg, .path = "$"};

    check(&pass, schema);
    finish(&pass);
    return pass.complaints;
}

size_t ms_schema_validate(const json_t *schema, const json_t *value, ms_schema_complaint_func_t listener,
                          void *arg)
{
    struct ms_schema_pass pass = {.root = schema, .complain = listener, .arg = arg, .path = "$"};

    ms_schema_apply(&pass, schema, value);
    finish(&pass);
    return pass.complaints;
}

json_t *ms_schema_of_report(void)
{
    return json_loads(ms_report_schema, 0, NULL);
}
