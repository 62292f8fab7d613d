/* store_load.c - reading a ledger's file in place of recording one.
 *
 * Floor 0, command line only; one thread. The file may be cut off, damaged, or made to look like a ledger:
 * what is taken from it is bounds-checked here as far as it says where things lie. It is read, not mapped: a
 * file that is cut off meanwhile would otherwise be a SIGBUS. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/store/store.h"

/* More than can have been, and so little that sums of them are no less. */
#define DROPPED_MAX (UINT64_C(1) << 48)

/* One that is being read. */
struct file {
    int fd;
    uint64_t bytes;
    struct ms_store_header *head;
    char *error;
    size_t error_bytes;
};

static MS_PRINTF(2, 3) int store_load_refuse(struct file *file, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(file->error, file->error_bytes, format, args);
    va_end(args);
    return -1;
}

static bool read_all(int fd, void *into, uint64_t count, uint64_t offset)
{
    char *bytes = into;
    while (count) {
        ssize_t part = pread(fd, bytes, count, (off_t)offset);
        if (part == 0) /* cut off since its length was taken */
            errno = ENODATA;
        if (part == 0 || (part < 0 && errno != EINTR))
            return false;
        if (part > 0) {
            bytes += part;
            offset += (uint64_t)part;
            count -= (uint64_t)part;
        }
    }
    return true;
}

static int check_header(struct file *file, const struct ms_store_header *mine)
{
    const struct ms_store_header *head = file->head;
    if (memcmp(head->magic, MS_STORE_MAGIC, sizeof head->magic) != 0)
        return store_load_refuse(file, "is not a ledger");
    if (head->byte_order != MS_STORE_BYTE_ORDER)
        return store_load_refuse(file, "is the ledger of a machine with another byte order");
    if (head->version != MS_STORE_VERSION)
        return store_load_refuse(file, "has format %u of the ledger, this memshim reads %d", head->version,
                                 MS_STORE_VERSION);
    if (head->header_bytes != mine->header_bytes || head->table_count != mine->table_count ||
        head->extent_max != mine->extent_max)
        return store_load_refuse(file, "has the layout of another memshim");
    for (unsigned i = 0; i < MS_TABLE_COUNT; i++) {
        if (memcmp(head->tables[i].name, mine->tables[i].name, sizeof mine->tables[i].name) != 0 ||
            head->tables[i].row_bytes != mine->tables[i].row_bytes ||
            head->tables[i].capacity != mine->tables[i].capacity)
            return store_load_refuse(file, "has the tables of another memshim");
    }
    return 0;
}

/* The bytes of an extent that lie in the file; 0 if none of them do. */
static uint64_t usable_bytes(const struct file *file, const struct ms_store_extent *extent)
{
    if (extent->table >= MS_TABLE_COUNT || extent->file_offset < MS_STORE_HEADER_BYTES ||
        extent->file_offset >= file->bytes || extent->table_offset >= sizeof(struct ms_store_layout))
        return 0;
    uint64_t left = file->bytes - extent->file_offset;
    return extent->bytes < left ? extent->bytes : left;
}

/* Finds the place where data begins at `from` or behind it, and where it ends, within [from, end): in the
 * file's holes there are zeros, as in what was not read, and a file may have more of them than there is
 * memory. False if there is no more data. */
static bool next_data(int fd, uint64_t from, uint64_t end, uint64_t *begin_p, uint64_t *end_p)
{
    off_t begin = lseek(fd, (off_t)from, SEEK_DATA);
    if (begin < 0 && errno != ENXIO) { /* nobody knows here */
        *begin_p = from;
        *end_p = end;
        return from < end;
    }
    if (begin < 0 || (uint64_t)begin >= end)
        return false;
    off_t hole = lseek(fd, begin, SEEK_HOLE);
    *begin_p = (uint64_t)begin;
    *end_p = hole > begin && (uint64_t)hole < end ? (uint64_t)hole : end;
    return true;
}

/* How much of [from, from + bytes) there is until nothing but a hole follows. */
static uint64_t bytes_of_data(int fd, uint64_t from, uint64_t bytes)
{
    uint64_t begin, end, last = from;
    for (uint64_t at = from; next_data(fd, at, from + bytes, &begin, &end); at = end)
        last = end;
    return last - from;
}

static bool read_data(int fd, char *into, uint64_t bytes, uint64_t from)
{
    uint64_t begin, end;
    for (uint64_t at = from; next_data(fd, at, from + bytes, &begin, &end); at = end) {
        if (!read_all(fd, into + (begin - from), end - begin, begin))
            return false;
    }
    return true;
}

static uint32_t extent_count(const struct file *file)
{
    uint32_t count = atomic_load(&file->head->extent_count);
    return count < MS_STORE_EXTENTS_MAX ? count : MS_STORE_EXTENTS_MAX;
}

