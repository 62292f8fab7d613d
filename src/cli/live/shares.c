/* shares.c - see shares.h. A page is a file that others write: it is read once, and every figure is clamped.
 */
#include "cli/live/shares.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/live/stale_text.h"
#include "cli/screens/device_line.h"
#include "report/read/read.h"
#include "report/text/text.h"
#include "report/write/out.h"
#include "share/member.h"
#include "share/page_file.h"

static uint64_t figure(const _Atomic uint64_t *word)
{
    uint64_t value = atomic_load_explicit(word, memory_order_relaxed);
    return value < INT64_MAX / (MS_SHARE_ROWS + 2) ? value : INT64_MAX / (MS_SHARE_ROWS + 2);
}

/* Whoever holds the lock of the row lives; the number is another's where it is of another namespace. */
static bool is_alive(int fd, unsigned row)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = row, .l_len = 1};
    return fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

/* True if a process is this user's; of a page that is the user's own all are. */
static bool is_yours(const struct ms_share_row *row, bool of_group)
{
    char path[32];
    struct stat status;
    snprintf(path, sizeof path, "/proc/%d", (int)row->pid);
    return !of_group || (stat(path, &status) == 0 && status.st_uid == geteuid());
}

static json_t *process_json(const struct ms_share_row *row, bool of_group)
{
    char name[MS_SHARE_NAME + 1];
    json_t *json = json_pack(
        "{s:i, s:I, s:I, s:I, s:I}", "pid", (int)row->pid, "used_bytes", (json_int_t)figure(&row->used_bytes),
        "guarantee_bytes", (json_int_t)figure(&row->guarantee_bytes), "cached_bytes",
        (json_int_t)figure(&row->cached_bytes), "contexts_bytes", (json_int_t)figure(&row->contexts_bytes));
    snprintf(name, sizeof name, "%.*s", MS_SHARE_NAME, row->name);
    json_object_set_new(json, "name", ms_out_string(name));
    json_object_set_new(json, "yours", json_boolean(is_yours(row, of_group)));
    json_object_set_new(json, "beyond_bytes", json_integer(ms_device_line_beyond(json)));
    if (atomic_load(&row->most_bytes) != UINT64_MAX)
        json_object_set_new(json, "most_bytes", json_integer((json_int_t)figure(&row->most_bytes)));
    return json;
}

/* The sums of what a line says (screens/device_line.h). */
struct device_sums {
    json_int_t used, yours, cached, contexts;
};

/* Parts are as of the latest growth of their process, and never more than it has. */
static void add_process(struct device_sums *sums, const json_t *process)
{
    json_int_t used = ms_report_int(process, "used_bytes"),
               contexts = ms_report_int(process, "contexts_bytes"),
               cached = ms_report_int(process, "cached_bytes");
    contexts = contexts < used ? contexts : used;
    cached = cached < used - contexts ? cached : used - contexts;
    sums->used += used;
    if (!ms_report_bool(process, "yours"))
        return;
    sums->yours += used;
    sums->cached += cached;
    sums->contexts += contexts;
}

static json_t *device_json(int fd, const struct ms_share_page *page, bool of_group)
{
    json_int_t total = (json_int_t)figure(&page->head.total_bytes),
               others = (json_int_t)figure(&page->head.others_bytes), left;
    struct device_sums sums = {0, 0, 0, 0};
    json_t *processes = json_array(), *process;
    char uuid[33];
    for (int i = 0; i < 16; i++)
        snprintf(uuid + 2 * i, 3, "%02x", page->head.uuid[i]);
    for (unsigned i = 0; i < ms_share_rows(page); i++) {
        if (!atomic_load(&page->rows[i].is_taken) || !is_alive(fd, i))
            continue;
        process = process_json(&page->rows[i], of_group);
        json_object_set_new(process, "row", json_integer((json_int_t)i));
        add_process(&sums, process);
        json_array_append_new(processes, process);
    }
    left = total - sums.used > 0 ? total - sums.used : 0;
    others = others < left ? others : left;
    return json_pack("{s:s, s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "uuid", uuid, "group",
                     (int)of_group, "total_bytes", total, "free_bytes", left - others, "others_bytes", others,
                     "yours_bytes", sums.yours, "allocated_bytes", sums.yours - sums.cached - sums.contexts,
                     "cached_bytes", sums.cached, "contexts_bytes", sums.contexts, "neighbours_bytes",
                     sums.used - sums.yours, "unaccounted_bytes", others, "processes", processes);
}

struct search {
    json_t *devices;
    bool of_group; /* whose pages may be anybody's */
};

/* A page in which nobody is says nothing. */
static void shares_read(const struct search *search, int directory_fd, const char *name)
{
    json_t *device = NULL;
    struct ms_share_page *page = malloc(sizeof *page);
    int fd = openat(directory_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat status;
    if (page && fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
        (search->of_group || status.st_uid == geteuid()) &&
        pread(fd, (void *)page, sizeof *page, 0) == (ssize_t)sizeof *page &&
        memcmp(page->head.magic, MS_SHARE_MAGIC, sizeof page->head.magic) == 0 &&
        page->head.version == MS_SHARE_VERSION)
        device = device_json(fd, page, search->of_group);
    if (device && json_array_size(json_object_get(device, "processes")))
        json_array_append(search->devices, device);
    json_decref(device);
    if (fd >= 0)
        close(fd);
    free(page);
}

static bool is_page(const struct dirent *entry)
{
    return strncmp(entry->d_name, MS_SHARE_PREFIX, strlen(MS_SHARE_PREFIX)) == 0;
}

static void read_directory(void *arg, const char *path)
{
    const struct search *search = arg;
    DIR *directory = opendir(path);
    const struct dirent *entry;
    while (directory && (entry = readdir(directory)) != NULL)
        if (is_page(entry))
            shares_read(search, dirfd(directory), entry->d_name);
    if (directory)
        closedir(directory);
}

json_t *ms_shares_json(void)
{
    struct search search = {.devices = json_array()};
    char group[MS_SHARE_GROUP_PATH];
    if (search.devices)
        ms_stale_places(read_directory, &search);
    search.of_group = true;
    if (search.devices && ms_share_group(group, sizeof group))
        read_directory(&search, group);
    return search.devices;
}

/* True if nobody is on the page: its rows are locked then, for as long as the descriptor is open. */
static bool is_left(int fd)
{
    struct stat status;
    return fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid() &&
           ms_page_lock(fd, 0, 0, true);
}

static bool shares_remove(int directory_fd, const char *name, bool dry)
{
    int fd = openat(directory_fd, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    bool goes = fd >= 0 && is_left(fd) && (dry || unlinkat(directory_fd, name, 0) == 0);
    if (fd >= 0)
        close(fd);
    return goes;
}

size_t ms_shares_clean(const char *path, bool dry)
{
    DIR *directory = opendir(path);
    const struct dirent *entry;
    size_t count = 0;
    while (directory && (entry = readdir(directory)) != NULL)
        count += is_page(entry) && shares_remove(dirfd(directory), entry->d_name, dry);
    if (directory)
        closedir(directory);
    return count;
}

void ms_shares_put(FILE *out, const json_t *device)
{
    fprintf(out, "GPU-%.8s: ", ms_report_text(device, "uuid"));
    ms_device_line_put(out, device);
}
