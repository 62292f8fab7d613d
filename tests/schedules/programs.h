/* programs.h - what is run under the engine: small programs of two to four tasks, one for each protocol.
 *
 * A program sets up once what every schedule begins with (prepare), adds its tasks (start), and says what
 * must hold at the end (check, engine_fail). Tasks may fail on their way. Nothing else is kept between
 * schedules. */
#ifndef MS_TESTS_SCHEDULES_PROGRAMS_H
#define MS_TESTS_SCHEDULES_PROGRAMS_H

struct program {
    const char *name, *text;
    void (*prepare)(void), (*start)(void), (*check)(void);
    enum wrong {
        RIGHT,
        WRONG,      /* on purpose: each rule must find out */
        WRONG_WEAK, /* ... rule `weak` alone: what it shows needs memory that is not sequentially consistent
                     */
    } wrong;
};

extern const struct program locks_programs[], litmus_programs[], streams_programs[], ledger_programs[],
    stacks_programs[], wrong_programs[]; /* a name of NULL ends each */

#endif