static int read_extents(struct file *file, const size_t *offsets)
{
    uint64_t all = 0;
    for (uint32_t i = 0; i < extent_count(file); i++) {
        const struct ms_store_extent *extent = &file->head->extents[i];
        uint64_t bytes = usable_bytes(file, extent);
        all += bytes;
        if (all > file->bytes)
            return store_load_refuse(file, "lists more than it holds");
        bytes = bytes_of_data(file->fd, extent->file_offset, bytes);
        if (!bytes)
            continue;
        if (!ms_store_commit(extent->table, extent->table_offset + bytes))
            return store_load_refuse(file, "says that table %u is larger than it can be", extent->table);
        char *base = atomic_load(&ms_store_base);
        if (!read_data(file->fd, base + offsets[extent->table] + extent->table_offset, bytes,
                       extent->file_offset))
            return store_load_refuse(file, "cannot be read: %s", strerror(errno));
    }
    return 0;
}

/* The process was writing while its slots were read. Those that are not the same a moment later were in the
 * middle of a call, and may be a mixture. */
static int drop_changing(struct file *file)
{
    enum { ROW = MS_TABLE_BLOCKS_ROW_BYTES, PART = 4096 * ROW };
    char *rows = MS_ROWS(BLOCKS, char), *again = malloc(PART);
    bool good = again != NULL;
    for (uint32_t i = 0; good && i < extent_count(file); i++) {
        const struct ms_store_extent *extent = &file->head->extents[i];
        uint64_t bytes = extent->table == MS_TABLE_BLOCKS ? usable_bytes(file, extent) : 0;
        bytes = bytes_of_data(file->fd, extent->file_offset, bytes);
        for (uint64_t at = 0; good && at + ROW <= bytes; at += PART) {
            uint64_t part = bytes - at < PART ? bytes - at : PART;
            memset(again, 0, PART);
            good = read_data(file->fd, again, part, extent->file_offset + at);
            for (uint64_t k = 0; good && k + ROW <= part; k += ROW) {
                if (memcmp(rows + extent->table_offset + at + k, again + k, ROW) != 0)
                    memset(rows + extent->table_offset + at + k, 0, ROW);
            }
        }
    }
    free(again);
    return good ? 0 : store_load_refuse(file, "cannot be read: %s", strerror(errno));
}

static void take_counts(const struct file *file)
{
    for (unsigned i = 0; i < MS_TABLE_COUNT; i++) {
        uint64_t rows = atomic_load(&file->head->tables[i].rows), there = ms_table_reserved(i);
        ms_table_publish(i, rows < there ? rows : there);
        uint64_t dropped = atomic_load(&file->head->tables[i].dropped);
        ms_table_set_dropped(i, dropped < DROPPED_MAX ? dropped : DROPPED_MAX);
    }
}

static int store_load_load(struct file *file, bool live, const size_t *offsets)
{
    struct stat status;
    if (fstat(file->fd, &status) != 0)
        return store_load_refuse(file, "cannot be read: %s", strerror(errno));
    if (!S_ISREG(status.st_mode))
        return store_load_refuse(file, "is not a regular file");
    file->bytes = (uint64_t)status.st_size;
    if (file->bytes < MS_STORE_HEADER_BYTES)
        return store_load_refuse(file, "is not a ledger: it has %" PRIu64 " bytes", file->bytes);
    if (!read_all(file->fd, file->head, MS_STORE_HEADER_BYTES, 0))
        return store_load_refuse(file, "cannot be read: %s", strerror(errno));
    ms_store_reset();
    if (ms_store_open() != 0)
        return store_load_refuse(file, "cannot be read: no address space for its tables");
    struct ms_store_header *mine = (struct ms_store_header *)(void *)atomic_load(&ms_store_base);
    if (check_header(file, mine) != 0 || read_extents(file, offsets) != 0 ||
        (live && drop_changing(file) != 0))
        return -1;
    take_counts(file);
    atomic_store(&mine->memory_only_bytes, atomic_load(&file->head->memory_only_bytes));
    mine->file_bytes = file->bytes;
    return 0;
}

int ms_store_load(int fd, bool live, char *error, size_t error_bytes)
{
    static const size_t offsets[MS_TABLE_COUNT] = {
#define MS_TABLE(id, name, row_bytes, rows) [MS_TABLE_##id] = offsetof(struct ms_store_layout, id),
#include "base/store/tables.def"
#undef MS_TABLE
    };
    struct file file = {fd, 0, malloc(MS_STORE_HEADER_BYTES), error, error_bytes};
    int result = file.head ? store_load_load(&file, live, offsets)
                           : store_load_refuse(&file, "cannot be read: no memory");
    free(file.head);
    return result;
}
