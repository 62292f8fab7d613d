/* cmd_top.c - memshim top: what processes that run hold of each device, on a screen or line by line.
 *
 * Floor 5. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/options/options.h"
#include "cli/cli.h"
#include "cli/live/ledgers.h"
#include "cli/live/shares.h"
#include "cli/live/top.h"
#include "report/text/text.h"

enum { DELAY_MAX_S = 3600 };

struct top_options {
    bool json, lines;
    long delay_s, count;
    enum ms_top_order order;
};

static int take_order(const char *value, enum ms_top_order *order_p)
{
    for (int i = 0; i < MS_TOP_ORDERS; i++) {
        if (!strcmp(value, ms_top_order_names[i])) {
            *order_p = (enum ms_top_order)i;
            return 0;
        }
    }
    ms_cli_error("--sort '%s' is not allowed: live, peak, reserved, allocs or pid", value);
    return -1;
}

static int top_take(void *arg, int id, const char *value)
{
    struct top_options *options = arg;

    switch (id) {
    case 'd':
        return ms_cli_number("--delay", value, 1, DELAY_MAX_S, &options->delay_s);
    case 'n':
        return ms_cli_number("--count", value, 1, INT_MAX, &options->count);
    case 's':
        return take_order(value, &options->order);
    case 'l':
        options->lines = true;
        return 0;
    default:
        options->json = true;
        return 0;
    }
}

/* The processes that were asked for, each of which has a ledger; NULL after an error line. */
static pid_t *take_pids(char **words, size_t word_count)
{
    pid_t *pids = calloc(word_count + 1, sizeof(*pids));

    for (size_t i = 0; pids && i < word_count; i++) {
        long pid;

        if (ms_cli_number("process", words[i], 1, INT_MAX, &pid) == 0) {
            pids[i] = (pid_t)pid;
            if (ms_ledgers_anywhere((pid_t)pid, NULL, NULL))
                continue;
            ms_cli_error("process %ld has no ledger of yours in %s%s", pid, ms_ledgers_places(),
                         ms_ledgers_others());
        }
        free(pids);
        return NULL;
    }
    if (!word_count)
        ms_ledgers_anywhere(0, NULL, NULL);
    ms_ledgers_say_others();
    if (!pids)
        ms_cli_error("no memory");
    return pids;
}

static int64_t top_now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void rest(int64_t ms)
{
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};

    nanosleep(&time, NULL);
}

/* Devices of which somebody has a place on the page: a line each, as long as it takes. */
static void put_shares(const struct ms_top *top, const char *time)
{
    const json_t *device;
    size_t i;

    json_array_foreach (top->shares, i, device) {
        printf("%s ", time);
        ms_shares_put(stdout, device);
        fputc('\n', stdout);
    }
}

/* The head stands first, and again when columns come or go. Devices have lines where no process was named. */
static void put_lines(const struct ms_top *top, bool head, bool all)
{
    static bool tensors;
    size_t columns = ms_text_width(stdout);
    time_t seconds = (time_t)(top->taken_unix_ns / 1000000000u);
    enum { TIME = 9 };
    struct tm local;
    char time[16];

    strftime(time, sizeof(time), "%H:%M:%S", localtime_r(&seconds, &local));
    if (head || tensors != top->has_tensors) {
        fputs("TIME     ", stdout);
        ms_top_put_head(stdout, columns - TIME, top->has_tensors);
        fputc('\n', stdout);
    }
    for (size_t i = 0; i < top->count; i++) {
        printf("%s ", time);
        ms_top_put_row(stdout, &top->rows[i], columns - TIME, top->has_tensors);
        fputc('\n', stdout);
    }
    tensors = top->has_tensors;
    if (all)
        put_shares(top, time);
    if (!top->count)
        printf("%s no process of yours is running with memshim and a device\n", time);
}

/* 0, or -1: nobody reads it any more. */
static int top_put(const struct top_options *options, const struct ms_top *top, bool head, bool all)
{
    json_t *json = options->json ? ms_top_json(top) : NULL;

    if (options->json) {
        ms_text_json(stdout, json, JSON_COMPACT);
        fputc('\n', stdout);
    } else {
        put_lines(top, head, all);
    }
    json_decref(json);
    return fflush(stdout) == 0 ? 0 : -1;
}

static int top_print(const struct top_options *options, const struct ms_top_watch *watch)
{
    struct ms_top before = {0};
    int status = 0;

    for (long i = 0; status == 0 && (!options->count || i < options->count); i++) {
        int64_t begun_ms = top_now_ms();
        struct ms_top top;

        ms_top_sample(watch->pids, watch->pid_count, &before, &top);
        ms_top_release(&before);
        before = top;
        if (watch->pid_count && !top.processes && !top.left_out) {
            ms_cli_note(watch->pid_count == 1 ? "the process has ended" : "the processes have ended");
            break;
        }
        ms_top_sort(&top, options->order);
        status = top_put(options, &top, i == 0, !watch->pid_count);
        if (i + 1 != options->count)
            rest(ms_top_rest_ms(watch->interval_ms, top_now_ms() - begun_ms));
    }
    ms_top_release(&before);
    if (status < 0)
        ms_cli_error("cannot write");
    return status < 0 ? MS_EXIT_USAGE : MS_EXIT_OK;
}

int ms_cmd_top(int argc, char **argv)
{
    struct top_options options = {.delay_s = 1};
    int first = ms_cli_parse(argc, argv, false, top_take, &options), status = -1;
    struct ms_top_watch watch;
    pid_t *pids;

    if (first < 0)
        return ms_cli_parse_status(first);
    ms_options_load(environ, NULL, NULL);
    pids = take_pids(argv + first, (size_t)(argc - first));
    if (!pids)
        return MS_EXIT_USAGE;
    watch = (struct ms_top_watch){pids, (size_t)(argc - first), options.delay_s * 1000, options.order};
    if (!options.lines && !options.json && !options.count && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO))
        status = ms_top_screen(&watch);
    if (status < 0)
        status = top_print(&options, &watch);
    free(pids);
    return status;
}
