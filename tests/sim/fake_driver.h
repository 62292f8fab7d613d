/*
 * What the fake driver (fake_driver.c) tells the test that loaded it.
 */
#ifndef TESTS_SIM_FAKE_DRIVER_H
#define TESTS_SIM_FAKE_DRIVER_H

enum { FAKE_MAX = 1024 };
/* Through which lookup function a request came: the exported one, or the one that was asked for through
 * it. */
enum { FAKE_FIRST, FAKE_SECOND };

struct fake_request {
    char name[64];
    int version;
    int flags;
    int route;
};

/** Every request so far, in order. */
const struct fake_request *fake_log(int *count_p);
/** How often cuInit was called. */
int fake_inits(void);

#endif
