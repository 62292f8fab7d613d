/* python_print.c - what a code object and its strings say, to be known again.
 *
 * Floor 1. No lock, no allocation. */
#include "base/compiler.h"
#include "unwind/python/python_thread.h"

enum { CHUNK_WORDS = 32 };

/* The words of characters; of the last those bytes that belong to them, which lie in the same page. */
static inline uint64_t turn(uint64_t sum, uint64_t word)
{
    return (sum << 7 | sum >> 57) ^ word;
}

static inline uint64_t last_bytes(uint64_t word, uint64_t bytes)
{
    return word & (((uint64_t)1 << bytes % 8 * 8) - 1);
}

static MS_RAW uint64_t sum_live(uintptr_t from, uint64_t bytes)
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

/* The sum of the characters. Where the head is read where it lies, they are, too. */
static MS_RAW bool sum_text(const struct ms_python_layout *layout, struct ms_python_reader *reader,
                            uintptr_t live, uintptr_t at, uint64_t *sum_p)
{
    uint64_t bytes = ms_python_word(at + MS_PYTHON_LENGTH);
    uint32_t state = ms_python_half(at + MS_PYTHON_TEXT_STATE);
    uintptr_t text = live + (state >> 6 & 1 ? layout->text_ascii : layout->text_compact);
    bytes = bytes < MS_PYTHON_FILE_BYTES_MAX ? bytes * (state >> 2 & 7) : 0;
    if (live != at)
        return sum_guarded(reader, text, bytes, sum_p);
    *sum_p = sum_live(text, bytes);
    return true;
}

bool ms_python_is_same_text(const struct ms_python_layout *layout, struct ms_python_reader *reader,
                            uintptr_t live, uintptr_t at, const struct ms_python_said *said)
{
    uint64_t sum;
    return sum_text(layout, reader, live, at, &sum) && sum == said->sum;
}

static bool read_text(const struct ms_python_interpreter *interpreter, struct ms_python_reader *reader,
                      uintptr_t live, struct ms_python_said *said_p)
{
    uint64_t head[MS_PYTHON_TEXT_HEAD_BYTES / sizeof(uint64_t)];
    if (!ms_python_read_slowly(reader, live, head, sizeof head) ||
        head[MS_PYTHON_TYPE / sizeof *head] != interpreter->symbols.str_type)
        return false;
    *said_p = (struct ms_python_said){.bytes = head[MS_PYTHON_LENGTH / sizeof *head],
                                      .hash = head[MS_PYTHON_HASH / sizeof *head],
                                      .sum = head[MS_PYTHON_HASH / sizeof *head]};
    return (int64_t)said_p->hash != MS_PYTHON_NO_HASH ||
           sum_text(&interpreter->layout, reader, live, (uintptr_t)head, &said_p->sum);
}

static bool read_lines(struct ms_python_reader *reader, struct ms_python_print *print)
{
    uint64_t said[2];
    if (!ms_python_read_slowly(reader, print->lines + MS_PYTHON_LENGTH, said, sizeof said) ||
        said[0] > INT32_MAX)
        return false;
    uint64_t bytes = said[0];
    print->lines_hash = said[1];
    print->lines_bytes = (uint32_t)bytes;
    if (bytes >= MS_PYTHON_LINES_HEAD && !ms_python_read_slowly(reader, print->lines + MS_PYTHON_BYTES_DATA,
                                                                print->line_words, 2 * sizeof(uint64_t)))
        return false;
    return bytes < MS_PYTHON_LINES_TAIL ||
           ms_python_read_slowly(reader, ms_python_tail_of(print->lines, bytes), &print->line_words[2],
                                 sizeof(uint64_t));
}

bool ms_python_print(const struct ms_python_interpreter *interpreter, struct ms_python_reader *reader,
                     const uint64_t *code, struct ms_python_print *print)
{
    const struct ms_python_layout *layout = &interpreter->layout;
    uintptr_t at = (uintptr_t)code;
    *print = (struct ms_python_print){
        .file = ms_python_word(at + layout->code_file),
        .name = ms_python_word(at + layout->code_name),
        .lines = ms_python_word(at + layout->code_lines),
        .beside = {ms_python_word(at + layout->code_file + 8), ms_python_word(at + layout->code_lines - 8)},
        .first_line = ms_python_half(at + layout->code_first_line)};
    if (layout->code_version)
        print->version = ms_python_half(at + layout->code_version);
    return (print->file | print->name | print->lines) % 8 == 0 && read_lines(reader, print) &&
           read_text(interpreter, reader, print->file, &print->file_said) &&
           read_text(interpreter, reader, print->name, &print->name_said);
}
