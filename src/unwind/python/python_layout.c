/* python_layout.c - the layout of one interpreter, from its version and from what it says of itself.
 *
 * Floor 1. No lock, no allocation. Code objects are described by the members of PyCode_Type, which it
 * exports; frames from 3.13 on by the offsets that it has for debuggers (_Py_DebugOffsets), whose own layout
 * differs from one minor version to the next; before, by the tables below, as the headers of those versions
 * have them. Whatever is outside of what it can be makes the interpreter one that is not read. */
#include <string.h>

#include "base/compiler.h"
#include "unwind/native/memory.h"
#include "unwind/python/python_layout.h"

enum {
    TYPE_BASIC_SIZE = 32,
    TYPE_MEMBERS = 240,
    MEMBERS_MAX = 64,
    MEMBER_NAME_BYTES = 24,
    /* _co_firsttraceable, a pointer for others, and then the byte code: 3.11 to 3.15. */
    TRACEABLE_BEFORE_BYTES = 16,
    /* co_version behind co_firstlineno: five other numbers lie between, 3.12 to 3.15. */
    VERSION_BEHIND_BYTES = 24,
};

struct member {
    uint64_t name;
    int32_t type, unused;
    int64_t offset;
    int64_t flags;
    uint64_t doc;
};

/** The frames of versions that do not describe them. */
static const struct {
    uint32_t minor;
    struct ms_python_layout layout;
} tables[] = {
    {9,
     {.chain = MS_PYTHON_CHAIN_OBJECTS,
      .state_thread_id = 176,
      .state_frame = 24,
      .frame_previous = 24,
      .frame_code = 32,
      .frame_instr = 104,
      .frame_bytes = 112,
      .instr_unit = 1}},
    {10,
     {.chain = MS_PYTHON_CHAIN_OBJECTS,
      .state_thread_id = 176,
      .state_frame = 24,
      .frame_previous = 24,
      .frame_code = 32,
      .frame_instr = 96,
      .frame_bytes = 104,
      .instr_unit = 2}},
    {11,
     {.chain = MS_PYTHON_CHAIN_CFRAMES,
      .state_thread_id = 152,
      .state_frame = 56,
      .has_cframe = true,
      .cframe_frame = 8,
      .cframe_previous = 16,
      .frame_previous = 48,
      .frame_code = 32,
      .frame_instr = 56,
      .frame_owner = 69,
      .frame_is_entry = 68,
      .frame_bytes = 72}},
    {12,
     {.chain = MS_PYTHON_CHAIN_ENTRIES,
      .state_frame = 56,
      .state_interp = 16,
      .has_cframe = true,
      .cframe_frame = 0,
      .cframe_previous = 8,
      .frame_previous = 8,
      .frame_code = 0,
      .frame_instr = 56,
      .frame_owner = 70,
      .frame_bytes = 72}},
};

/** The places in _Py_DebugOffsets of what is read of it, in words of 8 bytes from its beginning. */
static const struct debug_words {
    uint32_t minor;
    uint16_t current_frame, frame; /* of the thread state; the size of a frame, which begins its group */
} debug_words[] = {{13, 23, 28}, {14, 26, 31}, {15, 26, 39}};
enum { WORD_VERSION = 1, WORD_FREE_THREADED = 2, INTERP_BEFORE_FRAME = 1, WORDS = 48 };
/* Within the group of a frame. */
enum { FRAME_SIZE, FRAME_PREVIOUS, FRAME_EXECUTABLE, FRAME_INSTR, FRAME_LOCALS, FRAME_OWNER };

static unsigned minor_of(const struct ms_python_symbols *symbols)
{
    return symbols->version >> 24 == 3 ? symbols->version >> 16 & 0xff : 0;
}

static bool is_pointer_at(uint64_t offset, uint64_t below)
{
    return offset % sizeof(void *) == 0 && offset < below;
}

