/* schema_rules.c - the keywords of a schema, applied to values; see schema_rules.h.
 *
 * Floor 4, command line only. A keyword says nothing about values of other types, as JSON Schema has it. */
#include "report/schema_rules.h"

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

void ms_schema_complain(struct ms_schema_pass *pass, const char *format, ...)
{
    char text[512];
    va_list args;

    pass->complaints++;
    if (!pass->complain)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    pass->complain(pass->arg, pass->path, text);
}

/* Descends by one step; returns the length to cut the path back to. */
size_t ms_schema_enter(struct ms_schema_pass *pass, const char *format, ...)
{
    size_t length = strlen(pass->path);
    va_list args;

    va_start(args, format);
    vsnprintf(pass->path + length, sizeof(pass->path) - length, format, args);
    va_end(args);
    return length;
}

void ms_schema_leave(struct ms_schema_pass *pass, size_t length)
{
    pass->path[length] = '\0';
}

static const char *type_name(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return "object";
    case JSON_ARRAY:
        return "array";
    case JSON_STRING:
        return "string";
    case JSON_INTEGER:
        return "integer";
    case JSON_REAL:
        return "number";
    case JSON_TRUE:
    case JSON_FALSE:
        return "boolean";
    default:
        return "null";
    }
}

static bool has_type(const json_t *value, const char *name)
{
    if (!strcmp(name, "number"))
        return json_is_number(value);
    if (!strcmp(name, "integer") && json_is_real(value)) /* 1.0 is an integer to JSON Schema */
        return floor(json_real_value(value)) == json_real_value(value);
    return !strcmp(type_name(value), name);
}

/* A short spelling of a value for a complaint. */
static const char *spell(const json_t *value, char *text, size_t bytes)
{
    size_t length = json_dumpb(value, text, bytes - 1, JSON_ENCODE_ANY | JSON_COMPACT);

    if (length >= bytes)
        snprintf(text, bytes, "%s", type_name(value));
    else
        text[length] = '\0';
    return text;
}

void ms_schema_type(struct ms_schema_pass *pass, const json_t *schema, const json_t *rule,
                    const json_t *value)
{
    char text[64];
    json_t *name;
    size_t i;

    (void)schema;
    if (json_is_string(rule) && has_type(value, json_string_value(rule)))
        return;
    json_array_foreach (rule, i, name)
        if (has_type(value, json_string_value(name)))
            return;
    ms_schema_complain(pass, "is of type %s, not %s", type_name(value),
                       json_is_string(rule) ? json_string_value(rule) : spell(rule, text, sizeof(text)));
}

void ms_schema_required(struct ms_schema_pass *pass, const json_t *schema, const json_t *rule,
                        const json_t *value)
{
    json_t *name;
    size_t i;

    (void)schema;
    json_array_foreach (rule, i, name)
        if (json_is_object(value) && !json_object_get(value, json_string_value(name)))
            ms_schema_complain(pass, "lacks \"%s\"", json_string_value(name));
}

void ms_schema_properties(struct ms_schema_pass *pass, const json_t *schema, const json_t *rule,
                          const json_t *value)
{
    const char *name;
    json_t *member;

    (void)schema;
    json_object_foreach ((json_t *)value, name, member) {
        const json_t *own = json_object_get(rule, name);
        size_t length;

        if (!own)
            continue;
        length = ms_schema_enter(pass, ".%s", name);
        ms_schema_apply(pass, own, member);
        ms_schema_leave(pass, length);
    }
}

void ms_schema_additional(struct ms_schema_pass *pass, const json_t *schema, const json_t *rule,
                          const json_t *value)
{
    const json_t *known = json_object_get(schema, "properties");
    const char *name;
    json_t *member;

    json_object_foreach ((json_t *)value, name, member) {
        size_t length;

        if (json_object_get(known, name))
            continue;
        if (json_is_false(rule)) {
            ms_schema_complain(pass, "has \"%s\", which is not allowed", name);
            continue;
        }
        length = ms_schema_enter(pass, ".%s", name);
        ms_schema_apply(pass, rule, member);
        ms_schema_leave(pass, length);
    }
}

