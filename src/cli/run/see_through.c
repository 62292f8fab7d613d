/* see_through.c - see see_through.h.
 *
 * Floor 5. Each framework reads its own variables and none reads another's, so all are set for every
 * program. */
#include "cli/run/see_through.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "cli/cli.h"

static const struct {
    const char *framework, *variable, *value;
} rows[] = {
#define MS_SEE_THROUGH(framework, variable, value) {framework, variable, value},
#include "cli/run/see_through.def"
#undef MS_SEE_THROUGH
};

int ms_see_through_set(bool quiet)
{
    char line[1024] = "";
    size_t length = 0;

    for (size_t i = 0; i < MS_ARRAY_LEN(rows); i++) {
        const char *own = getenv(rows[i].variable);

        if (own) {
            if (!quiet && strcmp(own, rows[i].value))
                ms_cli_note("--see-through: %s=%.200s is yours and stays (not %s): what %s asks for may be "
                            "segments",
                            rows[i].variable, own, rows[i].value, rows[i].framework);
            continue;
        }
        if (setenv(rows[i].variable, rows[i].value, 1) < 0) {
            ms_cli_error("out of memory");
            return -1;
        }
        if (length < sizeof(line))
            length += (size_t)snprintf(line + length, sizeof(line) - length, " %s=%s", rows[i].variable,
                                       rows[i].value);
    }
    if (!quiet && *line)
        ms_cli_note("--see-through: set%s", line);
    return 0;
}
