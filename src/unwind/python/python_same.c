/* python_same.c - whether the frames that are remembered are still those of the thread.
 *
 * Floor 1. No lock, no allocation. What is remembered is compared from the innermost frame outwards, and a
 * place is looked at only when something alive has led to it: the thread's state to the first frame, a frame
 * to the next and to its code, then all code objects to their strings. So plain loads do. A thread whose
 * frames another may take away meanwhile (python_read.h) has them copied first, all by one call of the
 * kernel.
 *
 * A frame that is where one was, with the same code object and caller, and at the same instruction, says the
 * same as that one, unless the code object is another in the same place: by its number that is seen, where
 * numbers are of one interpreter (python_life.h), and without a number there is none as long as no code
 * object went (python_life.h); else it is seen by its own words and, where it has no number, by its
 * strings. Whose part of the stack a frame is in (`owner`) need not be looked at: an entry of a run has a
 * code object that no other frame has, or none.
 *
 * This is what a stack that is taken again costs. What is compared lies side by side in arrays of its own,
 * differences are gathered where that is shorter than a branch each, and each loop is a function, so that
 * what it goes by stays in registers. */
#include <sys/syscall.h>
#include <unistd.h>

#include "base/compiler.h"
#include "unwind/python/python_thread.h"

/* The places where the parts of a code object are read: where they lie, or where they were copied to. */
struct parts {
    uintptr_t name, lines, head, tail;
};

/* The offsets, each as an address takes it. */
struct offsets {
    uintptr_t previous, code, instr, is_entry, cframe_previous;
};

/* Of a code object: `file` and what follows it, what precedes `lines` and it. */
struct code_offsets {
    uintptr_t first_line, file, lines;
};

/* Plain loads, so that the compiler may take the shortest. */
typedef uint64_t __attribute__((may_alias)) word;
typedef uint32_t __attribute__((may_alias)) half;
/* Two words in one load. */
typedef uint64_t __attribute__((may_alias, vector_size(16), aligned(8))) pair;
typedef uint64_t __attribute__((may_alias, vector_size(16))) known_pair;

/* Bits that are not as they were, of pairs and of single words, which are gathered, and looked at once. */
struct differing {
    pair pairs;
    uint64_t words;
};

static MS_INLINE MS_RAW pair differ(uintptr_t at, const ms_python_pair *known)
{
    return *(const pair *)at ^ *(const known_pair *)known;
}

static MS_INLINE bool is_none(const struct differing *differing)
{
    return (differing->pairs[0] | differing->pairs[1] | differing->words) == 0;
}

static MS_INLINE MS_RAW bool is_word(uintptr_t at, uintptr_t offset, uint64_t known)
{
    return *(const word *)(at + offset) == known;
}

static MS_INLINE MS_RAW bool is_half(uintptr_t at, uintptr_t offset, uint32_t known)
{
    return *(const half *)(at + offset) == known;
}

static MS_INLINE MS_RAW bool is_byte(uintptr_t at, uintptr_t offset, unsigned char known)
{
    return *(const unsigned char *)(at + offset) == known;
}

static MS_INLINE struct offsets offsets_of(const struct ms_python_layout *layout)
{
    return (struct offsets){.previous = layout->frame_previous,
                            .code = layout->frame_code,
                            .instr = layout->frame_instr,
                            .is_entry = layout->frame_is_entry,
                            .cframe_previous = layout->cframe_previous};
}

static MS_INLINE struct code_offsets code_offsets_of(const struct ms_python_layout *layout)
{
    return (struct code_offsets){layout->code_first_line, layout->code_file, layout->code_lines - 8u};
}

/* True if a record is still the frame that is read at `frame`: where it lies, or a copy. */
static MS_INLINE MS_RAW bool is_same_frame(const struct offsets *offsets, enum ms_python_chain chain,
                                           const struct ms_python_trail *trail, uintptr_t frame)
{
    if (!is_word(frame, offsets->code, trail->code) || !is_word(frame, offsets->previous, trail[-1].at))
        return false;
    if (chain == MS_PYTHON_CHAIN_OBJECTS)
        return is_half(frame, offsets->instr, (uint32_t)trail->instr);
    return is_word(frame, offsets->instr, trail->instr) &&
           (chain != MS_PYTHON_CHAIN_CFRAMES || is_byte(frame, offsets->is_entry, trail->ends_run));
}

/* 3.11: the run's record leads to the next run's. It lies on this thread's stack, or in the thread's state.
 */