/* Python 3.13 and later say where frames have what. */
static bool read_debug_offsets(const struct ms_python_symbols *symbols, const struct debug_words *at,
                               struct ms_python_layout *layout, const char **why_p)
{
    uint64_t words[WORDS];
    *why_p = "it does not describe its frames";
    if (!symbols->runtime || !ms_memory_copy(symbols->runtime, words, sizeof words) ||
        memcmp(words, "xdebugpy", 8) != 0 || words[WORD_VERSION] != symbols->version)
        return false;
    if (words[WORD_FREE_THREADED]) {
        *why_p = "it is a free-threaded build";
        return false;
    }
    const uint64_t *frame = words + at->frame, interp = words[at->current_frame - INTERP_BEFORE_FRAME];
    *why_p = "what it says of its frames cannot be";
    if (frame[FRAME_SIZE] < 72 || frame[FRAME_SIZE] > MS_PYTHON_FRAME_BYTES_MAX ||
        !is_pointer_at(words[at->current_frame], 4096) || words[at->current_frame] == 0 ||
        !is_pointer_at(frame[FRAME_PREVIOUS], frame[FRAME_SIZE]) ||
        !is_pointer_at(frame[FRAME_EXECUTABLE], frame[FRAME_SIZE]) ||
        !is_pointer_at(frame[FRAME_INSTR], frame[FRAME_SIZE]) || frame[FRAME_OWNER] >= frame[FRAME_SIZE] ||
        frame[FRAME_PREVIOUS] > frame[FRAME_INSTR] || frame[FRAME_EXECUTABLE] > frame[FRAME_INSTR] ||
        frame[FRAME_PREVIOUS] == frame[FRAME_EXECUTABLE] || frame[FRAME_PREVIOUS] == frame[FRAME_INSTR])
        return false;
    *layout = (struct ms_python_layout){
        .chain = MS_PYTHON_CHAIN_ENTRIES,
        .state_frame = (uint16_t)words[at->current_frame],
        .state_interp = is_pointer_at(interp, 4096) ? (uint16_t)interp : 0,
        .frame_previous = (uint16_t)frame[FRAME_PREVIOUS],
        .frame_code = (uint16_t)frame[FRAME_EXECUTABLE],
        .frame_instr = (uint16_t)frame[FRAME_INSTR],
        .frame_owner = (uint16_t)frame[FRAME_OWNER],
        .frame_bytes =
            (uint16_t)(((frame[FRAME_OWNER] > frame[FRAME_INSTR] ? frame[FRAME_OWNER] : frame[FRAME_INSTR]) |
                        7) +
                       1),
    };
    return true;
}

static bool find_frames(const struct ms_python_symbols *symbols, struct ms_python_layout *layout,
                        const char **why_p)
{
    unsigned minor = minor_of(symbols);
    *why_p = "this version is not one of 3.9 to 3.15";
    for (unsigned i = 0; i < MS_ARRAY_LEN(tables); i++) {
        if (tables[i].minor == minor) {
            *layout = tables[i].layout;
            return true;
        }
    }
    for (unsigned i = 0; i < MS_ARRAY_LEN(debug_words); i++) {
        if (debug_words[i].minor == minor)
            return read_debug_offsets(symbols, &debug_words[i], layout, why_p);
    }
    return false;
}

static void note_member(struct ms_python_layout *layout, unsigned minor, const char *name, uint16_t offset)
{
    if (strcmp(name, "co_filename") == 0)
        layout->code_file = offset;
    else if (strcmp(name, minor >= 11 ? "co_qualname" : "co_name") == 0)
        layout->code_name = offset;
    else if (strcmp(name, "co_firstlineno") == 0)
        layout->code_first_line = offset;
    else if (strcmp(name, minor >= 10 ? "co_linetable" : "co_lnotab") == 0)
        layout->code_lines = offset;
}

static bool find_members(const struct ms_python_symbols *symbols, struct ms_python_layout *layout,
                         uint64_t size)
{
    uint64_t at;
    char name[MEMBER_NAME_BYTES];
    if (!ms_memory_copy(symbols->code_type + TYPE_MEMBERS, &at, sizeof at))
        return false;
    for (unsigned i = 0; i < MEMBERS_MAX; i++) {
        struct member member;
        if (!ms_memory_copy((uintptr_t)at + i * sizeof member, &member, sizeof member))
            return false;
        if (!member.name)
            break;
        if (!ms_memory_copy((uintptr_t)member.name, name, sizeof name) || member.offset <= 0 ||
            (uint64_t)member.offset >= size)
            continue;
        name[sizeof name - 1] = '\0';
        note_member(layout, minor_of(symbols), name, (uint16_t)member.offset);
    }
    return layout->code_file && layout->code_name && layout->code_first_line && layout->code_lines &&
           layout->code_file % 8 == 0 && layout->code_name % 8 == 0 && layout->code_lines % 8 == 0 &&
           layout->code_first_line % 4 == 0 &&
           (layout->code_name == layout->code_file + 8 || layout->code_name == layout->code_lines - 8);
}

bool ms_python_layout_find(const struct ms_python_symbols *symbols, struct ms_python_layout *layout_p,
                           const char **why_p)
{
    unsigned minor = minor_of(symbols);
    uint64_t size;
    if (!find_frames(symbols, layout_p, why_p))
        return false;
    *why_p = "its code objects are not what they should be";
    if (!ms_memory_copy(symbols->code_type + TYPE_BASIC_SIZE, &size, sizeof size) || size % 8 != 0 ||
        size <= TRACEABLE_BEFORE_BYTES || size > MS_PYTHON_CODE_BYTES_MAX ||
        !find_members(symbols, layout_p, size))
        return false;
    layout_p->code_bytes = (uint16_t)size;
    layout_p->code_version = minor >= 12 ? layout_p->code_first_line + VERSION_BEHIND_BYTES : 0;
    layout_p->code_traceable = minor >= 11 ? (uint16_t)(size - TRACEABLE_BEFORE_BYTES) : 0;
    layout_p->code_mask = minor >= 14 ? ~(uintptr_t)3 : ~(uintptr_t)0;
    layout_p->text_ascii = minor >= 12 ? 40 : 48;
    layout_p->text_compact = minor >= 12 ? 56 : 72;
    return true;
}
