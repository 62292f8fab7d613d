/* rules.c - learning the rule of an address from libunwind, and remembering it.
 *
 * Floor 1, for walk_rules.c alone. libunwind is linked in statically and hidden, and used as for another
 * process: it sees memory and registers through the accessors below and nothing else, so it cannot fault,
 * opens nothing and keeps nothing. It is asked for one step from a frame whose registers are numbers that no
 * address is near; where the caller's registers came from is then told by which of those numbers come back,
 * and asked twice with other numbers, so that a calculation that is no plain offset (an alignment, say) is
 * seen as such.
 *
 * It needs several times the stack that a hook may take, and runs on one of our own
 * (base/thread/aux_stack.h).
 *
 * Locks: libunwind's own, for its pools, is ours, so that a fork child can reset it. Allocates from the
 * arena, once. */
#include <dlfcn.h>
#include <link.h>
#include <string.h>

#include "base/arena.h"
#include "base/libc.h"
#include "base/lock.h"
#include "base/objects/objects.h"
#include "base/thread/aux_stack.h"
#include "unwind/native/rules.h"

#if defined(__x86_64__)
#include <libunwind-x86_64.h>
#elif defined(__aarch64__)
#include <libunwind-aarch64.h>
#endif

/* Exported by libunwind for those who find the tables themselves, but in no header of its own. */
int UNW_OBJ(dwarf_search_unwind_table)(unw_addr_space_t space, unw_word_t pc, unw_dyn_info_t *table,
                                       unw_proc_info_t *found_p, int wants_unwind_info, void *arg);

/* The functions that the build of libunwind calls instead of the C library's (scripts/build-libunwind). */
void *ms_libunwind_malloc(size_t bytes);
void *ms_libunwind_calloc(size_t count, size_t bytes);
void ms_libunwind_free(void *memory);
int ms_libunwind_pthread_mutex_init(void *mutex, const void *attributes);
int ms_libunwind_pthread_mutex_lock(void *mutex);
int ms_libunwind_pthread_mutex_unlock(void *mutex);

