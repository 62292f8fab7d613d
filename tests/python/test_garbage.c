/* test_garbage.c - whatever lies where the interpreter's frames should, reading them ends and nothing faults.
 *
 * A chain of frames is made as 3.13 has them, with code objects and strings, in memory of which the page
 * before and the page after cannot be read. It is read whole; then words of it are overwritten at random,
 * with addresses in it, near it, and of nothing. What is remembered of it is known again, and no more once
 * any word is another by which it is known. */
#include "config.h"

#include <string.h>
#include <sys/mman.h>

#include "base/compiler.h"
#include "unwind/python/python_thread.h"
#include "tests/tap.h"

enum { BYTES = 64 << 10, FRAMES = 20, ROUNDS = 1000, FRAME_WORDS = 16, CODE_WORDS = 32, TEXT_WORDS = 16 };

static uint64_t seed = 88172645463325252u;
static uint64_t *words;
static unsigned numbers; /* of the code object of frame i: i * numbers */
static struct ms_python_thread *thread;
static struct ms_python_interpreter interpreter = {
    .symbols = {.version = 0x030d00f0},
    .layout = {.chain = MS_PYTHON_CHAIN_ENTRIES,
               .frame_previous = 8,
               .frame_instr = 56,
               .frame_owner = 70,
               .frame_bytes = 72,
               .code_mask = ~(uintptr_t)0,
               .code_file = 112,
               .code_name = 128,
               .code_first_line = 68,
               .code_lines = 136,
               .code_version = 88,
               .code_traceable = 184,
               .code_bytes = 200,
               .text_ascii = 40,
               .text_compact = 56},
};

static uint64_t roll(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    return seed ^= seed << 17;
}

static uint64_t *text(uint64_t *at, uintptr_t type, const char *content, unsigned head)
{
    at[1] = type;
    at[2] = strlen(content);
    at[3] = UINT64_MAX;
    if (head > 32)
        at[4] = 1 << 2 | 1 << 5 | 1 << 6;
    memcpy((char *)at + head, content, strlen(content) + 1);
    return at;
}

/* Whether a run of the evaluation loop ends there. */
static bool is_entry(unsigned i)
{
    return i % 7 == 3;
}

/* A frame, its code object and what that refers to. */
static uintptr_t make_frame(unsigned i, uintptr_t previous)
{
    uint64_t *frame = words + (size_t)i * (FRAME_WORDS + CODE_WORDS + 3 * TEXT_WORDS);
    uint64_t *code = frame + FRAME_WORDS, *file = code + CODE_WORDS;
    char name[16];
    snprintf(name, sizeof name, "function_%u", i);
    code[1] = interpreter.symbols.code_type;
    code[2] = 10;
    if (is_entry(i))
        frame[8] = (uint64_t)3 << 48;
    ((uint32_t *)code)[17] = i;
    ((uint32_t *)code)[22] = i * numbers;
    code[14] = (uintptr_t)text(file, interpreter.symbols.str_type, "program.py", 40);
    code[16] = (uintptr_t)text(file + TEXT_WORDS, interpreter.symbols.str_type, name, 40);
    code[17] = (uintptr_t)text(file + 2 * TEXT_WORDS, 0, "lines of this very function", 32);
    frame[0] = (uintptr_t)code;
    frame[1] = previous;
    frame[7] = (uintptr_t)code + 200 + 4;
    return (uintptr_t)frame;
}

static uintptr_t make_chain(void)
{
    uintptr_t at = 0;
    memset(words, 0, BYTES);
    for (unsigned i = 0; i < FRAMES; i++)
        at = make_frame(i, at);
    return at;
}

static enum ms_python_walk walk(uintptr_t head, unsigned *fresh_p)
{
    unsigned joined;
    thread->count = 0;
    return ms_python_walk(&interpreter, thread, (struct ms_python_head){head, 0, false}, fresh_p, &joined);
}

static uint64_t garbage(void)
{
    switch (roll() % 6) {
    case 0:
        return roll();
    case 1:
        return roll() % 8192;
    case 2:
        return (uintptr_t)words + roll() % (BYTES + 64) - 32;
    case 3:
        return (uintptr_t)words + BYTES - 8 * (roll() % 12);
    case 4:
        return UINT64_MAX >> roll() % 64;
    default:
        return (uintptr_t)(words + roll() % (BYTES / 8));
    }
}