static MS_INLINE MS_RAW bool is_same_run(const struct offsets *offsets, const struct ms_python_thread *thread,
                                         const struct ms_python_trail *trail)
{
    const struct ms_python_record *record = &thread->records[trail - thread->trail - 1];
    return !trail->ends_run || record == thread->records ||
           is_word(record->cframe, offsets->cframe_previous, record[-1].cframe);
}

static MS_INLINE MS_RAW void compare_head(struct differing *differing, const struct code_offsets *offsets,
                                          const struct ms_python_content *content, uintptr_t code)
{
    differing->pairs |=
        differ(code + offsets->file, &content->of_file) | differ(code + offsets->lines, &content->of_lines);
    differing->words |= *(const half *)(code + offsets->first_line) ^ content->first_line;
}

/* Compares what the strings say of a code object that has no number. Characters are another matter
 * (is_same_texts). */
static MS_INLINE MS_RAW void compare_said(struct differing *differing,
                                          const struct ms_python_content *content, const struct parts *parts)
{
    differing->pairs |= differ(parts->lines + MS_PYTHON_LENGTH, &content->lines_said) |
                        differ(parts->head, &content->head) |
                        differ(parts->name + MS_PYTHON_LENGTH, &content->name_said);
    differing->words |= *(const word *)parts->tail ^ content->tail;
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

/* File names, and the rare names of functions without a hash. */
static MS_INLINE bool is_same_texts(const struct ms_python_interpreter *interpreter,
                                    struct ms_python_reader *reader, const struct ms_python_print *print,
                                    uintptr_t file, uintptr_t name)
{
    return is_same_text(interpreter, reader, print->file, file, &print->file_said) &&
           is_same_text(interpreter, reader, print->name, name, &print->name_said);
}

static MS_INLINE MS_RAW bool are_same_frames(const struct offsets *offsets, enum ms_python_chain chain,
                                             const struct ms_python_thread *thread, unsigned last)
{
    for (const struct ms_python_trail *trail = &thread->trail[last + 1]; trail->at; trail--) {
        if (!is_same_frame(offsets, chain, trail, trail->at))
            return false;
        if (chain == MS_PYTHON_CHAIN_ENTRIES && !is_half(trail->number_at, 0, trail->number))
            return false;
        if (chain == MS_PYTHON_CHAIN_CFRAMES && !is_same_run(offsets, thread, trail))
            return false;
    }
    return true;
}

/* Functions of their own, so that what they go by is kept in registers. */
static MS_NOINLINE MS_RAW bool are_same_heads(const struct ms_python_layout *layout,
                                              const struct ms_python_content *content, unsigned count)
{
    const struct code_offsets offsets = code_offsets_of(layout);
    struct differing differing = {{0, 0}, 0};
    for (const struct ms_python_content *end = content + count; content < end; content++)
        compare_head(&differing, &offsets, content, content->code);
    return is_none(&differing);
}

/* `all`: none has a number. */
static MS_INLINE MS_RAW bool are_said(const struct ms_python_content *content, unsigned count, bool all)
{
    struct differing differing = {{0, 0}, 0};
    for (const struct ms_python_content *end = content + count; content < end; content++) {
        struct parts parts = {content->name, content->lines, content->head_at, content->tail_at};
        if (all || !content->is_numbered)
            compare_said(&differing, content, &parts);
    }
    return is_none(&differing);
}

static MS_NOINLINE MS_RAW bool are_all_said(const struct ms_python_content *content, unsigned count)
{
    return are_said(content, count, true);
}

static MS_NOINLINE MS_RAW bool are_some_said(const struct ms_python_content *content, unsigned count)
{
    return are_said(content, count, false);
}

static MS_RAW bool are_same_texts(const struct ms_python_interpreter *interpreter,
                                  struct ms_python_thread *thread, unsigned last)
{
    for (unsigned i = 0; i < thread->texts_count && thread->texts_of[i] <= last; i++) {
        const struct ms_python_print *print = &thread->records[thread->texts_of[i]].print;
        if (!is_same_texts(interpreter, &thread->reader, print, print->file, print->name))
            return false;
    }
    return true;
}

static MS_NOINLINE MS_RAW bool is_same_by_numbers(const struct ms_python_layout *layout,
                                                  const struct ms_python_thread *thread, unsigned last)
{
    const struct offsets offsets = offsets_of(layout);
    return are_same_frames(&offsets, MS_PYTHON_CHAIN_ENTRIES, thread, last);
}

static MS_NOINLINE MS_RAW bool are_same_chained(const struct ms_python_layout *layout,
                                                const struct ms_python_thread *thread, unsigned last)
{
    const struct offsets offsets = offsets_of(layout);
    return layout->chain == MS_PYTHON_CHAIN_CFRAMES
               ? are_same_frames(&offsets, MS_PYTHON_CHAIN_CFRAMES, thread, last)
               : are_same_frames(&offsets, MS_PYTHON_CHAIN_OBJECTS, thread, last);
}

/* True if the print's file name says something new: what a file name says need be looked at but once. */
static bool is_news(const struct ms_python_thread *thread, const struct ms_python_print *print)
{
    for (unsigned i = 0; i < thread->texts_count; i++) {
        const struct ms_python_print *known = &thread->records[thread->texts_of[i]].print;
        if (known->file == print->file && known->file_said.sum == print->file_said.sum)
            return false;
    }
    return true;
}

static void remember_content(const struct ms_python_layout *layout, struct ms_python_content *content,
                             const struct ms_python_record *record)
{
    const struct ms_python_print *print = &record->print;
    uintptr_t code = ms_python_code_of(layout, record);
    *content = (struct ms_python_content){
        .code = code,
        .name = print->name,
        .lines = print->lines,
        .head_at = (uintptr_t)&content->head,
        .tail_at = (uintptr_t)&content->tail,
        .of_file = {{print->file, print->beside[0]}},
        .of_lines = {{print->beside[1], print->lines}},
        .first_line = print->first_line,
        .is_numbered = print->version != 0,
        .lines_said = {{print->lines_bytes, print->lines_hash}},
        .head = {{print->line_words[0], print->line_words[1]}},
        .name_said = {{print->name_said.bytes, print->name_said.hash}},
        .tail = print->line_words[2],
    };
    if (print->lines_bytes >= MS_PYTHON_LINES_HEAD)
        content->head_at = print->lines + MS_PYTHON_BYTES_DATA;
    if (print->lines_bytes >= MS_PYTHON_LINES_TAIL)
        content->tail_at = ms_python_tail_of(print->lines, print->lines_bytes);
}

void ms_python_remember(const struct ms_python_layout *layout, struct ms_python_thread *thread,
                        unsigned index)
{
    const struct ms_python_record *record = &thread->records[index];
    thread->trail[index + 1] = (struct ms_python_trail){.at = record->at,
                                                        .code = record->code,
                                                        .instr = record->instr,
                                                        .number_at = record->number_at,
                                                        .number = record->number,
                                                        .ends_run = record->ends_run};
    if (index == 0)
        thread->is_numbered = true;
    while (thread->texts_count && (index == 0 || thread->texts_of[thread->texts_count - 1] >= index))
        thread->texts_count--;
    if (!record->is_told)
        return;
    remember_content(layout, &thread->contents[record->frames - 1], record);
    if (record->print.version)
        return;
    thread->is_numbered = false;
    if (is_news(thread, &record->print) || (int64_t)record->print.name_said.hash == MS_PYTHON_NO_HASH)
        thread->texts_of[thread->texts_count++] = (uint16_t)index;
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

/* True if the record's strings are looked at. */
static bool has_texts(const struct ms_python_thread *thread, unsigned index)
{
    for (unsigned i = thread->texts_count; i-- > 0 && thread->texts_of[i] >= index;) {
        if (thread->texts_of[i] == index)
            return true;
    }
    return false;
}

/* Of records `last`, last - 1 and so on. Frames first: they lie side by side. A part that is not looked at
 * has a range that is not its own. */
static void add_records(const struct ms_python_layout *layout, struct ms_python_thread *thread, unsigned last,
                        unsigned count, bool frames_only)
{
    struct ms_python_batch *batch = &thread->batch;
    batch->count = 0;
    for (unsigned i = 0; i < count; i++) {
        unsigned range = add_part(batch, thread->records[last - i].at, layout->frame_bytes, MS_PYTHON_GAP);
        batch->ranges[i] = (struct ms_python_ranges){.frame = range};
    }
    if (frames_only)
        return;
    for (unsigned i = 0; i < count; i++) {
        const struct ms_python_record *record = &thread->records[last - i];
        const struct ms_python_print *print = &record->print;
        struct ms_python_ranges *ranges = &batch->ranges[i];
        if (record->code && !record->is_entry)
            ranges->code = add_part(batch, ms_python_code_of(layout, record), layout->code_bytes, 0);
        if (!record->is_told || print->version)
            continue;
        ranges->has_texts = has_texts(thread, last - i);
        if (ranges->has_texts)
            ranges->file = add_part(batch, print->file, MS_PYTHON_TEXT_HEAD_BYTES, 0);
        ranges->name = add_part(batch, print->name, MS_PYTHON_TEXT_HEAD_BYTES, 0);
        ranges->lines =
            add_part(batch, print->lines, print->lines_bytes >= MS_PYTHON_LINES_HEAD ? 48 : 32, 0);
        if (print->lines_bytes >= MS_PYTHON_LINES_TAIL)
            ranges->tail =
                add_part(batch, ms_python_tail_of(print->lines, print->lines_bytes), 8, MS_PYTHON_GAP);
    }
}

/* All ranges are copied at once, or, if the kernel does not allow that, one by one. */
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

/* The number of a code object, or of an entry of a run. */
static bool is_same_number(const struct ms_python_batch *batch, const struct ms_python_ranges *ranges,
                           const struct ms_python_record *record)
{
    unsigned range = record->is_entry ? ranges->frame : ranges->code;
    return is_half(copy_of(batch, range, record->number_at), 0, record->number);
}

static bool is_same_copy(const struct ms_python_interpreter *interpreter, struct ms_python_thread *thread,
                         const struct offsets *offsets, const struct code_offsets *code_offsets,
                         unsigned index, const struct ms_python_ranges *ranges, bool frames_only)
{
    enum ms_python_chain chain = interpreter->layout.chain;
    const struct ms_python_batch *batch = &thread->batch;
    const struct ms_python_record *record = &thread->records[index];
    const struct ms_python_trail *trail = &thread->trail[index + 1];
    if (!is_same_frame(offsets, chain, trail, copy_of(batch, ranges->frame, record->at)) ||
        (chain == MS_PYTHON_CHAIN_CFRAMES && !is_same_run(offsets, thread, trail)) ||
        (chain == MS_PYTHON_CHAIN_ENTRIES && !is_same_number(batch, ranges, record)))
        return false;
    if (!record->is_told || frames_only)
        return true;
    const struct ms_python_content *content = &thread->contents[record->frames - 1];
    struct differing differing = {{0, 0}, 0};
    compare_head(&differing, code_offsets, content, copy_of(batch, ranges->code, content->code));
    if (content->is_numbered || !is_none(&differing))
        return is_none(&differing);
    struct parts parts = {.name = copy_of(batch, ranges->name, content->name),
                          .lines = copy_of(batch, ranges->lines, content->lines),
                          .head = content->lines_said.words[0] < MS_PYTHON_LINES_HEAD
                                      ? content->head_at
                                      : copy_of(batch, ranges->lines, content->head_at),
                          .tail = content->lines_said.words[0] < MS_PYTHON_LINES_TAIL
                                      ? content->tail_at
                                      : copy_of(batch, ranges->tail, content->tail_at)};
    compare_said(&differing, content, &parts);
    return is_none(&differing) &&
           (!ranges->has_texts ||
            is_same_texts(interpreter, &thread->reader, &record->print,
                          copy_of(batch, ranges->file, record->print.file), parts.name));
}

static MS_NOINLINE bool is_same_copied(const struct ms_python_interpreter *interpreter,
                                       struct ms_python_thread *thread, unsigned last, bool frames_only)
{
    const struct offsets offsets = offsets_of(&interpreter->layout);
    const struct code_offsets code_offsets = code_offsets_of(&interpreter->layout);
    for (unsigned end = last + 1; end > 0;) {
        unsigned count = end < MS_PYTHON_BATCH ? end : MS_PYTHON_BATCH;
        add_records(&interpreter->layout, thread, end - 1, count, frames_only);
        if (!copy_ranges(&thread->batch))
            return false;
        for (unsigned i = 0; i < count; i++) {
            if (!is_same_copy(interpreter, thread, &offsets, &code_offsets, end - 1 - i,
                              &thread->batch.ranges[i], frames_only))
                return false;
        }
        end -= count;
    }
    return true;
}

bool ms_python_is_same(const struct ms_python_interpreter *interpreter, struct ms_python_thread *thread,
                       unsigned last, bool codes_stay)
{
    const struct ms_python_layout *layout = &interpreter->layout;
    bool may_have_numbers = layout->chain == MS_PYTHON_CHAIN_ENTRIES;
    if (MS_UNLIKELY(thread->reader.is_copying))
        return is_same_copied(interpreter, thread, last, codes_stay && !may_have_numbers);
    if (!(may_have_numbers ? is_same_by_numbers(layout, thread, last)
                           : are_same_chained(layout, thread, last)))
        return false;
    if (MS_LIKELY(codes_stay && (thread->is_numbered || !may_have_numbers)))
        return true;
    unsigned count = thread->records[last].frames;
    if (!are_same_heads(layout, thread->contents, count))
        return false;
    return (may_have_numbers ? are_some_said(thread->contents, count)
                             : are_all_said(thread->contents, count)) &&
           are_same_texts(interpreter, thread, last);
}
