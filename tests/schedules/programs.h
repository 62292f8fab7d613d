/* programs.h - what is run under the engine: small programs of two to four tasks, one for each protocol.
 *
 * A program sets up once what every schedule begins with (prepare), adds its tasks (start), and says what
 * must hold at the end (check, engine_fail). Tasks may fail on their way. Nothing else is kept between
 * schedules. */
#ifndef MS_TESTS_SCHEDULES_PROGRAMS_H
#define MS_TESTS_SCHEDULES_PROGRAMS_H

#include <stdint.h>

struct program {
    const char *name, *text;
    void (*prepare)(void), (*start)(void), (*check)(void);
    enum wrong {
        RIGHT,
        WRONG,      /* on purpose: each rule must find out */
        WRONG_WEAK, /* ... rule `weak` alone: what it shows needs memory that is not sequentially consistent
                     */
        READS_OLD, /* reads plain words of records that become another's, and checks afterwards that they have
                    * not: for all rules but `weak`, which takes such a read for a mistake */
    } wrong;
};

/** Of random programs: the number behind the colon of its name. */
extern uint64_t program_seed;
/** In start(), of a program in words, each with a blank behind it: what stays of task `task`'s while a
 * failure is shrunk. `left` has room for all, and is static. */
void program_leave_out(const char *words, char *left, unsigned task);

/** programs_ledger.c: of a program that records, the book is right, and the sums add up. */
void ledger_program_check(void);

extern const struct program heap_programs[], locks_programs[], litmus_programs[], streams_programs[],
    ledger_programs[], inner_programs[], stacks_programs[], run_programs[], wrong_programs[],
    parts_programs[], small_programs[], wholes_programs[], hits_programs[], fences_programs[],
    fences_hip_programs[], small_record_programs[], small_streams_programs[], share_programs[],
    quota_programs[]; /* a name of NULL ends each */

#endif
