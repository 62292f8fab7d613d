/* python_print.c - knowing frames and code objects again.
 *
 * Floor 1. No lock, no allocation. What is remembered is compared from the innermost frame outwards, and a
 * place is looked at only when something alive has just led to it: the thread's state to the first frame, a
 * frame to the next and to its code, a code object to its strings. So plain loads do. A thread whose frames
 * another may take away meanwhile (python_read.h) has them copied first, all by one call of the kernel. */
#include "config.h"

#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/compiler.h"
#include "stack/python_thread.h"

enum { NO_HASH = -1, LINES_WORDS = 6, CHUNK_WORDS = 32 };

static inline uint64_t mix(uint64_t sum, uint64_t word)
{
    sum = (sum ^ word) * 0x9e3779b97f4a7c15u;
    return sum ^ sum >> 32;
}

/* The words of characters; of the last those bytes that belong to them, which lie in the same page. */
static inline uint64_t turn(uint64_t sum, uint64_t word)
{
    return (sum << 7 | sum >> 57) ^ word;
}

static inline uint64_t last_bytes(uint64_t word, uint64_t bytes)
{
    return word & (((uint64_t)1 << bytes % 8 * 8) - 1);
}

static inline MS_RAW uint64_t sum_live(uintptr_t from, uint64_t bytes)
{
    uint64_t sum = 0, done = 0;
    for (; done + 8 <= bytes; done += 8)
        sum = turn(sum, ms_python_word(from + done));
    return done < bytes ? turn(sum, last_bytes(ms_python_word(from + done), bytes)) : sum;
}

static bool sum_guarded(struct ms_python_reader *reader, uintptr_t from, uint64_t bytes, uint64_t *sum_p)
{
    uint64_t chunk[CHUNK_WORDS], sum = 0;
    for (uint64_t done = 0; done < bytes; done += sizeof chunk) {
        size_t more = bytes - done < sizeof chunk ? (size_t)(bytes - done) : sizeof chunk;
        if (more % 8)
            chunk[more / 8] = 0;
        if (!ms_python_read_slowly(reader, from + done, chunk, more))
            return false;
        for (size_t i = 0; i * 8 < more; i++)
            sum = turn(sum, chunk[i]);
    }
    *sum_p = sum;
    return true;
}

/* A string that has a hash is told by it; another is added up, as file names mostly are. `live` is where the
 * string is, `at` where its head is read; where they are the same, loads do. */
static inline MS_RAW bool sum_text(struct ms_python_reader *reader, const struct ms_python_layout *layout,
                                   uintptr_t live, uintptr_t at, uint64_t *sum_p)
{
    uint64_t bytes = ms_python_word(at + MS_PYTHON_LENGTH);
    int64_t hash = (int64_t)ms_python_word(at + MS_PYTHON_HASH);
    uint64_t sum = mix(bytes, (uint64_t)hash), more = 0;
    uint32_t state = ms_python_half(at + MS_PYTHON_TEXT_STATE);
    *sum_p = sum;
    if (MS_LIKELY(hash != NO_HASH))
        return true;
    bytes = bytes < MS_PYTHON_FILE_BYTES_MAX ? bytes * (state >> 2 & 7) : 0;
    live += state >> 6 & 1 ? layout->text_ascii : layout->text_compact;
    if (at + layout->text_ascii == live || at + layout->text_compact == live)
        more = sum_live(live, bytes);
    else if (!sum_guarded(reader, live, bytes, &more))
        return false;
    *sum_p = mix(sum, more);
    return true;
}

static inline MS_RAW uint64_t sum_lines(uintptr_t lines, uintptr_t tail, uint64_t bytes, uint64_t sum)
{
    sum = mix(sum, bytes);
    if (bytes >= 16)
        sum = mix(mix(sum, ms_python_word(lines + MS_PYTHON_BYTES_DATA)),
                  ms_python_word(lines + MS_PYTHON_BYTES_DATA + 8));
    if (bytes >= 24)
        sum = mix(sum, ms_python_word(tail));
    return sum;
}

static inline uintptr_t tail_of(uintptr_t lines, uint64_t bytes)
{
    return lines + MS_PYTHON_BYTES_DATA + (bytes & ~(uint64_t)7) - 8;
}

