/* python_codes.c - making rows of the table of codes.
 *
 * Floor 1. Rows and texts are only appended; one hash index leads to both and is replaced by a larger one as
 * it fills. Looking up takes no lock, adding a short one of its own. A code object that says the same as a
 * row (file, name, first line, line table) has that row, wherever it lies. What is compared is copied by
 * guarded reads: a code object that goes away meanwhile is no row. */
#include <stdatomic.h>
#include <string.h>

#include "base/arena.h"
#include "base/lock.h"
#include "unwind/python/python.h"
#include "unwind/python/python_codes.h"
#include "unwind/python/python_text.h"

enum {
    INDEX_START = 1024,
    CHUNK_BYTES = 256,
    /* A module of some 10,000 lines; beyond, only the first line is told. */
    LINES_BYTES_MAX = 256 << 10,
    OF_TEXT = 1u << 31, /* of an entry of the index: leads to a text, not to a row */
};

struct index {
    uint32_t mask, used;
    struct {
        _Atomic uint32_t hash, entry; /* entry 0 is empty; else 1 + a row, or OF_TEXT + an offset */
    } slots[];                        /* at most half are not */
};

static struct ms_lock add_lock = MS_LOCK_INIT(MS_RANK_CODE);
static struct index *_Atomic current_index;

static uint64_t python_codes_mix(uint64_t sum, uint64_t word)
{
    sum = (sum ^ word) * 0x9e3779b97f4a7c15u;
    return sum ^ sum >> 29;
}

static uint32_t hash_text(const char *text)
{
    uint64_t sum = 1;
    for (; *text; text++)
        sum = python_codes_mix(sum, (unsigned char)*text);
    return (uint32_t)(sum >> 32);
}

static void python_codes_put(struct index *index, uint32_t hash, uint32_t entry)
{
    uint32_t slot = hash & index->mask;
    while (atomic_load_explicit(&index->slots[slot].entry, memory_order_relaxed))
        slot = (slot + 1) & index->mask;
    atomic_store_explicit(&index->slots[slot].hash, hash, memory_order_relaxed);
    atomic_store_explicit(&index->slots[slot].entry, entry, memory_order_release);
    index->used++;
}

/* The index with room for what one code object needs; NULL without memory. Under the lock. */
static struct index *roomy_index(void)
{
    struct index *index = atomic_load_explicit(&current_index, memory_order_relaxed);
    if (index && index->used + 4 < index->mask / 2)
        return index;
    uint32_t slots = index ? (index->mask + 1) * 2 : INDEX_START;
    struct index *larger = ms_arena_alloc(sizeof *larger + slots * sizeof larger->slots[0]);
    if (!larger)
        return NULL;
    larger->mask = slots - 1;
    for (uint32_t i = 0; index && i <= index->mask; i++) {
        uint32_t entry = atomic_load_explicit(&index->slots[i].entry, memory_order_relaxed);
        if (entry)
            python_codes_put(larger, atomic_load_explicit(&index->slots[i].hash, memory_order_relaxed),
                             entry);
    }
    atomic_store_explicit(&current_index, larger, memory_order_release);
    return larger;
}

/* Room for `bytes` more in the table of texts; 0 if there is none. Its first byte is nobody's. */
static uint32_t text_room(uint64_t bytes)
{
    uint64_t at = ms_table_rows(MS_TABLE_CODE_TEXT);
    at = at ? at : 1;
    if (ms_table_reserve(MS_TABLE_CODE_TEXT, at + bytes))
        return (uint32_t)at;
    ms_table_drop(MS_TABLE_CODE_TEXT);
    return 0;
}

static uint32_t find_text(const struct index *index, uint32_t hash, const char *text)
{
    for (uint32_t slot = hash & index->mask;; slot = (slot + 1) & index->mask) {
        uint32_t entry = atomic_load_explicit(&index->slots[slot].entry, memory_order_acquire);
        if (!entry)
            return 0;
        if ((entry & OF_TEXT) &&
            atomic_load_explicit(&index->slots[slot].hash, memory_order_relaxed) == hash &&
            strcmp(ms_code_text(entry & ~OF_TEXT), text) == 0)
            return entry & ~OF_TEXT;
    }
}