void ms_schema_property_names(struct ms_schema_pass *pass, const json_t *schema, const json_t *rule,
                              const json_t *value)
{
    const char *name;
    json_t *member;

    (void)schema;
    json_object_foreach ((json_t *)value, name, member) {
        json_t *text = json_string(name);
        size_t length = ms_schema_enter(pass, ".%s (the name)", name);

        ms_schema_apply(pass, rule, text);
        ms_schema_leave(pass, length);
        json_decref(text);
    }
}

void ms_schema_prefix_items(struct ms_schema_pass *pass, const json_t *schema, const json_t *rule,
                            const json_t *value)
{
    json_t *item;
    size_t i;

    (void)schema;
    json_array_foreach (value, i, item) {
        size_t length = ms_schema_enter(pass, "[%zu]", i);

        if (json_array_get(rule, i))
            ms_schema_apply(pass, json_array_get(rule, i), item);
        ms_schema_leave(pass, length);
    }
}

void ms_schema_items(struct ms_schema_pass *pass, const json_t *schema, const json_t *rule,
                     const json_t *value)
{
    size_t i, first = json_array_size(json_object_get(schema, "prefixItems"));
    json_t *item;

    json_array_foreach (value, i, item) {
        size_t length = ms_schema_enter(pass, "[%zu]", i);

        if (i >= first && json_is_false(rule))
            ms_schema_complain(pass, "is one item too many");
        else if (i >= first)
            ms_schema_apply(pass, rule, item);
        ms_schema_leave(pass, length);
    }
}

void ms_schema_enum(struct ms_schema_pass *pass, const json_t *schema, const json_t *rule,
                    const json_t *value)
{
    char text[128], allowed[256];
    json_t *word;
    size_t i;

    (void)schema;
    json_array_foreach (rule, i, word)
        if (json_equal(word, value))
            return;
    ms_schema_complain(pass, "is %s, not one of %s", spell(value, text, sizeof(text)),
                       spell(rule, allowed, sizeof(allowed)));
}

void ms_schema_const(struct ms_schema_pass *pass, const json_t *schema, const json_t *rule,
                     const json_t *value)
{
    char text[128], allowed[128];

    (void)schema;
    if (!json_equal(rule, value))
        ms_schema_complain(pass, "is %s, not %s", spell(value, text, sizeof(text)),
                           spell(rule, allowed, sizeof(allowed)));
}

const regex_t *ms_schema_pattern_of(struct ms_schema_pass *pass, const json_t *rule)
{
    struct ms_schema_pattern *pattern;
    size_t i;

    for (i = 0; i < pass->pattern_count; i++)
        if (pass->patterns[i].text == rule)
            return &pass->patterns[i].compiled;
    if (i == MS_SCHEMA_PATTERNS_MAX)
        return NULL;
    pattern = &pass->patterns[i];
    pattern->text = rule;
    if (regcomp(&pattern->compiled, json_string_value(rule), REG_EXTENDED | REG_NOSUB) != 0)
        return NULL;
    pass->pattern_count++;
    return &pattern->compiled;
}

void ms_schema_pattern(struct ms_schema_pass *pass, const json_t *schema, const json_t *rule,
                       const json_t *value)
{
    const regex_t *pattern = json_is_string(value) ? ms_schema_pattern_of(pass, rule) : NULL;
    char text[128];

    (void)schema;
    if (pattern && regexec(pattern, json_string_value(value), 0, NULL, 0) != 0)
        ms_schema_complain(pass, "is %s, which does not match %s", spell(value, text, sizeof(text)),
                           json_string_value(rule));
}

/* -1, 0, 1: exact for integers, which doubles are not beyond 2^53. */
static int compare_numbers(const json_t *a, const json_t *b)
{
    if (json_is_integer(a) && json_is_integer(b))
        return (json_integer_value(a) > json_integer_value(b)) -
               (json_integer_value(a) < json_integer_value(b));
    return (json_number_value(a) > json_number_value(b)) - (json_number_value(a) < json_number_value(b));
}

