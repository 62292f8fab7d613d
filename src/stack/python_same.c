/* python_same.c - whether the frames that are remembered are still those of the thread.
 *
 * Floor 1. No lock, no allocation. What is remembered is compared from the innermost frame outwards, and a
 * place is looked at only when something alive has just led to it: the thread's state to the first frame, a
 * frame to the next and to its code, a code object to its strings. So plain loads do. A thread whose frames
 * another may take away meanwhile (python_read.h) has them copied first, all by one call of the kernel.
 *
 * This is what a stack that is taken again costs. Words are compared as they are, those of one object
 * together, and each kind of interpreter has a loop of its own, made of the same functions. */
#include "config.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "base/compiler.h"
#include "stack/python_thread.h"

/* Where the parts of a code object are read: where they lie, or where they were copied to. */
struct parts {
    uintptr_t code, file, name, lines, tail;
};

/* The offsets, each as an address takes it. */
struct offsets {
    uintptr_t previous, code, instr, owner, is_entry, cframe_previous;
    uintptr_t first_line, file, name, lines, version;
};

/* Plain loads, so that the compiler may take the shortest. */
typedef uint64_t __attribute__((may_alias)) word;
typedef uint32_t __attribute__((may_alias)) half;

static MS_INLINE MS_RAW bool is_word(uintptr_t at, uintptr_t offset, uint64_t known)
{
    return *(const word *)(at + offset) == known;
}

static MS_INLINE MS_RAW bool is_half(uintptr_t at, uintptr_t offset, uint32_t known)
{
    return *(const half *)(at + offset) == known;
}

static MS_INLINE MS_RAW bool is_least(uintptr_t at, uintptr_t offset, unsigned least, bool known)
{
    return (*(const unsigned char *)(at + offset) >= least) == known;
}

static MS_INLINE struct offsets offsets_of(const struct ms_python_layout *layout)
{
    return (struct offsets){.previous = layout->frame_previous,
                            .code = layout->frame_code,
                            .instr = layout->frame_instr,
                            .owner = layout->frame_owner,
                            .is_entry = layout->frame_is_entry,
                            .cframe_previous = layout->cframe_previous,
                            .first_line = layout->code_first_line,
                            .file = layout->code_file,
                            .name = layout->code_name,
                            .lines = layout->code_lines,
                            .version = layout->code_version};
}

static MS_INLINE MS_RAW bool is_same_frame(const struct offsets *offsets, enum ms_python_chain chain,
                                           const struct ms_python_record *record, uintptr_t frame)
{
    if (!is_word(frame, offsets->previous, record->previous) || !is_word(frame, offsets->code, record->code))
        return false;
    if (chain == MS_PYTHON_CHAIN_OBJECTS)
        return is_half(frame, offsets->instr, (uint32_t)record->instr);
    if (!is_word(frame, offsets->instr, record->instr))
        return false;
    if (chain == MS_PYTHON_CHAIN_CFRAMES)
        return is_least(frame, offsets->is_entry, 1, record->ends_run);
    return is_least(frame, offsets->owner, MS_PYTHON_OWNER_ENTRY, record->is_entry);
}

/* 3.11: the run's record leads to the next run's. It lies on this thread's stack, or in the thread's state.
 */
static MS_INLINE MS_RAW bool is_same_run(const struct offsets *offsets, enum ms_python_chain chain,
                                         const struct ms_python_record *record, bool is_outermost)
{
    return chain != MS_PYTHON_CHAIN_CFRAMES || !record->ends_run || is_outermost ||
           is_word(record->cframe, offsets->cframe_previous, record[-1].cframe);
}

static MS_INLINE MS_RAW bool is_same_head(const struct offsets *offsets, const struct ms_python_print *print,
                                          uintptr_t code)
{
    return is_word(code, offsets->file, print->file) && is_word(code, offsets->name, print->name) &&
           is_word(code, offsets->lines, print->lines) &&
           is_half(code, offsets->first_line, print->first_line);
}

/* By its hash, where it has one. */
static MS_INLINE MS_RAW bool is_same_text(const struct ms_python_interpreter *interpreter,
                                          struct ms_python_reader *reader, uintptr_t live, uintptr_t at,
                                          const struct ms_python_said *said)
{
    return is_word(at, MS_PYTHON_HASH, said->hash) &&
           (MS_LIKELY((int64_t)said->hash != MS_PYTHON_NO_HASH) ||
            (is_word(at, MS_PYTHON_LENGTH, said->bytes) &&
             ms_python_is_same_text(&interpreter->layout, reader, live, at, said)));
}

