/* compress.c - a trace that is complete becomes a frame of zstd's under its own name; see reader.h.
 *
 * Floor 3.5. The bytes are those of the file, with the parts of one that has a limit in order. */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef MS_HAVE_ZSTD
#include <zstd.h>
#endif

#include "base/files.h"
#include "trace/internal.h"

#ifdef MS_HAVE_ZSTD
enum { LEVEL = 3 /* half a second for what takes a program minutes */, PIECE_BYTES = 1 << 16 };

struct packing {
    ZSTD_CCtx *context;
    int fd;
    unsigned char bytes[1 << 17];
};

static int put_all(int fd, const unsigned char *bytes, size_t count)
{
    while (count) {
        ssize_t put = write(fd, bytes, count);

        if (put < 0 && errno != EINTR)
            return -1;
        bytes += put > 0 ? put : 0;
        count -= put > 0 ? (size_t)put : 0;
    }
    return 0;
}

static int pack(struct packing *packing, const unsigned char *bytes, size_t count, ZSTD_EndDirective how)
{
    ZSTD_inBuffer from = {bytes, count, 0};
    size_t left;

    do {
        ZSTD_outBuffer into = {packing->bytes, sizeof(packing->bytes), 0};

        left = ZSTD_compressStream2(packing->context, &into, &from, how);
        if (ZSTD_isError(left)) {
            errno = ENOMEM;
            return -1;
        }
        if (put_all(packing->fd, packing->bytes, into.pos) < 0)
            return -1;
    } while (how == ZSTD_e_end ? left != 0 : from.pos < from.size);
    return 0;
}

static int pack_trace(struct packing *packing, struct ms_trace_reader *reader)
{
    struct ms_trace_input *input = &reader->input;
    unsigned char head[4 * MS_TRACE_RECORD_BYTES];
    size_t head_bytes = (size_t)input->offset, count;

    if (head_bytes > sizeof(head) || pread(input->fd, head, head_bytes, 0) != (ssize_t)head_bytes) {
        errno = EINVAL;
        return -1;
    }
    if (pack(packing, head, head_bytes, ZSTD_e_continue) < 0)
        return -1;
    while ((count = ms_trace_input_want(input, PIECE_BYTES)) != 0) {
        if (pack(packing, ms_trace_input_at(input), count, ZSTD_e_continue) < 0)
            return -1;
        ms_trace_input_skip(input, count);
    }
    errno = input->error;
    return input->error ? -1 : pack(packing, NULL, 0, ZSTD_e_end);
}

/* The name must still be that of the file that was read. */
static int publish(const struct packing *packing, const struct stat *was, const char *temporary,
                   const char *path)
{
    char name[PATH_MAX];
    struct stat written, now;

    if (strlen(path) >= sizeof(name) || fstat(packing->fd, &written) < 0 || lstat(path, &now) < 0 ||
        now.st_ino != was->st_ino || now.st_dev != was->st_dev)
        return -1;
    strcpy(name, path);
    return ms_file_publish(&written, temporary, name, sizeof(name), MS_FILE_REPLACE);
}

static int compress_into(struct packing *packing, struct ms_trace_reader *reader, const char *path)
{
    char temporary[PATH_MAX];
    struct stat was;
    int result, saved_errno;

    if (fstat(reader->input.fd, &was) < 0 || was.st_uid != geteuid())
        return -1;
    packing->fd = ms_file_create_beside(path, was.st_mode & 0777, temporary, sizeof(temporary));
    if (packing->fd < 0)
        return -1;
    result = pack_trace(packing, reader) < 0 ? -1 : publish(packing, &was, temporary, path);
    saved_errno = errno;
    if (result < 0)
        unlink(temporary);
    close(packing->fd);
    errno = saved_errno;
    return result;
}

/* Its process may be there still, and would find another file under the name. */
static bool is_over(const struct ms_trace_head *head, bool is_complete)
{
    return (is_complete || strcmp(head->summary, "unfinished") != 0) && head->pid > 0 &&
           kill((pid_t)head->pid, 0) < 0 && errno == ESRCH;
}

int ms_trace_compress(const char *path, uint64_t run, bool is_complete)
{
    char error[256];
    struct ms_trace_reader *reader = ms_trace_open(path, error, sizeof(error));
    struct packing *packing = reader ? calloc(1, sizeof(*packing)) : NULL;
    int result = 0;

    if (reader && reader->head.run == run && !reader->head.is_text && !reader->head.is_compressed &&
        is_over(&reader->head, is_complete)) {
        if (packing)
            packing->context = ZSTD_createCCtx();
        errno = ENOMEM;
        result =
            packing && packing->context &&
                    !ZSTD_isError(ZSTD_CCtx_setParameter(packing->context, ZSTD_c_compressionLevel, LEVEL)) &&
                    !ZSTD_isError(ZSTD_CCtx_setParameter(packing->context, ZSTD_c_checksumFlag, 1))
                ? compress_into(packing, reader, path)
                : -1;
    }
    if (packing)
        ZSTD_freeCCtx(packing->context);
    free(packing);
    ms_trace_close(reader);
    return result;
}
#else
int ms_trace_compress(const char *path, uint64_t run, bool is_complete)
{
    (void)path, (void)run, (void)is_complete;
    return 0;
}
#endif