#if defined(__x86_64__)
enum { REG_PC = UNW_X86_64_RIP, REG_SP = UNW_X86_64_RSP, REG_FP = UNW_X86_64_RBP, REG_LR = -1 };
/* mov $15, %rax; syscall */
static const unsigned char sigreturn_code[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
#elif defined(__aarch64__)
enum { REG_PC = UNW_AARCH64_PC, REG_SP = UNW_AARCH64_SP, REG_FP = UNW_AARCH64_X29, REG_LR = UNW_AARCH64_X30 };
/* mov x8, #139; svc #0 */
static const unsigned char sigreturn_code[] = {0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4};
#endif

/* Values of registers and stack words of the frame that is stepped from: the upper byte says that it is one
 * of these, the next which; low bits are free for offsets. No address has this upper byte. */
enum { PROBE = 0x4d, AT_SP = 1, AT_FP, AT_LR, AT_OTHER, AT_WORD };
#define PROBE_VALUE(which, number)                                                                           \
    ((uint64_t)PROBE << 56 | (uint64_t)(which) << 48 | (uint64_t)(number) << 32 | 0x40000000u)

enum {
    WINDOWS = 32, /* pieces of unwind tables as read: a search touches about this many */
    WINDOW_BYTES = 64,
    READS_MAX = 20000, /* a table that needs more is broken: its expression is a loop */
    WORDS_MAX = 16,
};

struct window {
    uintptr_t address; /* 0: empty */
    unsigned char bytes[WINDOW_BYTES];
};

/* One question to libunwind: the argument of all accessors. */
struct learner {
    uintptr_t pc;
    bool interrupted; /* a signal came at pc: a signal frame has all registers */
    bool is_signal;   /* pc is where a signal handler returns to */
    bool found;       /* the tables have an entry for it */
    uint64_t sp, fp;  /* as probed */
    unsigned reads, words, windows;
    uint64_t word_at[WORDS_MAX]; /* addresses of stack words it asked for */
    struct window window[WINDOWS];
};

/* The caller's registers as libunwind tells them, as probe values. */
struct caller {
    uint64_t pc, sp, fp;
    bool has_fp;
};

struct ms_rule_line *_Atomic ms_rule_lines;
static unw_addr_space_t _Atomic address_space;
static struct ms_lock libunwind_lock = MS_LOCK_INIT(MS_RANK_STACK);

void *ms_libunwind_malloc(size_t bytes)
{
    return ms_arena_alloc(bytes);
}

void *ms_libunwind_calloc(size_t count, size_t bytes)
{
    return ms_arena_alloc(count * bytes);
}

void ms_libunwind_free(void *memory)
{
    (void)memory;
}

int ms_libunwind_pthread_mutex_init(void *mutex, const void *attributes)
{
    (void)mutex;
    (void)attributes;
    return 0;
}

int ms_libunwind_pthread_mutex_lock(void *mutex)
{
    (void)mutex;
    ms_lock(&libunwind_lock);
    return 0;
}

int ms_libunwind_pthread_mutex_unlock(void *mutex)
{
    (void)mutex;
    ms_unlock(&libunwind_lock);
    return 0;
}

#ifdef __aarch64__
/* Opens a pipe in the original, for checks of local memory that are compiled out. */
void UNW_OBJ(init_mem_validate)(void);
void UNW_OBJ(init_mem_validate)(void)
{
}
#endif

static const struct window *window_of(struct learner *learner, uintptr_t address)
{
    address -= address % WINDOW_BYTES;
    for (unsigned i = 0; i < WINDOWS; i++) {
        if (learner->window[i].address == address)
            return &learner->window[i];
    }
    struct window *window = &learner->window[learner->windows++ % WINDOWS];
    window->address = 0;
    if (!ms_memory_copy(address, window->bytes, WINDOW_BYTES))
        return NULL;
    window->address = address;
    return window;
}

static bool read_tables(struct learner *learner, uintptr_t address, void *into, size_t bytes)
{
    size_t offset = address % WINDOW_BYTES;
    if (offset + bytes > WINDOW_BYTES)
        return ms_memory_copy(address, into, bytes);
    const struct window *window = window_of(learner, address);
    if (window)
        memcpy(into, window->bytes + offset, bytes);
    return window != NULL;
}

static int access_mem(unw_addr_space_t space, unw_word_t address, unw_word_t *value_p, int write, void *arg)
{
    struct learner *learner = arg;
    (void)space;
    if (write || ++learner->reads > READS_MAX)
        return -UNW_EINVAL;
    if (address >> 56 != PROBE)
        return read_tables(learner, address, value_p, sizeof *value_p) ? 0 : -UNW_EINVAL;
    unsigned i = 0;
    while (i < learner->words && learner->word_at[i] != address)
        i++;
    if (i == WORDS_MAX)
        return -UNW_EINVAL;
    learner->word_at[i] = address;
    learner->words = i == learner->words ? i + 1 : learner->words;
    *value_p = PROBE_VALUE(AT_WORD, i);
    return 0;
}

static int access_reg(unw_addr_space_t space, unw_regnum_t reg, unw_word_t *value_p, int write, void *arg)
{
    const struct learner *learner = arg;
    (void)space;
    if (write)
        return -UNW_EREADONLYREG;
    if ((int)reg == REG_PC)
        *value_p = learner->pc;
    else if ((int)reg == REG_SP)
        *value_p = learner->sp;
    else if ((int)reg == REG_FP)
        *value_p = learner->fp;
    else
        *value_p = PROBE_VALUE((int)reg == REG_LR ? AT_LR : AT_OTHER, reg);
    return 0;
}

static int access_fpreg(unw_addr_space_t space, unw_regnum_t reg, unw_fpreg_t *value_p, int write, void *arg)
{
    (void)space, (void)reg, (void)value_p, (void)write, (void)arg;
    return -UNW_EBADREG;
}

static int no_dynamic_info(unw_addr_space_t space, unw_word_t *list_p, void *arg)
{
    (void)space, (void)list_p, (void)arg;
    return -UNW_ENOINFO;
}

static void put_unwind_info(unw_addr_space_t space, unw_proc_info_t *info, void *arg)
{
    (void)space, (void)info, (void)arg;
}

static int resume(unw_addr_space_t space, unw_cursor_t *cursor, void *arg)
{
    (void)space, (void)cursor, (void)arg;
    return -UNW_EINVAL;
}

static int get_proc_name(unw_addr_space_t space, unw_word_t pc, char *name, size_t bytes,
                         unw_word_t *offset_p, void *arg)
{
    (void)space, (void)pc, (void)name, (void)bytes, (void)offset_p, (void)arg;
    return -UNW_ENOINFO;
}

/* The place where an object is loaded, and its table of unwind entries sorted by address. */
struct tables {
    uintptr_t start, end, header;
};

struct search {
    uintptr_t pc;
    struct tables *tables;
};

static int look_into(struct dl_phdr_info *info, size_t bytes, void *arg)
{
    const struct search *search = arg;
    struct tables seen = {UINTPTR_MAX, 0, 0};
    (void)bytes;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + part->p_vaddr, end = start + part->p_memsz;
        if (part->p_type == PT_GNU_EH_FRAME)
            seen.header = start;
        if (part->p_type != PT_LOAD)
            continue;
        seen.start = start < seen.start ? start : seen.start;
        seen.end = end > seen.end ? end : seen.end;
    }
    if (search->pc < seen.start || search->pc >= seen.end)
        return 0;
    *search->tables = seen;
    return 1;
}