static inline MS_RAW bool is_same_code(const struct ms_python_interpreter *interpreter,
                                       struct ms_python_reader *reader, const struct ms_python_record *record,
                                       const struct ms_python_parts *parts)
{
    const struct ms_python_layout *layout = &interpreter->layout;
    const struct ms_python_print *print = &record->print;
    uint64_t sum = 0, file_sum = print->file_sum;
    if (MS_LIKELY(print->version)) /* with what else is as near: numbers begin anew with an interpreter */
        return ms_python_half(parts->code + layout->code_version) == print->version &&
               ms_python_half(parts->code + layout->code_first_line) == print->first_line &&
               ms_python_word(parts->code + layout->code_file) == print->file &&
               ms_python_word(parts->code + layout->code_name) == print->name &&
               ms_python_word(parts->code + layout->code_lines) == print->lines;
    if (ms_python_word(parts->code + MS_PYTHON_TYPE) != interpreter->symbols.code_type ||
        ms_python_word(parts->code + layout->code_file) != print->file ||
        ms_python_word(parts->code + layout->code_name) != print->name ||
        ms_python_word(parts->code + layout->code_lines) != print->lines ||
        ms_python_half(parts->code + layout->code_first_line) != print->first_line ||
        ms_python_word(parts->lines + MS_PYTHON_LENGTH) != record->lines_bytes)
        return false;
    return (!parts->file || sum_text(reader, layout, print->file, parts->file, &file_sum)) &&
           file_sum == print->file_sum && sum_text(reader, layout, print->name, parts->name, &sum) &&
           sum_lines(parts->lines, parts->tail, record->lines_bytes, sum) == print->sum;
}

static inline MS_RAW uint64_t instr_at(const struct ms_python_layout *layout, uintptr_t frame)
{
    return layout->instr_unit ? ms_python_half(frame + layout->frame_instr)
                              : ms_python_word(frame + layout->frame_instr);
}

static inline MS_RAW bool is_same_frame(const struct ms_python_layout *layout,
                                        const struct ms_python_record *record, uintptr_t frame)
{
    if (ms_python_word(frame + layout->frame_previous) != record->previous ||
        ms_python_word(frame + layout->frame_code) != record->code ||
        instr_at(layout, frame) != record->instr)
        return false;
    if (layout->frame_owner && (ms_python_byte(frame + layout->frame_owner) >= 3) != record->is_entry)
        return false;
    return layout->chain != MS_PYTHON_CHAIN_CFRAMES ||
           (ms_python_byte(frame + layout->frame_is_entry) != 0) == record->ends_run;
}

/* 3.11: the run's record leads to the next run's. It lies on this thread's stack, or in the thread's state.
 */
static inline MS_RAW bool is_same_run(const struct ms_python_layout *layout,
                                      const struct ms_python_record *record,
                                      const struct ms_python_record *outer)
{
    return layout->chain != MS_PYTHON_CHAIN_CFRAMES || !record->ends_run || !outer ||
           ms_python_word(record->cframe + layout->cframe_previous) == outer->cframe;
}

static MS_RAW bool is_same_live(const struct ms_python_interpreter *interpreter,
                                struct ms_python_thread *thread, unsigned last)
{
    const struct ms_python_layout *layout = &interpreter->layout;
    uintptr_t code_seen = 0, file_seen = 0;
    uint64_t file_sum = 0;
    for (unsigned i = last + 1; i-- > 0;) {
        const struct ms_python_record *record = &thread->records[i];
        const struct ms_python_print *print = &record->print;
        if (!is_same_frame(layout, record, record->at) || !is_same_run(layout, record, i ? record - 1 : NULL))
            return false;
        if (!record->is_told || record->code == code_seen)
            continue;
        struct ms_python_parts parts = {record->at,   ms_python_code_of(layout, record),
                                        print->file,  print->name,
                                        print->lines, tail_of(print->lines, record->lines_bytes)};
        /* Most neighbours are of one file. */
        if (print->file == file_seen && print->file_sum == file_sum)
            parts.file = 0;
        if (!is_same_code(interpreter, &thread->reader, record, &parts))
            return false;
        code_seen = record->code;
        file_seen = print->file;
        file_sum = print->file_sum;
    }
    return true;
}

static void add_part(struct ms_python_batch *batch, uintptr_t at, uint64_t *into, size_t bytes)
{
    batch->from[batch->count] = (struct iovec){(void *)at, bytes};
    batch->to[batch->count++] = (struct iovec){into, bytes};
    batch->bytes += bytes;
}

