/* Fuzz target: the importer's way from a token to a block, through another process's ledger. Whatever token
 * and ledger say, the answer is the block that was exported, whole, or none.
 *
 * The input is changes to a sound pair of them: an area, three bytes of where, a length, and that many
 * bytes. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/options/options.h"
#include "record/ipc/ipc_exports.h"
#include "record/file/journal.h"
#include "tests/fuzz/fuzz.h"

enum {
    AREA_TOKEN,
    AREA_HEADER,
    AREA_LISTS,
    AREA_PROCESS,
    AREA_EXPORTS,
    AREA_END,
    AREAS,
    CHANGE_BYTES = 5,
    EXPORTS = 5
};

const char fuzz_name[] = "token";
static uint8_t real[1 << 20], changed[1 << 20], token[MS_TOKEN_BYTES], changed_token[MS_TOKEN_BYTES];
static size_t real_bytes;

static struct ms_ipc_export sound(unsigned i)
{
    return (struct ms_ipc_export){.address = 0x700000000000 + i * 4096,
                                  .offset = i * 4096,
                                  .bytes = 1000 + i,
                                  .segment_bytes = 1 << 21,
                                  .context = 7,
                                  .device = (int32_t)i,
                                  .handle = {(unsigned char)i, 2, 3}};
}

/* In a process of its own: the ledger's path, then a token of each export; one in the middle was freed. */
static void record(int pipe_fd)
{
    unsigned char tokens[EXPORTS][MS_TOKEN_BYTES];
    uint32_t rows[EXPORTS];
    const char *why;
    char path[4096] = "";

    ms_options_load(environ, NULL, NULL);
    ms_ledger_init(NULL, 0);
    ms_ledger_touch();
    for (unsigned i = 0; i < EXPORTS; i++) {
        struct ms_ipc_export block = sound(i);
        if (!ms_ipc_export_publish(&block, tokens[i], &rows[i], &why))
            abort();
    }
    ms_ipc_export_revoke(rows[1]);
    snprintf(path, sizeof path, "%s", ms_journal_path());
    if (write(pipe_fd, path, sizeof path) < 0 || write(pipe_fd, tokens[EXPORTS / 2], sizeof token) < 0)
        abort();
}

static void make_real(void)
{
    char directory[] = "/tmp/memshim-fuzz.XXXXXX", path[4096] = "";
    int pipes[2];
    ssize_t size = 0;

    if (!mkdtemp(directory) || pipe(pipes) != 0)
        abort();
    pid_t child = fork();
    if (child == 0) {
        setenv("MEMSHIM_DIR", directory, 1);
        record(pipes[1]);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    if (read(pipes[0], path, sizeof path) != sizeof path ||
        read(pipes[0], token, sizeof token) != sizeof token)
        abort();
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || (size = read(fd, real, sizeof real)) <= 0)
        abort();
    close(fd);
    real_bytes = (size_t)size;
    unlink(path);
    rmdir(directory);
    close(pipes[0]);
    close(pipes[1]);
}

static uint8_t *find_table(unsigned table, size_t *bytes_p)
{
    const struct ms_store_header *head = (const void *)real;

    for (uint32_t i = 0; i < atomic_load(&head->extent_count); i++) {
        const struct ms_store_extent *extent = &head->extents[i];
        if (extent->table != table || extent->table_offset)
            continue;
        *bytes_p = head->tables[table].row_bytes * (table == MS_TABLE_EXPORTS ? EXPORTS + 1 : 1);
        return changed + extent->file_offset;
    }
    abort();
}

static void change(unsigned area, uint32_t where, const uint8_t *bytes, size_t count, size_t *size_p)
{
    size_t room = sizeof changed_token;
    uint8_t *start = changed_token;

    if (area == AREA_HEADER)
        start = changed, room = offsetof(struct ms_store_header, extents);
    else if (area == AREA_LISTS)
        start = changed + offsetof(struct ms_store_header, extents),
        room = 32 * sizeof(struct ms_store_extent);
    else if (area == AREA_PROCESS)
        start = find_table(MS_TABLE_PROCESS, &room);
    else if (area == AREA_EXPORTS)
        start = find_table(MS_TABLE_EXPORTS, &room);
    else if (area == AREA_END)
        *size_p = where % (real_bytes + 1), count = 0;
    where %= room;
    memcpy(start + where, bytes, count < room - where ? count : room - where);
}

static size_t apply(const uint8_t *data, size_t size)
{
    size_t result = real_bytes;

    memcpy(changed, real, real_bytes);
    memcpy(changed_token, token, sizeof token);
    while (size >= CHANGE_BYTES) {
        uint32_t where = data[1] | (uint32_t)data[2] << 8 | (uint32_t)data[3] << 16;
        size_t count = data[4] % 64;

        data += CHANGE_BYTES, size -= CHANGE_BYTES;
        count = count < size ? count : size;
        change(data[-CHANGE_BYTES] % AREAS, where, data, count, &result);
        data += count, size -= count;
    }
    return result;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ms_ipc_export found, expected = sound(EXPORTS / 2);
    char said[400] = "";
    const char *why = NULL;
    struct ms_token inner;

    if (!real_bytes)
        make_real();
    size_t bytes = apply(data, size);
    /* Its process has ended, which is not what is looked at here: the file is read as if it had not. */
    int fd = fuzz_file(changed, bytes);
    if (ms_token_decode(changed_token, &inner)) {
        bool good = ms_ipc_export_read(fd, &inner, &found, &why);
        if (good ? memcmp(&found, &expected, sizeof found) != 0 : !why || !*why)
            abort();
        if (!size && !good)
            abort();
    }
    if (ms_ipc_export_resolve(changed_token, &found, said, sizeof said) || !*said || strchr(said, '\n'))
        abort();
    return 0;
}

/* Nothing is changed, and each area once. */
size_t fuzz_seed(unsigned number, uint8_t *data, size_t max)
{
    if (!real_bytes)
        make_real();
    if (number > AREAS || max < CHANGE_BYTES + 8)
        return 0;
    memset(data, 0, CHANGE_BYTES + 8);
    data[0] = number == AREAS ? 0 : (uint8_t)number;
    data[1] = 8;
    data[4] = number == AREAS ? 0 : 8;
    return number == AREAS ? CHANGE_BYTES : CHANGE_BYTES + 8;
}