/* Without a lock, from wherever it is called, where the C library can (from 2.35 on). */
static bool find_object(uintptr_t pc, struct tables *tables_p)
{
    struct search search = {pc, tables_p};
    struct ms_libc_object found;
    if (!ms_libc_finds_objects())
        return ms_each_object(look_into, &search) != 0;
    if (!ms_libc_find_object(pc, &found))
        return false;
    *tables_p = (struct tables){found.start, found.end, found.unwind};
    return true;
}

/* The header of .eh_frame_hdr: four bytes of version and encodings, the address of .eh_frame, the number of
 * entries. Every linker in use writes entries as pairs of 4 bytes relative to the header; others are not
 * understood. */
static bool find_table(struct learner *learner, const struct tables *tables, unw_dyn_info_t *table_p)
{
    enum { FIRST_VERSION = 1, UDATA4 = 0x03, SDATA4 = 0x0b, FORMAT = 0x0f, DATAREL_SDATA4 = 0x3b };
    unsigned char encoding[4];
    uint32_t count;
    if (!tables->header || !read_tables(learner, tables->header, encoding, sizeof encoding) ||
        encoding[0] != FIRST_VERSION || encoding[2] != UDATA4 || encoding[3] != DATAREL_SDATA4)
        return false;
    unsigned format = encoding[1] & FORMAT;
    uintptr_t after = tables->header + sizeof encoding + (format == UDATA4 || format == SDATA4 ? 4 : 8);
    if (!read_tables(learner, after, &count, sizeof count))
        return false;
    memset(table_p, 0, sizeof *table_p);
    table_p->format = UNW_INFO_FORMAT_REMOTE_TABLE;
    table_p->start_ip = tables->start;
    table_p->end_ip = tables->end;
    table_p->u.rti.segbase = tables->header;
    table_p->u.rti.table_data = after + sizeof count;
    table_p->u.rti.table_len = count; /* counts words, and an entry is as long as a word */
    return true;
}

static int find_proc_info(unw_addr_space_t space, unw_word_t pc, unw_proc_info_t *info_p,
                          int wants_unwind_info, void *arg)
{
    struct learner *learner = arg;
    struct tables tables;
    unw_dyn_info_t table;
    if (!find_object(pc, &tables) || !find_table(learner, &tables, &table))
        return -UNW_ENOINFO;
    int result = UNW_OBJ(dwarf_search_unwind_table)(space, pc, &table, info_p, wants_unwind_info, arg);
    learner->found = result >= 0;
    return result;
}

