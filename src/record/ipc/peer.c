/* peer.c - the importer's side of ipc_exports.h: one row of another process's ledger.
 *
 * Floor 2. Called by the hooks, inside a hook scope; runs on an auxiliary stack (base/thread/aux_stack.h).
 * The file is read and never mapped: one that is cut off meanwhile must not be a SIGBUS in the host. All
 * signals are blocked while a descriptor is open. Nothing in the file is believed: it lies where every user
 * may write, so it must be this user's own and closed to others, and it must say of itself what the token
 * says of it. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/thread/cancel.h"
#include "base/libc.h"
#include "base/thread/aux_stack.h"
#include "record/ipc/ipc_exports.h"
#include "record/file/journal.h"

static bool read_at(int fd, void *into, size_t bytes, uint64_t offset)
{
    ssize_t got;

    if (offset > INT64_MAX)
        return false;
    do
        got = pread(fd, into, bytes, (off_t)offset);
    while (got < 0 && errno == EINTR);
    return got == (ssize_t)bytes;
}

static bool has_rows_of(int fd, enum ms_table number, uint32_t row_bytes)
{
    struct ms_store_table table;

    return read_at(fd, &table, sizeof(table),
                   offsetof(struct ms_store_header, tables) + number * sizeof(table)) &&
           table.row_bytes == row_bytes;
}

/* The beginning of the header is read alone: the whole of it is too much for a stack. */
static bool has_our_format(int fd)
{
    struct {
        char magic[8];
        uint32_t version, byte_order, header_bytes, table_count, extent_max;
    } head;
    _Static_assert(offsetof(struct ms_store_header, extent_max) == 24, "the header begins so");

    if (!read_at(fd, &head, sizeof(head), 0))
        return false;
    return memcmp(head.magic, MS_STORE_MAGIC, sizeof(head.magic)) == 0 &&
           head.byte_order == MS_STORE_BYTE_ORDER && head.version == MS_STORE_VERSION &&
           head.header_bytes == MS_STORE_HEADER_BYTES && head.table_count == MS_TABLE_COUNT &&
           head.extent_max == MS_STORE_EXTENTS_MAX &&
           has_rows_of(fd, MS_TABLE_PROCESS, MS_TABLE_PROCESS_ROW_BYTES) &&
           has_rows_of(fd, MS_TABLE_EXPORTS, MS_TABLE_EXPORTS_ROW_BYTES);
}

/* The place of a table's byte in the file; extents hold whole rows. */
static bool peer_place_of(int fd, enum ms_table table, uint64_t table_offset, uint64_t *offset_p)
{
    struct ms_store_extent some[16];
    uint32_t count = 0;

    if (!read_at(fd, &count, sizeof(count), offsetof(struct ms_store_header, extent_count)) ||
        count > MS_STORE_EXTENTS_MAX)
        return false;
    for (uint32_t i = 0; i < count; i += MS_ARRAY_LEN(some)) {
        uint32_t part = count - i < MS_ARRAY_LEN(some) ? count - i : MS_ARRAY_LEN(some);
        if (!read_at(fd, some, part * sizeof(some[0]),
                     offsetof(struct ms_store_header, extents) + i * sizeof(some[0])))
            return false;
        for (uint32_t k = 0; k < part; k++) {
            if (some[k].table == table && table_offset - some[k].table_offset < some[k].bytes) {
                *offset_p = some[k].file_offset + (table_offset - some[k].table_offset);
                return *offset_p >= MS_STORE_HEADER_BYTES;
            }
        }
    }
    return false;
}

static bool read_process(int fd, struct ms_process *process_p)
{
    uint64_t offset;

    return peer_place_of(fd, MS_TABLE_PROCESS, 0, &offset) &&
           read_at(fd, process_p, sizeof(*process_p), offset) && atomic_load(&process_p->described) == 1;
}

bool ms_ledger_file_process(int fd, struct ms_process *process_p)
{
    return has_our_format(fd) && read_process(fd, process_p);
}

static bool is_of_process(int fd, const struct ms_token *token, const char **why_p)
{
    struct ms_process process;

    *why_p = "the exporter's ledger is not whole";
    if (!read_process(fd, &process))
        return false;
    *why_p = "the exporter's ledger is another process's";
    if (process.pid != token->pid || process.start_ticks != token->start_ticks ||
        process.pid_space != token->pid_space)
        return false;
    *why_p = "the exporting program has ended";
    return atomic_load(&process.end_reason) == MS_END_NONE;
}

static bool peer_is_sound(const struct ms_ipc_export_row *row)
{
    const struct ms_ipc_export *block = &row->block;
    struct {
        uint64_t nonce[2];
        struct ms_ipc_export block;
    } checked;

    memcpy(checked.nonce, row->nonce, sizeof(checked.nonce));
    checked.block = *block;
    return row->check == ms_token_check(&checked, sizeof(checked)) && block->bytes > 0 &&
           block->bytes <= block->segment_bytes && block->offset <= block->segment_bytes - block->bytes;
}

