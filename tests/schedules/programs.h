/* programs.h - what is run under the engine: small programs of two to four tasks, one for each protocol.
 *
 * A program sets up once what every schedule begins with (prepare), adds its tasks (start), and says what
 * must hold at the end (check, engine_fail). Tasks may fail on their way. Nothing else is kept between
 * schedules. */
#ifndef MS_TESTS_SCHEDULES_PROGRAMS_H
#define MS_TESTS_SCHEDULES_PROGRAMS_H

#include <stdbool.h>

struct program {
    const char *name, *text;
    void (*prepare)(void), (*start)(void), (*check)(void);
    bool wrong; /* on purpose: the engine must find out */
};

extern const struct program locks_programs[], streams_programs[],
    wrong_programs[]; /* a name of NULL ends each */

#endif