static void add_record(const struct ms_python_layout *layout, struct ms_python_batch *batch, uint64_t *words,
                       const struct ms_python_record *record, struct ms_python_parts *parts)
{
    const struct ms_python_print *print = &record->print;
    uint64_t *code = words + 16, *file = code + 32, *name = file + 5, *lines = name + 5;
    *parts = (struct ms_python_parts){(uintptr_t)words, (uintptr_t)code,  (uintptr_t)file,
                                      (uintptr_t)name,  (uintptr_t)lines, (uintptr_t)(lines + LINES_WORDS)};
    add_part(batch, record->at, words, layout->frame_bytes);
    if (!record->is_told)
        return;
    add_part(batch, ms_python_code_of(layout, record), code, layout->code_bytes);
    if (print->version)
        return;
    add_part(batch, print->file, file, 40);
    add_part(batch, print->name, name, 40);
    add_part(batch, print->lines, lines, record->lines_bytes >= 16 ? 48 : 32);
    if (record->lines_bytes >= 24)
        add_part(batch, tail_of(print->lines, record->lines_bytes), lines + LINES_WORDS, 8);
}

/* Where the kernel does not allow it, part by part. */
static bool copy_parts(const struct ms_python_batch *batch)
{
    long got = syscall(SYS_process_vm_readv, getpid(), batch->to, (unsigned long)batch->count, batch->from,
                       (unsigned long)batch->count, 0);
    if (got == (long)batch->bytes)
        return true;
    for (unsigned i = 0; i < batch->count; i++) {
        if (!ms_memory_copy((uintptr_t)batch->from[i].iov_base, batch->to[i].iov_base, batch->to[i].iov_len))
            return false;
    }
    return true;
}

static bool is_same_copied(const struct ms_python_interpreter *interpreter, struct ms_python_thread *thread,
                           unsigned last, struct ms_python_batch *batch)
{
    const struct ms_python_layout *layout = &interpreter->layout;
    struct ms_python_parts *parts = batch->parts;
    for (unsigned end = last + 1; end > 0;) {
        unsigned count = end < MS_PYTHON_BATCH ? end : MS_PYTHON_BATCH;
        batch->count = 0;
        batch->bytes = 0;
        for (unsigned i = 0; i < count; i++)
            add_record(layout, batch, batch->words[i], &thread->records[end - 1 - i], &parts[i]);
        if (!copy_parts(batch))
            return false;
        for (unsigned i = 0; i < count; i++) {
            const struct ms_python_record *record = &thread->records[end - 1 - i];
            if (!is_same_frame(layout, record, parts[i].frame) ||
                !is_same_run(layout, record, end - 1 - i ? record - 1 : NULL) ||
                (record->is_told && !is_same_code(interpreter, &thread->reader, record, &parts[i])))
                return false;
        }
        end -= count;
    }
    return true;
}

bool ms_python_is_same(const struct ms_python_interpreter *interpreter, struct ms_python_thread *thread,
                       unsigned last)
{
    if (MS_LIKELY(!thread->reader.is_copying))
        return is_same_live(interpreter, thread, last);
    return is_same_copied(interpreter, thread, last, &thread->batch);
}

bool ms_python_print(const struct ms_python_interpreter *interpreter, struct ms_python_reader *reader,
                     const uint64_t *code, struct ms_python_print *print, uint32_t *lines_bytes_p)
{
    const struct ms_python_layout *layout = &interpreter->layout;
    uintptr_t at = (uintptr_t)code;
    uint64_t file[5], name[5], lines[LINES_WORDS], tail = 0, sum;
    *print = (struct ms_python_print){.file = ms_python_word(at + layout->code_file),
                                      .name = ms_python_word(at + layout->code_name),
                                      .lines = ms_python_word(at + layout->code_lines),
                                      .first_line = ms_python_half(at + layout->code_first_line)};
    if (layout->code_version)
        print->version = ms_python_half(at + layout->code_version);
    if ((print->file | print->name | print->lines) % 8 != 0 ||
        !ms_python_read_slowly(reader, print->file, file, sizeof file) ||
        !ms_python_read_slowly(reader, print->name, name, sizeof name) ||
        !ms_python_read_slowly(reader, print->lines, lines, 32) || lines[2] > INT32_MAX ||
        file[1] != interpreter->symbols.str_type || name[1] != interpreter->symbols.str_type)
        return false;
    if (lines[2] >= 16 && !ms_python_read_slowly(reader, print->lines + 32, lines + 4, 16))
        return false;
    if (lines[2] >= 24 && !ms_python_read_slowly(reader, tail_of(print->lines, lines[2]), &tail, sizeof tail))
        return false;
    if (!sum_text(reader, layout, print->file, (uintptr_t)file, &print->file_sum) ||
        !sum_text(reader, layout, print->name, (uintptr_t)name, &sum))
        return false;
    print->sum = sum_lines((uintptr_t)lines, (uintptr_t)&tail, lines[2], sum);
    *lines_bytes_p = (uint32_t)lines[2];
    return true;
}
