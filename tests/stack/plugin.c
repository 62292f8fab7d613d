/* plugin.c - a library that calls back through a few functions whose frames have PLUGIN_FRAME_BYTES bytes.
 *
 * Built twice, with two sizes that need the same instructions: the same addresses, other rules. Without frame
 * pointers. */
#include <stddef.h>

#define EXPORT __attribute__((visibility("default")))
#define KEEP   __attribute__((noinline))

EXPORT void plugin_call(void (*what)(void *), void *arg);

static KEEP void inner(void (*what)(void *), void *arg)
{
    volatile char room[PLUGIN_FRAME_BYTES];
    room[0] = room[sizeof room - 1] = 1;
    what(arg);
    room[1] = room[0];
}

static KEEP void middle(void (*what)(void *), void *arg)
{
    volatile char room[PLUGIN_FRAME_BYTES];
    room[0] = room[sizeof room - 1] = 1;
    inner(what, arg);
    room[1] = room[0];
}

void plugin_call(void (*what)(void *), void *arg)
{
    volatile char room[PLUGIN_FRAME_BYTES];
    room[0] = room[sizeof room - 1] = 1;
    middle(what, arg);
    room[1] = room[0];
}
