/* schema.h - a JSON value held against a JSON Schema.
 *
 * Floor 4, command line only. Interprets the part of JSON Schema 2020-12 that report.schema.json uses: type,
 * required, properties, propertyNames, additionalProperties, items, prefixItems, enum, const, pattern (read
 * as a POSIX extended expression), minimum, maximum, minItems, maxItems, minLength, oneOf, anyOf and $ref to
 * #/$defs/NAME; title, description and the like say nothing. A schema with any other keyword is refused as a
 * whole: a rule passed over in silence would let anything through. */
#ifndef MS_REPORT_SCHEMA_H
#define MS_REPORT_SCHEMA_H

#include <jansson.h>
#include <stddef.h>

/** Called for each violation: where ("$.devices[0].index") and what. Both strings end with the call. */
typedef void (*ms_schema_complaint_func_t)(void *arg, const char *path, const char *text);

/** Check that a schema can be interpreted; complains about each place that cannot. Returns the number of
 * complaints. */
size_t ms_schema_check(const json_t *schema, ms_schema_complaint_func_t complain, void *arg);

/** Hold `value` against a schema that ms_schema_check() accepts. Returns the number of violations. */
size_t ms_schema_validate(const json_t *schema, const json_t *value, ms_schema_complaint_func_t complain,
                          void *arg);

/** The report's schema as it is installed, parsed; NULL only without memory. The caller owns it. */
json_t *ms_schema_of_report(void);

/** The same, as text that ends with a NUL. */
extern const char ms_report_schema[];

#endif