static unw_addr_space_t space_of_ours(void)
{
    static unw_accessors_t accessors = {
        .find_proc_info = find_proc_info,
        .put_unwind_info = put_unwind_info,
        .get_dyn_info_list_addr = no_dynamic_info,
        .access_mem = access_mem,
        .access_reg = access_reg,
        .access_fpreg = access_fpreg,
        .resume = resume,
        .get_proc_name = get_proc_name,
    };
    unw_addr_space_t space = atomic_load_explicit(&address_space, memory_order_acquire), nobodys = NULL;
    if (space)
        return space;
    space = unw_create_addr_space(&accessors, 0);
    if (space && !atomic_compare_exchange_strong(&address_space, &nobodys, space))
        space = nobodys;
    return space;
}

/* Returns MS_RULE_END or MS_RULE_GUESS, or MS_RULE_NONE when *caller_p holds what there is to know. */
static enum ms_rule_kind rules_query(struct learner *learner, struct caller *caller_p)
{
    unw_cursor_t cursor;
    unw_addr_space_t space = space_of_ours();
    learner->reads = learner->words = 0;
    learner->found = false;
    if (!space || unw_init_remote(&cursor, space, learner) != 0)
        return MS_RULE_GUESS;
    int result = unw_step(&cursor);
    /* Without tables libunwind guesses, with less to go by than walk.c has; except for signals, which it
     * knows by their code. */
    if (result < 0 || (!learner->found && !learner->is_signal))
        return MS_RULE_GUESS;
    if (result == 0)
        return MS_RULE_END;
    if (unw_get_reg(&cursor, UNW_REG_IP, &caller_p->pc) != 0 ||
        unw_get_reg(&cursor, UNW_REG_SP, &caller_p->sp) != 0)
        return MS_RULE_GUESS;
    caller_p->has_fp = unw_get_reg(&cursor, REG_FP, &caller_p->fp) == 0;
    return MS_RULE_NONE;
}

/* Distance in words; false if it is too long for a rule, or not whole. */
static bool words_between(uint64_t value, uint64_t base, int32_t max, int32_t *words_p)
{
    int64_t bytes = (int64_t)(value - base);
    if (bytes % 8 != 0 || bytes / 8 > max || bytes / 8 < -max)
        return false;
    *words_p = (int32_t)(bytes / 8);
    return true;
}

/* The address that a value was read from; false if it is none of the words of this stack. */
static bool address_of_word(const struct learner *learner, uint64_t value, uint64_t *address_p)
{
    for (unsigned i = 0; i < learner->words; i++) {
        if (value == PROBE_VALUE(AT_WORD, i)) {
            *address_p = learner->word_at[i];
            return true;
        }
    }
    return false;
}

/* The place of a saved register: near the slot if there is one and it is, else near the CFA. */
static bool rules_place(const struct learner *learner, uint64_t value, uint64_t cfa, uint64_t slot,
                        int32_t *words_p, bool *by_slot_p)
{
    enum { MAX = INT16_MAX - 1 };
    uint64_t address;
    if (!address_of_word(learner, value, &address))
        return false;
    *by_slot_p = slot && words_between(address, slot, MAX, words_p);
    return *by_slot_p || words_between(address, cfa, MAX, words_p);
}

/* The CFA as another register and an offset, in the form of MS_RULE_REG. */
static bool place_in_register(uint64_t cfa, int32_t *words_p)
{
    uint64_t reg = cfa >> 32 & 0xffff;
    int32_t words;
    if (reg >= MS_RULE_REGS ||
        !words_between(cfa, PROBE_VALUE(AT_OTHER, reg), MS_RULE_CFA_MAX / MS_RULE_REGS - 1, &words))
        return false;
    *words_p = words * MS_RULE_REGS + (int32_t)reg;
    return true;
}