/* Under the lock, with room in the index. */
static uint32_t intern(struct index *index, const char *text)
{
    uint32_t hash = hash_text(text), at;
    if (!*text)
        return 0;
    at = find_text(index, hash, text);
    if (at)
        return at;
    size_t bytes = strlen(text) + 1;
    at = text_room(bytes);
    if (!at)
        return 0;
    memcpy(&MS_ROWS(CODE_TEXT, char)[at], text, bytes);
    ms_table_publish(MS_TABLE_CODE_TEXT, at + bytes);
    python_codes_put(index, hash, OF_TEXT | at);
    return at;
}

uint32_t ms_code_intern_text(const char *text)
{
    ms_lock(&add_lock);
    struct index *index = roomy_index();
    uint32_t at = index ? intern(index, text) : 0;
    ms_unlock(&add_lock);
    return at;
}

/* The bytes object at `at`; false if it is none that can be a line table. */
static bool open_bytes(struct ms_python_reader *reader, uintptr_t at, uintptr_t *data_p, uint32_t *bytes_p)
{
    uint64_t head[3];
    if (at % sizeof *head != 0 || !ms_python_read_slowly(reader, at, head, sizeof head))
        return false;
    *data_p = at + MS_PYTHON_BYTES_DATA;
    *bytes_p = head[MS_PYTHON_LENGTH / 8] <= LINES_BYTES_MAX ? (uint32_t)head[MS_PYTHON_LENGTH / 8] : 0;
    return head[MS_PYTHON_LENGTH / 8] <= INT32_MAX;
}

/* Goes over the line table in parts: adds them up, or compares them with `known`. */
static bool over_lines(struct ms_python_reader *reader, uintptr_t data, uint32_t bytes,
                       const unsigned char *known, uint64_t *sum_p)
{
    _Alignas(8) unsigned char chunk[CHUNK_BYTES];
    for (uint32_t done = 0; done < bytes; done += CHUNK_BYTES) {
        uint32_t more = bytes - done < CHUNK_BYTES ? bytes - done : CHUNK_BYTES;
        memset(chunk + (more & ~7u), 0, more % 8 ? 8 : 0);
        if (!ms_python_read_slowly(reader, data + done, chunk, more))
            return false;
        if (known && memcmp(known + done, chunk, more) != 0)
            return false;
        for (uint32_t i = 0; !known && i < more; i += 8)
            *sum_p = python_codes_mix(*sum_p, *(const uint64_t *)(const void *)(chunk + i));
    }
    return true;
}

struct wanted {
    const struct ms_python_texts *texts;
    uintptr_t lines;
    uint32_t lines_bytes, first_line, hash;
    uint16_t version;
};

static bool is_row(struct ms_python_reader *reader, const struct ms_code *code, const struct wanted *wanted)
{
    const unsigned char *lines = ms_code_lines(code);
    return code->first_line == wanted->first_line && code->lines_bytes == wanted->lines_bytes &&
           code->version == wanted->version && lines &&
           strcmp(ms_code_text(code->file), wanted->texts->file) == 0 &&
           strcmp(ms_code_text(code->name), wanted->texts->name) == 0 &&
           over_lines(reader, wanted->lines, wanted->lines_bytes, lines, NULL);
}

static bool find_row(const struct index *index, struct ms_python_reader *reader, const struct wanted *wanted,
                     uint32_t *row_p)
{
    for (uint32_t slot = wanted->hash & index->mask;; slot = (slot + 1) & index->mask) {
        uint32_t entry = atomic_load_explicit(&index->slots[slot].entry, memory_order_acquire);
        if (!entry)
            return false;
        const struct ms_code *code = entry & OF_TEXT ? NULL : ms_code_at(entry - 1);
        if (code && atomic_load_explicit(&index->slots[slot].hash, memory_order_relaxed) == wanted->hash &&
            is_row(reader, code, wanted)) {
            *row_p = entry - 1;
            return true;
        }
    }
}