static void test_whole(void)
{
    unsigned fresh = 0;
    uintptr_t head = make_chain();
    is_int(walk(head, &fresh), MS_PYTHON_WALKED, "a sound chain is walked");
    is_int(fresh, FRAMES, "to its end");
    const struct ms_code *code = ms_code_at(thread->fresh[0].print.row);
    ok(code && strcmp(ms_code_text(code->name), "function_19") == 0 &&
           strcmp(ms_code_text(code->file), "program.py") == 0 && code->first_line == 19 &&
           code->lines_bytes == 27 && memcmp(ms_code_lines(code), "lines of this very function", 27) == 0,
       "the innermost code object is told");
    is_int(thread->fresh[0].offset, 4, "and where it is");
}

static void test_circle(void)
{
    unsigned fresh = 0;
    uintptr_t head = make_chain();
    words[1] = head;
    is_int(walk(head, &fresh), MS_PYTHON_ODD, "frames in a circle are none");
    is_int(walk(head + 4, &fresh), MS_PYTHON_ODD, "nor is one at an address that is not aligned");
    is_int(walk((uintptr_t)words - 4096, &fresh), MS_PYTHON_ODD, "nor one that cannot be read");
}

static void test_overwritten(bool is_copying)
{
    unsigned odd = 0, walked = 0, fresh;
    thread->reader.is_copying = is_copying;
    for (unsigned round = 0; round < ROUNDS; round++) {
        uintptr_t head = make_chain();
        for (unsigned i = 0; i <= roll() % 8; i++)
            words[roll() % (FRAMES * (FRAME_WORDS + CODE_WORDS + 3 * TEXT_WORDS))] = garbage();
        if (walk(head, &fresh) == MS_PYTHON_ODD)
            odd++;
        else
            walked++;
    }
    ok(odd + walked == ROUNDS && odd && walked, "%s: %u chains were refused, %u read",
       is_copying ? "through the kernel" : "by loads", odd, walked);
    thread->reader.is_copying = false;
}

static void remember(uintptr_t head)
{
    unsigned fresh = 0;
    walk(head, &fresh);
    for (unsigned i = 0; i < fresh; i++) {
        thread->records[i] = thread->fresh[fresh - 1 - i];
        thread->records[i].frames =
            (uint16_t)((i ? thread->records[i - 1].frames : 0) + thread->records[i].is_told);
        ms_python_remember(&interpreter.layout, thread, i);
    }
    thread->count = (uint16_t)fresh;
}

static bool is_same(bool by_numbers)
{
    return ms_python_is_same(&interpreter, thread, thread->count - 1u, by_numbers);
}

/* By what code objects are known again. */
enum how { BY_WHAT_IS_SAID, NUMBERED, BY_NUMBERS, HOW };

/* The words of what make_frame makes by which it is known, and from which way on that is no more: words of
 * the frame, of the code object, and where that has no number, of the file's name, the function's and the
 * line table; a bit of what counts in it, or 0. */