/* Kind and offset of the CFA; the address of the slot in *slot_p where there is one. */
static enum ms_rule_kind place_cfa(const struct learner *learner, uint64_t cfa, int32_t *words_p,
                                   uint64_t *slot_p)
{
    uint64_t slot;
    *slot_p = 0;
    if (words_between(cfa, learner->sp, MS_RULE_CFA_MAX, words_p))
        return MS_RULE_SP;
    if (words_between(cfa, learner->fp, MS_RULE_CFA_MAX, words_p))
        return MS_RULE_FP;
    if (learner->interrupted && place_in_register(cfa, words_p)) {
        *slot_p = learner->fp;
        return MS_RULE_REG;
    }
    if (!address_of_word(learner, cfa, &slot))
        return MS_RULE_GUESS;
    *slot_p = slot;
    if (words_between(slot, learner->sp, MS_RULE_CFA_MAX, words_p))
        return MS_RULE_SP_SLOT;
    return words_between(slot, learner->fp, MS_RULE_CFA_MAX, words_p) ? MS_RULE_FP_SLOT : MS_RULE_GUESS;
}

static ms_rule rule_of(const struct learner *learner, const struct caller *caller)
{
    int32_t cfa_words, ra_words = 0, fp_words = MS_RULE_FP_LOST;
    uint64_t slot;
    bool by_slot;
    unsigned flags = learner->is_signal ? MS_RULE_SIGNAL : 0;
    enum ms_rule_kind kind = place_cfa(learner, caller->sp, &cfa_words, &slot);
    if (kind == MS_RULE_GUESS)
        return MS_RULE_GUESS;
    if (REG_LR >= 0 && caller->pc == PROBE_VALUE(AT_LR, REG_LR))
        flags |= MS_RULE_RA_IN_LR;
    else if (!rules_place(learner, caller->pc, caller->sp, slot, &ra_words, &by_slot))
        return MS_RULE_GUESS;
    else
        flags |= by_slot ? MS_RULE_RA_BY_SLOT : 0;
    if (caller->has_fp && caller->fp == learner->fp)
        fp_words = MS_RULE_FP_KEPT;
    else if (caller->has_fp && rules_place(learner, caller->fp, caller->sp, slot, &fp_words, &by_slot))
        flags |= by_slot ? MS_RULE_FP_BY_SLOT : 0;
    else
        fp_words = MS_RULE_FP_LOST;
    return ms_rule_make(kind | flags, cfa_words, (int16_t)ra_words, (int16_t)fp_words);
}

static ms_rule probe(struct learner *learner, unsigned number, uint32_t offset)
{
    struct caller caller = {0};
    learner->sp = PROBE_VALUE(AT_SP, number) + offset;
    learner->fp = PROBE_VALUE(AT_FP, number) + 3 * (uint64_t)offset;
    enum ms_rule_kind known = rules_query(learner, &caller);
    return known == MS_RULE_NONE ? rule_of(learner, &caller) : known;
}

#ifdef __aarch64__
/* Linkers write no unwind information for the stubs by which an object calls others' functions, which are
 *     adrp x16, ...; ldr x17, [x16, ...]; add x16, x16, ...; br x17      perhaps behind bti c
 * Whoever is interrupted in one has its return address in the link register. The first of them, which calls
 * the loader, pushes that register before. */
static ms_rule rule_of_stub(uintptr_t pc)
{
    enum { BEFORE = 4, AFTER = 5, BTI_C = 0xd503245f, PUSH = 0xa9bf7bf0, PUSHED_WORDS = 2 };
    static const struct {
        uint32_t mask, code;
    } stub[] = {
        {0x9f00001f, 0x90000010}, {0xffc003ff, 0xf9400211}, {0xff8003ff, 0x91000210}, {~0u, 0xd61f0220}};
    uint32_t around[BEFORE + AFTER] = {0};
    if (pc % 4 != 0 || !ms_memory_copy(pc - sizeof *around * BEFORE, around, sizeof around))
        return MS_RULE_GUESS;
    unsigned starts_later = around[BEFORE] == BTI_C || around[BEFORE] == PUSH;
    for (unsigned first = BEFORE + starts_later, i; first + 4 > BEFORE && first > 0; first--) {
        for (i = 0; i < 4 && (around[first + i] & stub[i].mask) == stub[i].code; i++)
            ;
        bool is_pushed = first <= BEFORE && around[first - 1] == PUSH;
        if (i == 4)
            return ms_rule_make(MS_RULE_SP | MS_RULE_RA_IN_LR, is_pushed ? PUSHED_WORDS : 0, 0,
                                MS_RULE_FP_KEPT);
    }
    return MS_RULE_GUESS;
}
#else
static ms_rule rule_of_stub(uintptr_t pc)
{
    (void)pc;
    return MS_RULE_GUESS;
}
#endif

