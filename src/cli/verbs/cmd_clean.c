/* cmd_clean.c - memshim clean: removes what killed processes left, by the rule of each process that begins
 * one.
 *
 * Floor 5. */
#include <fcntl.h>
#include <unistd.h>

#include "base/options/options.h"
#include "cli/cli.h"
#include "cli/live/shares.h"
#include "cli/live/stale_text.h"

struct cleaning {
    bool dry;
    const char *directory;
    struct ms_stale_sum gone, stay;
    size_t pages; /* of devices, on which nobody is */
};

static int clean_take(void *arg, int id, const char *value)
{
    (void)id, (void)value;
    ((struct cleaning *)arg)->dry = true;
    return 0;
}

static void clean_visit(void *arg, const struct ms_stale *stale)
{
    struct cleaning *cleaning = arg;
    const char *fate = stale->goes ? cleaning->dry ? "would go" : "removed" : "stays";

    ms_stale_print(stdout, cleaning->directory, stale, fate);
    ms_stale_add(stale->goes ? &cleaning->gone : &cleaning->stay, stale);
}

static void clean(void *arg, const char *directory)
{
    struct cleaning *cleaning = arg;
    int fd = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);

    cleaning->directory = directory;
    cleaning->pages += ms_shares_clean(directory, cleaning->dry);
    if (fd < 0)
        return;
    ms_stale_clean(fd, cleaning->dry, clean_visit, cleaning);
    close(fd);
}

int ms_cmd_clean(int argc, char **argv)
{
    struct cleaning cleaning = {.dry = false};
    int first = ms_cli_parse(argc, argv, false, clean_take, &cleaning), status;
    char gone[64], stay[64];

    if (first < 0)
        return ms_cli_parse_status(first);
    if (first < argc) {
        ms_cli_error("takes no operand, got '%s'; MEMSHIM_DIR says where ledgers lie", argv[first]);
        return MS_EXIT_USAGE;
    }
    ms_options_load(environ, NULL, NULL);
    ms_stale_places(clean, &cleaning);
    status = ms_cli_close_output(stdout);
    ms_cli_note("%s of processes that have ended %s, %s: younger than %lld s (MEMSHIM_DIR_KEEP)",
                ms_stale_sum_text(&cleaning.gone, gone, sizeof(gone)), cleaning.dry ? "would go" : "went",
                cleaning.stay.count ? ms_stale_sum_text(&cleaning.stay, stay, sizeof(stay)) : "none stays",
                (long long)ms_option_int(MS_OPT_DIR_KEEP));
    if (cleaning.pages)
        ms_cli_note("%zu page%s of devices that nobody shares %s", cleaning.pages,
                    cleaning.pages == 1 ? "" : "s", cleaning.dry ? "would go" : "went");
    return status;
}
