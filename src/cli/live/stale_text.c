/* stale_text.c - see stale_text.h. */
#include "cli/live/stale_text.h"

#include <limits.h>
#include <string.h>

#include "base/size.h"
#include "report/text/text.h"

enum { MINUTE = 60, HOUR = 3600, DAY = 86400 };

void ms_stale_add(struct ms_stale_sum *sum, const struct ms_stale *stale)
{
    sum->count++;
    sum->bytes += stale->bytes;
}

const char *ms_stale_sum_text(const struct ms_stale_sum *sum, char *text, size_t bytes)
{
    char size[32];

    ms_size_write(sum->bytes, size, sizeof(size));
    snprintf(text, bytes, "%zu ledger%s, %s", sum->count, sum->count == 1 ? "" : "s", size);
    return text;
}

static void write_age(uint64_t age_ns, char *text, size_t bytes)
{
    unsigned long long s = age_ns / 1000000000u;

    if (s >= 2 * DAY)
        snprintf(text, bytes, "%llu days", s / DAY);
    else if (s >= 2 * HOUR)
        snprintf(text, bytes, "%llu hours", s / HOUR);
    else if (s >= 2 * MINUTE)
        snprintf(text, bytes, "%llu minutes", s / MINUTE);
    else
        snprintf(text, bytes, "%llu seconds", s);
}

void ms_stale_print(FILE *out, const char *directory, const struct ms_stale *stale, const char *fate)
{
    char age[32], size[32];

    write_age(stale->age_ns, age, sizeof(age));
    ms_size_write(stale->bytes, size, sizeof(size));
    ms_text_put(out, directory);
    fprintf(out, "/%s  %s, of ", stale->name, size);
    if (stale->pid)
        fprintf(out, "process %d", (int)stale->pid);
    else
        fputs("a job in which there was no memory", out);
    fprintf(out, ", last written to %s ago: %s\n", age, fate);
}

void ms_stale_places(void (*visit)(void *arg, const char *directory), void *arg)
{
    static char text[PATH_MAX];
    const char *directory, *before[8];
    unsigned count = 0;

    for (unsigned i = 0; i < 8 && (directory = ms_journal_directory(i, text, sizeof(text))); i++) {
        unsigned k = 0;

        while (k < count && strcmp(before[k], directory) != 0)
            k++;
        if (k < count)
            continue;
        before[count++] = directory;
        visit(arg, directory);
    }
}