static MS_INLINE MS_RAW bool is_same_lines(const struct ms_python_print *print, const struct parts *parts)
{
    if (!is_word(parts->lines, MS_PYTHON_LENGTH, print->lines_bytes))
        return false;
    if (MS_LIKELY(print->lines_bytes >= MS_PYTHON_LINES_HEAD) &&
        (!is_word(parts->lines, MS_PYTHON_BYTES_DATA, print->line_words[0]) ||
         !is_word(parts->lines, MS_PYTHON_BYTES_DATA + 8, print->line_words[1])))
        return false;
    return print->lines_bytes < MS_PYTHON_LINES_TAIL || is_word(parts->tail, 0, print->line_words[2]);
}

/* Of a code object that has no number. `has_file`: what that says is not known yet. */
static MS_INLINE MS_RAW bool is_same_content(const struct ms_python_interpreter *interpreter,
                                             struct ms_python_reader *reader,
                                             const struct ms_python_print *print, const struct parts *parts,
                                             bool has_file)
{
    return is_same_lines(print, parts) &&
           is_same_text(interpreter, reader, print->name, parts->name, &print->name_said) &&
           (!has_file || is_same_text(interpreter, reader, print->file, parts->file, &print->file_said));
}

/* Of which file the frame before was: most neighbours are of one. */
struct seen {
    uintptr_t file;
    uint64_t sum;
};

/* Whether what the file says is not known from the frame before. */
static MS_INLINE bool is_news(struct seen *seen, const struct ms_python_print *print)
{
    bool is_known = seen->file == print->file && seen->sum == print->file_said.sum;
    *seen = (struct seen){print->file, print->file_said.sum};
    return !is_known;
}

/* Whether a record is still the frame that is read at `frame`, whose code object's parts are read at `parts`:
 * where they lie, or copies. */
static MS_INLINE MS_RAW bool is_same_record(const struct ms_python_interpreter *interpreter,
                                            const struct offsets *offsets, enum ms_python_chain chain,
                                            struct ms_python_thread *thread,
                                            const struct ms_python_record *record, uintptr_t frame,
                                            const struct parts *parts, struct seen *seen)
{
    const struct ms_python_print *print = &record->print;
    if (!is_same_frame(offsets, chain, record, frame) ||
        !is_same_run(offsets, chain, record, record == thread->records))
        return false;
    if (!record->is_told)
        return true;
    if (!is_same_head(offsets, print, parts->code))
        return false;
    /* Numbers begin anew with an interpreter: by itself this would not do. */
    if (chain == MS_PYTHON_CHAIN_ENTRIES && MS_LIKELY(print->version))
        return is_half(parts->code, offsets->version, print->version);
    return is_same_content(interpreter, &thread->reader, print, parts, is_news(seen, print));
}

static MS_INLINE MS_RAW bool is_same_live(const struct ms_python_interpreter *interpreter,
                                          enum ms_python_chain chain, struct ms_python_thread *thread,
                                          unsigned last)
{
    const struct offsets offsets = offsets_of(&interpreter->layout);
    struct seen seen = {0, 0};
    for (unsigned i = last + 1; i-- > 0;) {
        const struct ms_python_record *record = &thread->records[i];
        const struct ms_python_print *print = &record->print;
        struct parts parts = {ms_python_code_of(&interpreter->layout, record), print->file, print->name,
                              print->lines, ms_python_tail_of(print->lines, print->lines_bytes)};
        if (!is_same_record(interpreter, &offsets, chain, thread, record, record->at, &parts, &seen))
            return false;
    }
    return true;
}

/* Lets the last range reach a part that lies near its ends, or opens one; returns which. No page lies between
 * the two, so that what may be read of them may be read between them. */
static unsigned add_part(struct ms_python_batch *batch, uintptr_t at, size_t bytes, size_t gap)
{
    if (batch->count) {
        struct iovec *range = &batch->from[batch->count - 1];
        uintptr_t begin = (uintptr_t)range->iov_base, end = begin + range->iov_len;
        uintptr_t new_begin = at < begin ? at : begin, new_end = at + bytes > end ? at + bytes : end;
        if (new_end - new_begin <= end - begin + bytes + gap) {
            *range = (struct iovec){(void *)new_begin, new_end - new_begin};
            return batch->count - 1;
        }
    }
    batch->from[batch->count] = (struct iovec){(void *)at, bytes};
    return batch->count++;
}