static uint64_t counts(unsigned frame, unsigned word, enum how how)
{
    static const struct {
        unsigned word;
        uint64_t bit;
        enum how until;
    } known[] = {
        {0, 1, HOW},
        {1, 1, HOW},
        {7, 1, HOW},
        {FRAME_WORDS + 8, (uint64_t)1 << 32, BY_NUMBERS},
        {FRAME_WORDS + 11, 1, HOW},
        {FRAME_WORDS + 14, 1, BY_NUMBERS},
        {FRAME_WORDS + 16, 1, BY_NUMBERS},
        {FRAME_WORDS + 17, 1, BY_NUMBERS},
        {FRAME_WORDS + CODE_WORDS + 2, 1, NUMBERED},
        {FRAME_WORDS + CODE_WORDS + 3, 1, NUMBERED},
        {FRAME_WORDS + CODE_WORDS + 5, 1, NUMBERED},
        {FRAME_WORDS + CODE_WORDS + TEXT_WORDS + 2, 1, NUMBERED},
        {FRAME_WORDS + CODE_WORDS + TEXT_WORDS + 3, 1, NUMBERED},
        {FRAME_WORDS + CODE_WORDS + TEXT_WORDS + 6, 1, NUMBERED},
        {FRAME_WORDS + CODE_WORDS + 2 * TEXT_WORDS + 2, 1, NUMBERED},
        {FRAME_WORDS + CODE_WORDS + 2 * TEXT_WORDS + 4, 1, NUMBERED},
        {FRAME_WORDS + CODE_WORDS + 2 * TEXT_WORDS + 5, 1, NUMBERED},
        {FRAME_WORDS + CODE_WORDS + 2 * TEXT_WORDS + 6, 1, NUMBERED},
    };
    if (is_entry(frame))
        return word == 8 ? (uint64_t)3 << 48 : word == 0 || word == 1 || word == 7;
    for (size_t i = 0; i < MS_ARRAY_LEN(known); i++) {
        if (known[i].word == word)
            return how < known[i].until ? known[i].bit : 0;
    }
    return 0;
}

static void test_known_again(enum how how, bool is_copying)
{
    enum { WORDS = FRAME_WORDS + CODE_WORDS + 3 * TEXT_WORDS };
    static const char *const words_of[] = {"by what is said", "numbered", "by numbers"};
    unsigned missed = 0, changed = 0;
    numbers = how != BY_WHAT_IS_SAID;
    remember(make_chain());
    thread->reader.is_copying = is_copying;
    ok(thread->count == FRAMES && is_same(how == BY_NUMBERS), "what is remembered is known again");
    for (unsigned i = WORDS; i < FRAMES * WORDS; i++) {
        uint64_t bit = counts(i / WORDS, i % WORDS, how);
        words[i] ^= bit;
        if (bit && ++changed && is_same(how == BY_NUMBERS))
            missed++;
        words[i] ^= bit;
    }
    ok(changed > FRAMES && !missed && is_same(how == BY_NUMBERS),
       "%s, %s: of %u changes each is seen (%u are not), and what is as it was is known",
       is_copying ? "through the kernel" : "by loads", words_of[how], changed, missed);
    thread->reader.is_copying = false;
}

/* Interpreters that describe themselves as 3.13 does, but for one thing. */
static void test_refused(void)
{
    static uint64_t description[48], type[64];
    struct ms_python_symbols symbols = {.version = 0x030d00f0,
                                        .runtime = (uintptr_t)description,
                                        .code_type = (uintptr_t)type,
                                        .str_type = (uintptr_t)&seed};
    struct ms_python_layout layout;
    const char *why = "";
    memcpy(description, "xdebugpy", 8);
    description[1] = symbols.version;
    description[2] = 1;
    ok(!ms_python_layout_find(&symbols, &layout, &why), "a free-threaded build is refused");
    is_str(why, "it is a free-threaded build", "and says so");
    description[2] = 0;
    ok(!ms_python_layout_find(&symbols, &layout, &why), "so are frames that cannot be");
    is_str(why, "what it says of its frames cannot be", "for that reason");
    description[1]++;
    ok(!ms_python_layout_find(&symbols, &layout, &why), "and what describes another version");
    is_str(why, "it does not describe its frames", "for that reason");
    symbols.version = 0x031000f0;
    ok(!ms_python_layout_find(&symbols, &layout, &why), "and 3.16");
}

int main(void)
{
    char *memory = mmap(NULL, BYTES + 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    plan(28);
    mprotect(memory, 4096, PROT_NONE);
    mprotect(memory + 4096 + BYTES, 4096, PROT_NONE);
    words = (uint64_t *)(void *)(memory + 4096);
    interpreter.symbols.code_type = (uintptr_t)&interpreter;
    interpreter.symbols.str_type = (uintptr_t)&seed;
    thread = ms_python_thread();
    test_whole();
    test_circle();
    test_overwritten(false);
    test_overwritten(true);
    for (enum how how = BY_WHAT_IS_SAID; how < HOW; how++) {
        test_known_again(how, false);
        test_known_again(how, true);
    }
    test_refused();
    return done();
}
