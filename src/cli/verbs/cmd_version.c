/* cmd_version.c - memshim version.
 *
 * Floor 5. */
#include "config.h"

#include "cli/cli.h"

static int version_take(void *arg, int id, const char *value)
{
    (void)value;
    *(bool *)arg = id == 'j';
    return 0;
}

int ms_cmd_version(int argc, char **argv)
{
    bool json = false;
    int first = ms_cli_parse(argc, argv, false, version_take, &json);

    if (first < 0)
        return ms_cli_parse_status(first);
    if (first < argc) {
        ms_cli_error("takes no operand, got '%s'", argv[first]);
        return MS_EXIT_USAGE;
    }
    if (json)
        printf("{\"name\": \"memshim\", \"version\": \"%s\", \"commit\": \"%s\"}\n", PACKAGE_VERSION,
               MEMSHIM_COMMIT);
    else
        printf("memshim %s (%s)\n", PACKAGE_VERSION, MEMSHIM_COMMIT);
    return ms_cli_close_output(stdout);
}