static bool copy_lines(struct ms_python_reader *reader, const struct wanted *wanted, uint32_t *at_p)
{
    uint32_t at = text_room(wanted->lines_bytes);
    if (!at || !ms_python_read_slowly(reader, wanted->lines, &MS_ROWS(CODE_TEXT, unsigned char)[at],
                                      wanted->lines_bytes))
        return false;
    ms_table_publish(MS_TABLE_CODE_TEXT, at + wanted->lines_bytes);
    *at_p = at;
    return true;
}

/* Under the lock. */
static bool append_row(struct index *index, struct ms_python_reader *reader, const struct wanted *wanted,
                       uint32_t *row_p)
{
    uint64_t row = ms_table_rows(MS_TABLE_CODES);
    struct ms_code code = {
        .first_line = wanted->first_line, .version = wanted->version, .lines_bytes = wanted->lines_bytes};
    if (!ms_table_reserve(MS_TABLE_CODES, row + 1)) {
        ms_table_drop(MS_TABLE_CODES);
        return false;
    }
    code.file = intern(index, wanted->texts->file);
    code.name = intern(index, wanted->texts->name);
    if ((*wanted->texts->file && !code.file) || (*wanted->texts->name && !code.name) ||
        !copy_lines(reader, wanted, &code.lines))
        return false;
    MS_ROWS(CODES, struct ms_code)[row] = code;
    ms_table_publish(MS_TABLE_CODES, row + 1);
    python_codes_put(index, wanted->hash, (uint32_t)row + 1);
    *row_p = (uint32_t)row;
    return true;
}

static bool python_codes_add(struct ms_python_reader *reader, const struct wanted *wanted, uint32_t *row_p)
{
    bool is_there = false;
    ms_lock(&add_lock);
    struct index *index = roomy_index();
    if (index)
        is_there = find_row(index, reader, wanted, row_p) || append_row(index, reader, wanted, row_p);
    ms_unlock(&add_lock);
    return is_there;
}

bool ms_python_code_row(const struct ms_python_interpreter *interpreter, struct ms_python_reader *reader,
                        struct ms_python_texts *texts, struct ms_python_print *print)
{
    const struct index *index = atomic_load_explicit(&current_index, memory_order_acquire);
    struct wanted wanted = {.texts = texts,
                            .first_line = print->first_line,
                            .version = (uint16_t)(interpreter->symbols.version >> 16)};
    uint64_t sum = print->first_line;
    if (!ms_python_text(interpreter, reader, print->file, texts->file, sizeof texts->file) ||
        !ms_python_text(interpreter, reader, print->name, texts->name, sizeof texts->name) ||
        !open_bytes(reader, print->lines, &wanted.lines, &wanted.lines_bytes) ||
        !over_lines(reader, wanted.lines, wanted.lines_bytes, NULL, &sum))
        return false;
    sum = python_codes_mix(python_codes_mix(sum, hash_text(texts->file)), hash_text(texts->name));
    wanted.hash = (uint32_t)(sum >> 32);
    return (index && find_row(index, reader, &wanted, &print->row)) ||
           python_codes_add(reader, &wanted, &print->row);
}

bool ms_python_is_same_lines(struct ms_python_reader *reader, const struct ms_python_print *print,
                             uint32_t row)
{
    const struct ms_code *code = ms_code_at(row);
    const unsigned char *lines = code ? ms_code_lines(code) : NULL;
    uintptr_t data;
    uint32_t bytes;
    return lines && open_bytes(reader, print->lines, &data, &bytes) && bytes == code->lines_bytes &&
           over_lines(reader, data, bytes, lines, NULL);
}

static void python_codes_reset(void)
{
    atomic_store_explicit(&current_index, NULL, memory_order_relaxed);
    ms_lock_reset(&add_lock);
}
MS_AT_FORK(MS_FORK_STACK, python_codes_reset);