bool ms_ipc_export_read(int fd, const struct ms_token *token, struct ms_ipc_export *block_p,
                        const char **why_p)
{
    struct ms_ipc_export_row row;
    uint64_t offset;
    uint32_t state;

    *why_p = "the exporter's ledger is not of this version of memshim";
    if (!has_our_format(fd) || !is_of_process(fd, token, why_p))
        return false;
    *why_p = "the block was freed, or was never exported";
    if (token->row >= MS_TABLE_EXPORTS_ROWS ||
        !peer_place_of(fd, MS_TABLE_EXPORTS, (uint64_t)token->row * MS_TABLE_EXPORTS_ROW_BYTES, &offset) ||
        !read_at(fd, &row, sizeof(row), offset))
        return false;
    state = atomic_load(&row.state);
    if (state % MS_IPC_EXPORT_STATES != MS_IPC_EXPORT_LIVE ||
        memcmp(row.nonce, token->nonce, sizeof(row.nonce)) != 0)
        return false;
    /* It may have been freed, and the row used again, while it was read. */
    uint32_t again = 0;
    if (!read_at(fd, &again, sizeof(again), offset) || again != state || !peer_is_sound(&row))
        return false;
    *block_p = row.block;
    return true;
}

/* One of the exporter's files: it had several if it was replaced by exec. The reason of the file that tells
 * most is kept. */
static bool peer_read_file(const char *path, const struct ms_token *token, struct ms_ipc_export *block_p,
                           const char **why_p, bool *found_p)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    bool good = false;

    if (fd < 0 && errno == ENOENT)
        return false;
    *found_p = true;
    if (fd < 0)
        *why_p = ms_error_text(errno);
    else if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || status.st_uid != geteuid() ||
             (status.st_mode & 077))
        *why_p = "the exporter's ledger is not a file of this user alone";
    else
        good = ms_ipc_export_read(fd, token, block_p, why_p);
    if (fd >= 0)
        close(fd);
    return good;
}

static bool find_file(const struct ms_token *token, struct ms_ipc_export *block_p, const char **why_p)
{
    struct {
        char text[1024], path[1024 + MS_JOURNAL_NAME_BYTES + 1];
    } *names = ms_aux_stack_take();
    char name[MS_JOURNAL_NAME_BYTES];
    const char *directory;
    bool found = false, good = false;

    *why_p = "there is no memory to look into its ledger";
    if (!names)
        return false;
    for (unsigned i = 0; !good && (directory = ms_journal_directory(i, names->text, sizeof(names->text)));
         i++) {
        for (int number = 1; !good && number <= MS_JOURNAL_NAMES; number++) {
            ms_journal_name(name, sizeof(name), token->pid, token->start_ticks, number);
            if ((size_t)snprintf(names->path, sizeof(names->path), "%s/%s", directory, name) <
                sizeof(names->path))
                good = peer_read_file(names->path, token, block_p, why_p, &found);
        }
    }
    ms_aux_stack_give(names);
    if (good)
        return true;
    if (!found)
        *why_p = "its ledger is not where this process looks: MEMSHIM_DIR must be the same for both, and the "
                 "directory too";
    return false;
}

/* Field 22 of the line, and field 3: a program that has ended may still wait for its parent. The first
 * thread's, as ms_process_describe reads them. */
static bool is_running(const struct ms_token *token)
{
    char path[64], text[1024];
    const char *field = NULL;
    ssize_t length = -1;

    snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)token->pid, (int)token->pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        length = read(fd, text, sizeof(text) - 1);
        close(fd);
    }
    text[length > 0 ? length : 0] = '\0';
    field = strrchr(text, ')');
    if (!field || field[1] != ' ' || field[2] == 'Z' || field[2] == 'X')
        return false;
    for (int i = 2; i < 22 && field; i++)
        field = strchr(field + 1, ' ');
    return field && strtoull(field, NULL, 10) == token->start_ticks;
}

static const char *resolve(const struct ms_token *token, struct ms_ipc_export *block_p)
{
    const char *why = NULL;

    if (token->version != MS_STORE_VERSION)
        return "the exporter has another version of memshim";
    if (token->pid_space != ms_process()->pid_space)
        return "the exporter is in another namespace of processes";
    if (token->user != (uint32_t)geteuid())
        return "the exporter runs as another user";
    if (!is_running(token))
        return "the exporting process has ended";
    return find_file(token, block_p, &why) ? NULL : why;
}

struct question {
    struct ms_token token;
    struct ms_ipc_export *block_p;
    const char *reason; /* NULL: it is known */
};

static void peer_answer(void *arg)
{
    struct question *question = arg;

    question->reason = resolve(&question->token, question->block_p);
}

bool ms_ipc_export_resolve(const unsigned char bytes[MS_TOKEN_BYTES], struct ms_ipc_export *block_p,
                           char *why, size_t why_bytes)
{
    int saved_errno = errno;
    struct question question = {.block_p = block_p, .reason = "its bytes were changed on their way"};
    sigset_t all, before;

    int cancel = ms_cancel_hold();
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (ms_token_decode(bytes, &question.token))
        ms_aux_stack_call_anyway(peer_answer, &question);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    ms_cancel_release(cancel);
    if (question.reason && question.token.pid)
        snprintf(why, why_bytes, "memory of process %d cannot be opened here: %s", (int)question.token.pid,
                 question.reason);
    else if (question.reason)
        snprintf(why, why_bytes, "memory of another process cannot be opened here: %s", question.reason);
    errno = saved_errno;
    return !question.reason;
}