void ms_schema_minimum(struct ms_schema_pass *pass, const json_t *schema, const json_t *rule,
                       const json_t *value)
{
    char text[64], bound[64];

    (void)schema;
    if (json_is_number(value) && compare_numbers(value, rule) < 0)
        ms_schema_complain(pass, "is %s, less than %s", spell(value, text, sizeof(text)),
                           spell(rule, bound, sizeof(bound)));
}

void ms_schema_maximum(struct ms_schema_pass *pass, const json_t *schema, const json_t *rule,
                       const json_t *value)
{
    char text[64], bound[64];

    (void)schema;
    if (json_is_number(value) && compare_numbers(value, rule) > 0)
        ms_schema_complain(pass, "is %s, more than %s", spell(value, text, sizeof(text)),
                           spell(rule, bound, sizeof(bound)));
}

void ms_schema_min_items(struct ms_schema_pass *pass, const json_t *schema, const json_t *rule,
                         const json_t *value)
{
    (void)schema;
    if (json_is_array(value) && (json_int_t)json_array_size(value) < json_integer_value(rule))
        ms_schema_complain(pass, "has %zu items, at least %" JSON_INTEGER_FORMAT " are required",
                           json_array_size(value), json_integer_value(rule));
}

void ms_schema_max_items(struct ms_schema_pass *pass, const json_t *schema, const json_t *rule,
                         const json_t *value)
{
    (void)schema;
    if (json_is_array(value) && (json_int_t)json_array_size(value) > json_integer_value(rule))
        ms_schema_complain(pass, "has %zu items, at most %" JSON_INTEGER_FORMAT " are allowed",
                           json_array_size(value), json_integer_value(rule));
}

/* Counted in characters, not in bytes. */
void ms_schema_min_length(struct ms_schema_pass *pass, const json_t *schema, const json_t *rule,
                          const json_t *value)
{
    const char *c;
    json_int_t count = 0;

    (void)schema;
    if (!json_is_string(value))
        return;
    for (c = json_string_value(value); *c; c++)
        count += ((unsigned char)*c & 0xc0) != 0x80;
    if (count < json_integer_value(rule))
        ms_schema_complain(
            pass, "has %" JSON_INTEGER_FORMAT " characters, at least %" JSON_INTEGER_FORMAT " are required",
            count, json_integer_value(rule));
}

static json_int_t count_matches(struct ms_schema_pass *pass, const json_t *rule, const json_t *value)
{
    ms_schema_complaint_func_t listener = pass->complain;
    size_t i, before = pass->complaints;
    json_int_t matches = 0;
    json_t *alternative;

    pass->complain = NULL;
    json_array_foreach (rule, i, alternative) {
        pass->complaints = 0;
        ms_schema_apply(pass, alternative, value);
        matches += !pass->complaints;
    }
    pass->complain = listener;
    pass->complaints = before;
    return matches;
}

void ms_schema_any_of(struct ms_schema_pass *pass, const json_t *schema, const json_t *rule,
                      const json_t *value)
{
    (void)schema;
    if (!count_matches(pass, rule, value))
        ms_schema_complain(pass, "is none of the %zu forms allowed here", json_array_size(rule));
}

void ms_schema_one_of(struct ms_schema_pass *pass, const json_t *schema, const json_t *rule,
                      const json_t *value)
{
    json_int_t matches = count_matches(pass, rule, value);

    (void)schema;
    if (matches != 1)
        ms_schema_complain(pass, "is %s of the %zu forms allowed here", matches ? "more than one" : "none",
                           json_array_size(rule));
}

const json_t *ms_schema_referred(const struct ms_schema_pass *pass, const json_t *rule)
{
    static const char prefix[] = "#/$defs/";
    const char *target = json_string_value(rule);

    if (!target || strncmp(target, prefix, strlen(prefix)))
        return NULL;
    return json_object_get(json_object_get(pass->root, "$defs"), target + strlen(prefix));
}

void ms_schema_ref(struct ms_schema_pass *pass, const json_t *schema, const json_t *rule, const json_t *value)
{
    (void)schema;
    ms_schema_apply(pass, ms_schema_referred(pass, rule), value);
}