static ms_rule rules_learn(struct learner *learner)
{
    bool interrupted = learner->interrupted;
    uintptr_t pc = learner->pc;
    unsigned char code[sizeof sigreturn_code];
    struct tables tables;
    learner->is_signal =
        ms_memory_copy(pc, code, sizeof code) && memcmp(code, sigreturn_code, sizeof code) == 0;
    /* A return address may be that of the next function: the call before it is what belongs to this one. */
    if (!interrupted && !learner->is_signal)
        learner->pc--;
    if (!find_object(learner->pc, &tables) && !learner->is_signal)
        return ms_memory_readable(learner->pc & ~(uintptr_t)7) ? MS_RULE_GUESS : MS_RULE_STOP;
    ms_rule once = probe(learner, 0, 0);
    if (ms_rule_kind(once) == MS_RULE_GUESS && interrupted && !learner->found)
        return rule_of_stub(pc);
    if (ms_rule_kind(once) == MS_RULE_GUESS || ms_rule_kind(once) == MS_RULE_END)
        return once;
    /* Not a multiple of more than eight, as the first was. */
    ms_rule again = probe(learner, 1, 0x123458);
    if (once != again)
        return MS_RULE_GUESS;
    /* A call has overwritten the register: this is how libunwind guesses where it does not understand the
     * tables. */
    return (once & MS_RULE_RA_IN_LR) && !interrupted ? (ms_rule)MS_RULE_GUESS : once;
}

struct ms_rule_line *ms_rules_start(void)
{
    struct ms_rule_line *lines = atomic_load_explicit(&ms_rule_lines, memory_order_acquire), *nobodys = NULL;
    if (lines)
        return lines;
    lines = ms_arena_alloc(sizeof *lines << MS_RULE_LINES_LOG);
    if (lines && !atomic_compare_exchange_strong(&ms_rule_lines, &nobodys, lines))
        lines = nobodys;
    return lines;
}

static void rules_remember(uint64_t hash, ms_rule rule)
{
    struct ms_rule_line *lines = ms_rules_start();
    if (!lines)
        return;
    struct ms_rule_line *line = ms_rule_line(lines, hash);
    unsigned way = 0;
    while (way < MS_RULE_WAYS && atomic_load_explicit(&line->ways[way].rule, memory_order_relaxed))
        way++;
    way = way < MS_RULE_WAYS ? way : hash % MS_RULE_WAYS;
    atomic_store_explicit(&line->ways[way].check, rule ^ hash, memory_order_relaxed);
    atomic_store_explicit(&line->ways[way].rule, rule, memory_order_relaxed);
}

struct lesson {
    struct learner learner;
    ms_rule rule;
};
_Static_assert(sizeof(struct lesson) <= MS_AUX_STACK_BUFFER_BYTES, "it lies in a buffer");

static void learn_lesson(void *arg)
{
    struct lesson *lesson = arg;
    lesson->rule = rules_learn(&lesson->learner);
}

/* No signal comes meanwhile, so that no handler waits for libunwind's lock that its own thread holds. */
ms_rule ms_rule_learn(uintptr_t pc, bool interrupted, uint64_t generation)
{
    struct lesson *lesson = ms_aux_stack_take();
    ms_rule rule = MS_RULE_GUESS;
    if (!lesson)
        return rule;
    memset(&lesson->learner, 0, sizeof lesson->learner);
    lesson->learner.pc = pc;
    lesson->learner.interrupted = interrupted;
    if (ms_aux_stack_call(learn_lesson, lesson)) {
        rule = lesson->rule;
        rules_remember(ms_rule_hash(pc, interrupted, generation), rule);
    }
    ms_aux_stack_give(lesson);
    return rule;
}

void ms_rules_reset(void)
{
    ms_lock_reset(&libunwind_lock);
}
