/* rounds.h - see rounds.c. */
#ifndef MS_TESTS_SYSTEMS_ROUNDS_H
#define MS_TESTS_SYSTEMS_ROUNDS_H

void say_made(const char *what);

#endif
