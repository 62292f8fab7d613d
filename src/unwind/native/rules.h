/* rules.h - how to get from one frame to its caller, in 64 bits per return address; and the table that
 * remembers it.
 *
 * Floor 1, for src/unwind alone. Looking up takes no lock and allocates nothing; learning (rules.c) takes a
 * short lock and maps memory once. The table is a cache: entries may be lost or replaced at any time, a rule
 * once found is a copy.
 *
 * A rule, from the low bits up: 4 bits of enum ms_rule_kind, 4 of MS_RULE_* flags, 24 of where the CFA is, 16
 * of where the return address is, 16 of where the caller's frame pointer is; offsets are signed and count
 * words of 8 bytes. The CFA (canonical frame address) is the caller's stack pointer after the call has
 * returned.
 *
 * An entry is two words: the rule, and the rule xor a 64-bit hash that is different for each (address,
 * generation). A reader that sees halves of two entries finds a hash that is not the one it looks for. */
#ifndef MS_UNWIND_NATIVE_RULES_H
#define MS_UNWIND_NATIVE_RULES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "unwind/native/memory.h"

typedef uint64_t ms_rule;

enum ms_rule_kind {
    MS_RULE_NONE,    /* not known yet */
    MS_RULE_SP,      /* CFA = sp + offset */
    MS_RULE_FP,      /* CFA = fp + offset */
    MS_RULE_SP_SLOT, /* CFA = the word at sp + offset */
    MS_RULE_FP_SLOT, /* CFA = the word at fp + offset */
    MS_RULE_REG,   /* CFA = another register + offset (ms_rule_reg), as a signal frame has saved it; "slot" is
                      fp */
    MS_RULE_END,   /* the outermost frame: nobody called it */
    MS_RULE_GUESS, /* code without usable unwind information: perhaps it keeps frame pointers */
    MS_RULE_STOP,  /* no code at all */
};

enum {
    MS_RULE_RA_BY_SLOT =
        0x10, /* the return address is relative to the slot (the word that holds the CFA), not to the CFA */
    MS_RULE_FP_BY_SLOT = 0x20, /* likewise the frame pointer */
    MS_RULE_SIGNAL =
        0x40, /* what was interrupted goes on at the return address itself, not after a call before it */
    MS_RULE_RA_IN_LR = 0x80, /* aarch64: a leaf that was interrupted; the signal frame has saved it */
};

#define MS_RULE_FP_KEPT INT16_MIN       /* the caller's frame pointer is still in the register */
#define MS_RULE_FP_LOST (INT16_MIN + 1) /* it cannot be had */
#define MS_RULE_CFA_MAX 0x7fffff

static inline unsigned ms_rule_kind(ms_rule rule)
{
    return rule & 0xf;
}

static inline int64_t ms_rule_cfa_bytes(ms_rule rule)
{
    return (int64_t)((int32_t)(uint32_t)rule >> 8) * 8;
}

/** Of MS_RULE_REG: the offset is in units of 32 words, and what is left over names the register, by
 * libunwind's number. */
enum { MS_RULE_REGS = 32 };

static inline unsigned ms_rule_reg(ms_rule rule)
{
    return (uint32_t)rule >> 8 & (MS_RULE_REGS - 1);
}

static inline int64_t ms_rule_reg_bytes(ms_rule rule)
{
    return (int64_t)((int32_t)(uint32_t)rule >> 13) * 8;
}

static inline int64_t ms_rule_ra_bytes(ms_rule rule)
{
    return (int64_t)(int16_t)(rule >> 32) * 8;
}

static inline int16_t ms_rule_fp(ms_rule rule)
{
    return (int16_t)(rule >> 48);
}

static inline ms_rule ms_rule_make(unsigned kind_and_flags, int32_t cfa, int16_t ra, int16_t fp)
{
    return (uint64_t)(uint16_t)fp << 48 | (uint64_t)(uint16_t)ra << 32 | (uint32_t)cfa << 8 | kind_and_flags;
}

enum { MS_RULE_WAYS = 4, MS_RULE_LINES_LOG = 13 };

struct ms_rule_entry {
    _Atomic uint64_t check;
    _Atomic uint64_t rule;
};

struct ms_rule_line {
    struct ms_rule_entry ways[MS_RULE_WAYS];
} MS_CACHELINE;

/** The table; NULL until ms_rules_start made it. */
extern struct ms_rule_line *_Atomic ms_rule_lines;

/** An address and whether it was interrupted there (the frame above a signal frame) or called from there. */
static inline MS_RAW uint64_t ms_rule_hash(uintptr_t pc, bool interrupted, uint64_t generation)
{
    return ((pc << 1 | interrupted) ^ generation * 0xd6e8feb86659fd93u) * 0x9e3779b97f4a7c15u;
}

static inline MS_RAW struct ms_rule_line *ms_rule_line(struct ms_rule_line *lines, uint64_t hash)
{
    return &lines[hash >> (64 - MS_RULE_LINES_LOG)];
}

/** The rule, or 0 if it has to be learned. */
static inline MS_RAW ms_rule ms_rule_find(struct ms_rule_line *lines, uint64_t hash)
{
    struct ms_rule_line *line = ms_rule_line(lines, hash);
    for (unsigned way = 0; way < MS_RULE_WAYS; way++) {
        uint64_t rule = atomic_load_explicit(&line->ways[way].rule, memory_order_relaxed);
        uint64_t check = atomic_load_explicit(&line->ways[way].check, memory_order_relaxed);
        if ((rule ^ check) == hash)
            return rule;
    }
    return 0;
}

/** The table, made if it is not there yet; NULL without memory. */
struct ms_rule_line *ms_rules_start(void);

/** Learn the rule of `pc`, and remember it under that generation of the loaded objects. Never fails: what
 * cannot be known is GUESS or STOP, and remembered too; where there is no stack to learn on it is GUESS, and
 * not remembered. Reads the object's unwind tables; takes some 10 microseconds. */
ms_rule ms_rule_learn(uintptr_t pc, bool interrupted, uint64_t generation);

/** In a fork child: the rules stay true, locks are nobody's. */
void ms_rules_reset(void);

#endif