/* Frames first: they lie side by side. A part that is not looked at has a range that is not its own. */
static void add_records(const struct ms_python_layout *layout, struct ms_python_batch *batch,
                        const struct ms_python_record *first, unsigned count)
{
    struct seen seen = {0, 0};
    batch->count = 0;
    for (unsigned i = 0; i < count; i++) {
        unsigned range = add_part(batch, (first - i)->at, layout->frame_bytes, MS_PYTHON_GAP);
        batch->ranges[i] = (struct ms_python_ranges){.frame = range};
    }
    for (unsigned i = 0; i < count; i++) {
        const struct ms_python_record *record = first - i;
        const struct ms_python_print *print = &record->print;
        struct ms_python_ranges *ranges = &batch->ranges[i];
        if (!record->is_told)
            continue;
        ranges->code = add_part(batch, ms_python_code_of(layout, record), layout->code_bytes, 0);
        if (print->version)
            continue;
        if (is_news(&seen, print))
            ranges->file = add_part(batch, print->file, MS_PYTHON_TEXT_HEAD_BYTES, 0);
        ranges->name = add_part(batch, print->name, MS_PYTHON_TEXT_HEAD_BYTES, 0);
        ranges->lines =
            add_part(batch, print->lines, print->lines_bytes >= MS_PYTHON_LINES_HEAD ? 48 : 32, 0);
        if (print->lines_bytes >= MS_PYTHON_LINES_TAIL)
            ranges->tail =
                add_part(batch, ms_python_tail_of(print->lines, print->lines_bytes), 8, MS_PYTHON_GAP);
    }
}

/* Where the kernel does not allow all at once, one by one. */
static bool copy_ranges(struct ms_python_batch *batch)
{
    size_t bytes = 0, words = 0;
    for (unsigned i = 0; i < batch->count; i++) {
        batch->to[i] = (struct iovec){batch->words + words, batch->from[i].iov_len};
        words += (batch->from[i].iov_len + 7) / 8;
        bytes += batch->from[i].iov_len;
    }
    long got = syscall(SYS_process_vm_readv, getpid(), batch->to, (unsigned long)batch->count, batch->from,
                       (unsigned long)batch->count, 0);
    if (got == (long)bytes)
        return true;
    for (unsigned i = 0; i < batch->count; i++) {
        if (!ms_memory_copy((uintptr_t)batch->from[i].iov_base, batch->to[i].iov_base,
                            batch->from[i].iov_len))
            return false;
    }
    return true;
}

static uintptr_t copy_of(const struct ms_python_batch *batch, unsigned range, uintptr_t live)
{
    return (uintptr_t)batch->to[range].iov_base + (live - (uintptr_t)batch->from[range].iov_base);
}

static bool is_same_copied(const struct ms_python_interpreter *interpreter, struct ms_python_thread *thread,
                           unsigned last)
{
    const struct ms_python_layout *layout = &interpreter->layout;
    const struct offsets offsets = offsets_of(layout);
    struct ms_python_batch *batch = &thread->batch;
    for (unsigned end = last + 1; end > 0;) {
        const struct ms_python_record *first = &thread->records[end - 1];
        unsigned count = end < MS_PYTHON_BATCH ? end : MS_PYTHON_BATCH;
        struct seen seen = {0, 0};
        add_records(layout, batch, first, count);
        if (!copy_ranges(batch))
            return false;
        for (unsigned i = 0; i < count; i++) {
            const struct ms_python_record *record = first - i;
            const struct ms_python_print *print = &record->print;
            const struct ms_python_ranges *ranges = &batch->ranges[i];
            struct parts parts = {
                copy_of(batch, ranges->code, ms_python_code_of(layout, record)),
                copy_of(batch, ranges->file, print->file), copy_of(batch, ranges->name, print->name),
                copy_of(batch, ranges->lines, print->lines),
                copy_of(batch, ranges->tail, ms_python_tail_of(print->lines, print->lines_bytes))};
            if (!is_same_record(interpreter, &offsets, layout->chain, thread, record,
                                copy_of(batch, ranges->frame, record->at), &parts, &seen))
                return false;
        }
        end -= count;
    }
    return true;
}

MS_RAW bool ms_python_is_same(const struct ms_python_interpreter *interpreter,
                              struct ms_python_thread *thread, unsigned last)
{
    if (MS_UNLIKELY(thread->reader.is_copying))
        return is_same_copied(interpreter, thread, last);
    if (interpreter->layout.chain == MS_PYTHON_CHAIN_ENTRIES)
        return is_same_live(interpreter, MS_PYTHON_CHAIN_ENTRIES, thread, last);
    if (interpreter->layout.chain == MS_PYTHON_CHAIN_CFRAMES)
        return is_same_live(interpreter, MS_PYTHON_CHAIN_CFRAMES, thread, last);
    return is_same_live(interpreter, MS_PYTHON_CHAIN_OBJECTS, thread, last);
}
