/* python_walk.c - following the chain of the calling thread's frames.
 *
 * Floor 1. No lock but for a code object that was never seen. Every word is read guarded and none is
 * believed: a chain that leads nowhere, in a circle, or to something that is no code object is no stack. */
#include "unwind/python/python_thread.h"

enum {
    OWNER_GENERATOR = 1,
    CODE_UNIT = 2, /* bytes of byte code, from 3.11 on */
    /* How far inside of what is remembered a frame is looked for that was met before: most stacks differ from
       the one before in their innermost frames. */
    WINDOW = 32,
    JOINS_MAX = 4,
};

struct walk {
    const struct ms_python_interpreter *interpreter;
    struct ms_python_thread *thread;
    struct ms_python_record *record; /* the one that is taken */
    uintptr_t cframe;
    unsigned told, joins;
    bool codes_stay;
};

static uint64_t word_of(const uint64_t *copy, unsigned offset)
{
    return copy[offset / sizeof *copy];
}

static uint32_t half_of(const uint64_t *copy, unsigned offset)
{
    return ((const uint32_t *)(const void *)copy)[offset / sizeof(uint32_t)];
}

/* True if the code object of which `code` is a copy is the one that had this print, by its number. */
static bool is_numbered(const struct ms_python_layout *layout, const uint64_t *code,
                        const struct ms_python_print *print)
{
    return print->version && half_of(code, layout->code_version) == print->version &&
           half_of(code, layout->code_first_line) == print->first_line &&
           word_of(code, layout->code_file) == print->file &&
           word_of(code, layout->code_name) == print->name &&
           word_of(code, layout->code_lines) == print->lines;
}

/* True if two prints, of the same place at two times, are of the same code object. */
static bool is_same_print(const struct ms_python_print *a, const struct ms_python_print *b)
{
    return a->version == b->version && a->file == b->file && a->name == b->name && a->lines == b->lines &&
           a->first_line == b->first_line && a->lines_bytes == b->lines_bytes &&
           ms_python_is_same_said(&a->file_said, &b->file_said) &&
           ms_python_is_same_said(&a->name_said, &b->name_said) && a->line_words[0] == b->line_words[0] &&
           a->line_words[1] == b->line_words[1] && a->line_words[2] == b->line_words[2];
}

/* Fills the record's print, with its row. */
static bool find_code(const struct walk *walk, const uint64_t *code)
{
    struct ms_python_thread *thread = walk->thread;
    struct ms_python_record *record = walk->record;
    uintptr_t at = ms_python_code_of(&walk->interpreter->layout, record);
    unsigned slot = (unsigned)((at >> 4 ^ at >> 12) % MS_PYTHON_KNOWN_CODES);
    struct ms_python_print *known = &thread->known[slot], *print = &record->print;
    if (thread->known_at[slot] == at && is_numbered(&walk->interpreter->layout, code, known)) {
        *print = *known;
        return true;
    }
    if (!ms_python_print(walk->interpreter, &thread->reader, code, print))
        return false;
    if (thread->known_at[slot] == at && is_same_print(known, print) &&
        ms_python_is_same_lines(&thread->reader, print, known->row)) {
        print->row = known->row;
        return true;
    }
    if (!ms_python_code_row(walk->interpreter, &thread->reader, &thread->texts, print))
        return false;
    thread->known_at[slot] = at;
    *known = *print;
    return true;
}

/* Finds the place in the byte code where the frame is; false if it can be nowhere. Frames are told once they
 * have begun with what a program can see of them, those of generators always: the interpreter's own rule. */
static bool python_walk_find_place(const struct ms_python_layout *layout, struct ms_python_record *record,
                                   const uint64_t *code, unsigned owner)
{
    uintptr_t begin = ms_python_code_of(layout, record) + layout->code_bytes;
    int64_t offset = (int64_t)(record->instr - begin);
    if (layout->instr_unit) {
        int32_t last = (int32_t)record->instr;
        record->offset = last < 0 ? MS_PYTHON_NOT_BEGUN : (uint32_t)last * layout->instr_unit;
        record->is_told = true;
        return last >= -1 && last < INT32_MAX / 2;
    }
    uint64_t units = word_of(code, MS_PYTHON_LENGTH);
    if (units > INT32_MAX / CODE_UNIT || offset < -CODE_UNIT || offset % CODE_UNIT != 0 ||
        offset >= (int64_t)units * CODE_UNIT)
        return false;
    record->offset = offset < 0 ? MS_PYTHON_NOT_BEGUN : (uint32_t)offset;
    record->is_told =
        owner == OWNER_GENERATOR || offset >= (int64_t)half_of(code, layout->code_traceable) * CODE_UNIT;
    return true;
}

static bool take_code(const struct walk *walk, unsigned owner)
{
    const struct ms_python_layout *layout = &walk->interpreter->layout;
    uint64_t code[MS_PYTHON_CODE_BYTES_MAX / sizeof(uint64_t)];
    uintptr_t at = ms_python_code_of(layout, walk->record);
    if (at % sizeof *code != 0 ||
        !ms_python_read_slowly(&walk->thread->reader, at, code, layout->code_bytes) ||
        word_of(code, MS_PYTHON_TYPE) != walk->interpreter->symbols.code_type ||
        !python_walk_find_place(layout, walk->record, code, owner))
        return false;
    if (layout->code_version) {
        walk->record->number_at = at + layout->code_version;
        walk->record->number = half_of(code, layout->code_version);
    }
    return !walk->record->is_told || find_code(walk, code);
}

