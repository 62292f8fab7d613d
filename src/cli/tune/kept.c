/* kept.c - see kept.h.
 *
 * Floor 5. */
#include "cli/tune/kept.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/array.h"
#include "cli/run/preload.h"
#include "report/symbols/cache_directory.h"

struct ms_kept_row {
    uint64_t key;
    struct ms_replay_result result;
};

/* The fields of a line, in order. */
#define ROW_FORMAT                                                                                           \
    "%016" PRIx64 " %d %zu %" PRIu64 " %u %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64          \
    " %" PRIu64 " .\n"

uint64_t ms_kept_hash(uint64_t begun, const void *data, size_t bytes)
{
    const unsigned char *at = data;

    for (size_t i = 0; i < bytes; i++)
        begun = (begun ^ at[i]) * UINT64_C(0x100000001b3);
    return begun;
}

static uint64_t key_of(const struct ms_kept *kept, const struct ms_replay_order *order, uint64_t content)
{
    const uint64_t numbers[] = {content, order->device_bytes, order->first, order->last, order->warm};

    return ms_kept_hash(ms_kept_hash(kept->seed, numbers, sizeof(numbers)), order->settings,
                        strlen(order->settings));
}

static struct ms_kept_row *row_add(struct ms_kept *kept)
{
    struct ms_kept_row *rows = ms_array_grow(kept->rows, sizeof(*rows), kept->count, &kept->room, 64);

    if (!rows)
        return NULL;
    kept->rows = rows;
    return &kept->rows[kept->count++];
}

static bool read_row(const char *line, struct ms_kept_row *row)
{
    struct ms_replay_result *r = &row->result;
    int completed;
    char end;

    memset(row, 0, sizeof(*row));
    if (sscanf(line,
               "%" SCNx64 " %d %zu %" SCNu64 " %u %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
               " %" SCNu64 " %c",
               &row->key, &completed, &r->refused, &r->peak, &r->device, &r->sums.calls, &r->sums.waits,
               &r->sums.ns, &r->steady.calls, &r->steady.waits, &r->steady.ns, &end) != 12 ||
        end != '.')
        return false;
    r->completed = completed != 0;
    return true;
}

static void read_rows(struct ms_kept *kept)
{
    FILE *file = fopen(kept->path, "re");
    struct ms_kept_row row, *added;
    char line[512];

    while (file && fgets(line, sizeof(line), file))
        if (read_row(line, &row) && (added = row_add(kept)))
            *added = row;
    if (file)
        fclose(file);
}

void ms_kept_open(struct ms_kept *kept, uint64_t key)
{
    const char *library = ms_preload_library();
    char directory[3072];
    struct stat st;

    memset(kept, 0, sizeof(*kept));
    if (library && stat(library, &st) == 0) {
        const int64_t built[] = {st.st_size, st.st_mtim.tv_sec, st.st_mtim.tv_nsec};

        kept->seed = ms_kept_hash(0, built, sizeof(built));
    }
    if (!ms_cache_directory("", directory, sizeof(directory)) ||
        asprintf(&kept->path, "%s/tune-%016" PRIx64, directory, key) < 0) {
        kept->path = NULL;
        return;
    }
    read_rows(kept);
}

bool ms_kept_find(const struct ms_kept *kept, const struct ms_replay_order *order, uint64_t content,
                  struct ms_replay_result *result)
{
    uint64_t key = key_of(kept, order, content);

    for (size_t i = 0; i < kept->count; i++)
        if (kept->rows[i].key == key) {
            *result = kept->rows[i].result;
            return true;
        }
    return false;
}

void ms_kept_add(struct ms_kept *kept, const struct ms_replay_order *order, uint64_t content,
                 const struct ms_replay_result *r)
{
    struct ms_kept_row *row = row_add(kept);
    int fd = kept->path ? open(kept->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600) : -1;

    if (row)
        *row = (struct ms_kept_row){key_of(kept, order, content), *r};
    if (fd < 0)
        return;
    dprintf(fd, ROW_FORMAT, key_of(kept, order, content), r->completed, r->refused, r->peak, r->device,
            r->sums.calls, r->sums.waits, r->sums.ns, r->steady.calls, r->steady.waits, r->steady.ns);
    close(fd);
}

void ms_kept_close(struct ms_kept *kept, bool over)
{
    if (over && kept->path)
        unlink(kept->path);
    free(kept->path);
    free(kept->rows);
    memset(kept, 0, sizeof(*kept));
}
