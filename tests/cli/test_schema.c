/* test_schema.c - the interpreter of JSON Schema: each keyword, and that what is not interpreted is refused.
 */
#include "report/schema.h"

#include "tests/tap.h"

static char last[512];

static void listen(void *arg, const char *path, const char *text)
{
    (void)arg;
    snprintf(last, sizeof last, "%s %s", path, text);
}

/* Violations of `value` against `schema`, both as text. */
static size_t violations(const char *schema, const char *value)
{
    json_t *rules = json_loads(schema, 0, NULL), *subject = json_loads(value, JSON_DECODE_ANY, NULL);
    size_t count;

    last[0] = '\0';
    count = rules && subject ? ms_schema_validate(rules, subject, listen, NULL) : 9999;
    json_decref(rules);
    json_decref(subject);
    return count;
}

static size_t refusals(const char *schema)
{
    json_t *rules = json_loads(schema, 0, NULL);
    size_t count = rules ? ms_schema_check(rules, listen, NULL) : 9999;

    json_decref(rules);
    return count;
}

static const struct {
    const char *schema, *good, *bad;
} cases[] = {
    {"{\"type\": \"integer\"}", "9007199254740993", "\"1\""},
    {"{\"type\": \"integer\"}", "2.0", "2.5"},
    {"{\"type\": \"number\"}", "2.5", "true"},
    {"{\"type\": \"boolean\"}", "false", "0"},
    {"{\"type\": [\"string\", \"null\"]}", "null", "1"},
    {"{\"type\": \"object\"}", "{}", "[]"},
    {"{\"required\": [\"a\"]}", "{\"a\": null}", "{\"b\": 1}"},
    {"{\"required\": [\"a\"]}", "[]", "{}"},
    {"{\"properties\": {\"a\": {\"type\": \"string\"}}}", "{\"b\": 1}", "{\"a\": 1}"},
    {"{\"additionalProperties\": false, \"properties\": {\"a\": {}}}", "{\"a\": 1}", "{\"a\": 1, \"b\": 2}"},
    {"{\"additionalProperties\": {\"minimum\": 1}}", "{\"x\": 1}", "{\"x\": 0}"},
    {"{\"propertyNames\": {\"pattern\": \"^[0-9]+$\"}}", "{\"12\": 0}", "{\"x\": 0}"},
    {"{\"items\": {\"maximum\": 3}}", "[1, 2, 3]", "[1, 4]"},
    {"{\"prefixItems\": [{\"const\": [0, -1]}], \"items\": {\"minItems\": 2}}", "[[0, -1], [1, 2]]",
     "[[0, -1], [1]]"},
    {"{\"prefixItems\": [{\"const\": 1}], \"items\": false}", "[1]", "[1, 2]"},
    {"{\"prefixItems\": [{\"const\": 1}]}", "[]", "[2]"},
    {"{\"enum\": [\"a\", 2]}", "2", "\"b\""},
    {"{\"const\": {\"a\": [1]}}", "{\"a\": [1]}", "{\"a\": [2]}"},
    {"{\"pattern\": \"^0x[0-9a-f]+$\"}", "\"0x1f\"", "\"x1f\""},
    {"{\"pattern\": \"^a\"}", "7", "\"ba\""},
    {"{\"minimum\": 0}", "0", "-1"},
    {"{\"maximum\": 9007199254740992}", "9007199254740992", "9007199254740993"},
    {"{\"minItems\": 1}", "[0]", "[]"},
    {"{\"maxItems\": 1}", "[0]", "[0, 1]"},
    {"{\"minLength\": 2}", "\"\\u00e9\\u00e9\"", "\"\\u00e9\""},
    {"{\"anyOf\": [{\"type\": \"string\"}, {\"minimum\": 5}]}", "6", "4"},
    {"{\"oneOf\": [{\"minimum\": 5}, {\"maximum\": 5}]}", "4", "5"},
    {"{\"$ref\": \"#/$defs/n\", \"$defs\": {\"n\": {\"type\": \"null\"}}}", "null", "0"},
};

static const char *const refused[] = {
    "{\"multipleOf\": 2}",
    "{\"properties\": {\"a\": {\"format\": \"date\"}}}",
    "{\"items\": {\"uniqueItems\": true}}",
    "{\"required\": [[\"a\", {}]]}",
    "{\"type\": 3}",
    "{\"pattern\": \"(\"}",
    "{\"pattern\": \"\\\\d+\"}",
    "{\"$ref\": \"#/$defs/missing\"}",
    "{\"$ref\": \"other.json\"}",
    "{\"minItems\": -1}",
    "{\"enum\": []}",
    "{\"properties\": {\"a\": 5}}",
};

int main(void)
{
    json_t *schema = ms_schema_of_report();
    size_t i;

    plan(0);
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        ok(violations(cases[i].schema, cases[i].good) == 0, "%s takes %s", cases[i].schema, cases[i].good);
        ok(violations(cases[i].schema, cases[i].bad) > 0, "%s refuses %s", cases[i].schema, cases[i].bad);
        ok(refusals(cases[i].schema) == 0, "%s can be interpreted", cases[i].schema);
    }
    for (i = 0; i < sizeof refused / sizeof *refused; i++)
        ok(refusals(refused[i]) > 0, "%s is refused as a schema", refused[i]);

    violations("{\"properties\": {\"a\": {\"items\": {\"properties\": {\"b\": {\"type\": \"null\"}}}}}}",
               "{\"a\": [{}, {\"b\": 1}]}");
    ok(!strcmp(last, "$.a[1].b is of type integer, not null"), "a violation names its place: %s", last);
    ok(violations("{\"$ref\": \"#/$defs/a\", \"$defs\": {\"a\": {\"$ref\": \"#/$defs/a\"}}}", "1") > 0,
       "a rule that refers to itself ends");

    ok(schema != NULL, "the report's schema is JSON");
    ok(schema && ms_schema_check(schema, listen, NULL) == 0,
       "every keyword of the report's schema is interpreted: %s", last);
    json_decref(schema);
    return done();
}
