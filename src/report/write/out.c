/* out.c - writing JSON to a descriptor, one element at a time.
 *
 * Floor 4. Bare system calls for writing: write() is a cancellation point. jansson's objects live in a bump
 * arena that is rewound after each element. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base64.h"
#include "report/write/out.h"
#include "report/text/utf8.h"

/* More than any single element needs: the largest are argv and config. */
enum { HEAP_BYTES = 32 << 20, HEAP_ALIGNMENT = 16 };

static char *heap;
static size_t heap_used;
static json_malloc_t alloc_before;
static json_free_t free_before;

static void *heap_alloc(size_t bytes)
{
    bytes = (bytes + HEAP_ALIGNMENT - 1) / HEAP_ALIGNMENT * HEAP_ALIGNMENT;
    if (!heap || bytes > HEAP_BYTES - heap_used)
        return NULL;
    void *memory = heap + heap_used;
    heap_used += bytes;
    return memory;
}

static void heap_free(void *memory)
{
    (void)memory;
}

int ms_out_open(struct ms_out *out, int fd)
{
    void *memory =
        mmap(NULL, HEAP_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return -1;
    heap = memory;
    heap_used = 0;
    json_get_alloc_funcs(&alloc_before, &free_before);
    json_set_alloc_funcs(heap_alloc, heap_free);
    json_object_seed(1); /* otherwise it opens /dev/urandom; keys are ours, so nobody can make them collide */
    out->fd = fd;
    out->error = 0;
    out->used = 0;
    out->written = 0;
    out->fresh = true;
    return 0;
}

static void flush(struct ms_out *out)
{
    size_t done = 0;
    while (done < out->used && !out->error) {
        long written = syscall(SYS_write, out->fd, out->buffer + done, out->used - done);
        if (written > 0)
            done += (size_t)written;
        else if (written == 0 || errno != EINTR)
            out->error = written == 0 ? EIO : errno;
    }
    out->written += out->used;
    out->used = 0;
}

uint64_t ms_out_offset(const struct ms_out *out)
{
    return out->written + out->used;
}

int ms_out_close(struct ms_out *out)
{
    flush(out);
    munmap(heap, HEAP_BYTES);
    json_set_alloc_funcs(alloc_before, free_before);
    heap = NULL;
    errno = out->error;
    return out->error ? -1 : 0;
}

static void out_put(struct ms_out *out, const char *bytes, size_t count)
{
    while (count && !out->error) {
        size_t room = sizeof out->buffer - out->used;
        size_t part = count < room ? count : room;
        memcpy(out->buffer + out->used, bytes, part);
        out->used += part;
        bytes += part;
        count -= part;
        if (out->used == sizeof out->buffer)
            flush(out);
    }
}

void ms_out_raw(struct ms_out *out, const char *text)
{
    out_put(out, text, strlen(text));
}

static int put_encoded(const char *bytes, size_t count, void *arg)
{
    out_put(arg, bytes, count);
    return 0;
}

void ms_out_value(struct ms_out *out, json_t *value)
{
    if (!value || json_dump_callback(value, put_encoded, out, JSON_COMPACT | JSON_ENCODE_ANY) != 0) {
        if (!out->error)
            out->error = ENOMEM;
    }
    json_decref(value);
    heap_used = 0;
}

static void separate(struct ms_out *out)
{
    ms_out_raw(out, out->fresh ? "\n" : ",\n");
    out->fresh = false;
}

void ms_out_begin_object(struct ms_out *out)
{
    ms_out_raw(out, "{");
    out->fresh = true;
}

void ms_out_end_object(struct ms_out *out)
{
    ms_out_raw(out, "\n}\n");
}

void ms_out_key(struct ms_out *out, const char *key)
{
    separate(out);
    ms_out_raw(out, "\"");
    ms_out_raw(out, key);
    ms_out_raw(out, "\": ");
}

void ms_out_begin_array(struct ms_out *out)
{
    ms_out_raw(out, "[");
    out->fresh = true;
}

void ms_out_end_array(struct ms_out *out)
{
    ms_out_raw(out, out->fresh ? "]" : "\n]");
    out->fresh = false;
}

void ms_out_element(struct ms_out *out, json_t *element)
{
    separate(out);
    ms_out_value(out, element);
}

void ms_out_number(struct ms_out *out, uint64_t number)
{
    char digits[24];
    int count = snprintf(digits, sizeof digits, "%s%llu", out->fresh ? "" : ",", (unsigned long long)number);
    out_put(out, digits, (size_t)count);
    out->fresh = false;
}

json_t *ms_out_string(const char *text)
{
    static const char replacement[] = "\xef\xbf\xbd";
    json_t *string = json_string(text); /* NULL if it is not UTF-8 */
    if (string)
        return string;
    size_t used = 0;
    char *clean = heap_alloc(strlen(text) * (sizeof replacement - 1) + 1);
    if (!clean)
        return NULL;
    while (*text) {
        size_t length = ms_utf8_bytes(text);
        memcpy(clean + used, length ? text : replacement, length ? length : sizeof replacement - 1);
        used += length ? length : sizeof replacement - 1;
        text += length ? length : 1;
    }
    return json_stringn(clean, used);
}

json_t *ms_out_base64(const unsigned char *bytes, size_t count)
{
    char *text = heap_alloc(ms_base64_chars(count) + 1);
    if (!text)
        return NULL;
    ms_base64_encode(text, bytes, count);
    return json_stringn(text, ms_base64_chars(count));
}

json_t *ms_out_hex(uint64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "0x%llx", (unsigned long long)value);
    return json_string(text);
}