/* The record of the frame at `at`; false if that is no frame. */
static bool take_frame(struct walk *walk, uintptr_t at)
{
    const struct ms_python_layout *layout = &walk->interpreter->layout;
    struct ms_python_record *record = walk->record;
    uint64_t frame[MS_PYTHON_FRAME_BYTES_MAX / sizeof(uint64_t)];
    if (at % sizeof *frame != 0 ||
        !ms_python_read_slowly(&walk->thread->reader, at, frame, layout->frame_bytes))
        return false;
    const unsigned char *bytes = (const unsigned char *)frame;
    unsigned owner = layout->frame_owner ? bytes[layout->frame_owner] : 0;
    *record = (struct ms_python_record){
        .at = at,
        .previous = word_of(frame, layout->frame_previous),
        .code = word_of(frame, layout->frame_code),
        .instr =
            layout->instr_unit ? half_of(frame, layout->frame_instr) : word_of(frame, layout->frame_instr),
        .cframe = walk->cframe,
        .is_entry = owner >= MS_PYTHON_OWNER_ENTRY,
    };
    record->ends_run = layout->chain == MS_PYTHON_CHAIN_OBJECTS || record->is_entry ||
                       (layout->chain == MS_PYTHON_CHAIN_CFRAMES && bytes[layout->frame_is_entry] != 0);
    if (record->is_entry) {
        record->number_at = at + (layout->frame_owner & ~3u);
        record->number = half_of(frame, layout->frame_owner);
        return layout->chain == MS_PYTHON_CHAIN_ENTRIES;
    }
    return take_code(walk, owner);
}

/* Which address tells the run that ends with this record, to the outermost frame that is told of it. */
static uintptr_t entry_of(const struct ms_python_layout *layout, const struct ms_python_record *record)
{
    if (layout->chain == MS_PYTHON_CHAIN_OBJECTS)
        return 1;
    return layout->chain == MS_PYTHON_CHAIN_CFRAMES ? record->cframe : record->at;
}

/* How many remembered records go on from the frame at `at`; 0 if it is not remembered. */
static unsigned python_walk_join(struct walk *walk, uintptr_t at)
{
    struct ms_python_thread *thread = walk->thread;
    unsigned last = thread->count > WINDOW ? thread->count - WINDOW : 0;
    for (unsigned i = thread->count; i-- > last;) {
        const struct ms_python_record *record = &thread->records[i];
        if (record->at != at)
            continue;
        if (record->cframe != walk->cframe || !(record->is_told || record->is_entry) ||
            ++walk->joins > JOINS_MAX)
            return 0;
        return ms_python_is_same(walk->interpreter, thread, i, walk->codes_stay) ? i + 1 : 0;
    }
    return 0;
}

static bool next_run(struct walk *walk)
{
    const struct ms_python_layout *layout = &walk->interpreter->layout;
    uint64_t next;
    if (layout->chain != MS_PYTHON_CHAIN_CFRAMES || !walk->record->ends_run)
        return true;
    if (walk->cframe % sizeof next != 0 ||
        !ms_python_read_slowly(&walk->thread->reader, walk->cframe + layout->cframe_previous, &next,
                               sizeof next))
        return false;
    walk->cframe = (uintptr_t)next;
    return true;
}

enum ms_python_walk ms_python_walk(const struct ms_python_interpreter *interpreter,
                                   struct ms_python_thread *thread, struct ms_python_head head,
                                   unsigned *fresh_p, unsigned *joined_p)
{
    struct walk walk = {
        .interpreter = interpreter, .thread = thread, .cframe = head.cframe, .codes_stay = head.codes_stay};
    struct ms_python_record *outermost = NULL; /* of this run, of those that are told */
    uintptr_t at = head.frame, marked = 0;
    unsigned count = 0;
    *joined_p = 0;
    for (; at; count++) {
        unsigned joined = python_walk_join(&walk, at);
        if (joined && outermost && thread->records[joined - 1].is_entry)
            outermost->entry = at;
        *joined_p = joined;
        *fresh_p = count;
        if (joined)
            return MS_PYTHON_WALKED;
        if (count == MS_PYTHON_RECORDS_MAX || walk.told == MS_PYTHON_DEPTH_MAX)
            return MS_PYTHON_CUT;
        walk.record = &thread->fresh[count];
        if (at == marked || !take_frame(&walk, at))
            return MS_PYTHON_ODD;
        if ((count & (count - 1)) == 0)
            marked = at;
        if (walk.record->is_told) {
            outermost = walk.record;
            walk.told++;
        }
        if (walk.record->ends_run && outermost) {
            outermost->entry = entry_of(&interpreter->layout, walk.record);
            outermost = NULL;
        }
        at = walk.record->previous;
        if (!next_run(&walk))
            return MS_PYTHON_ODD;
    }
    *fresh_p = count;
    return MS_PYTHON_WALKED;
}
