/* serve_wait.c - a free that has left more in limbo than MEMSHIM_LIMBO allows waits, as the vendor's would
 * have.
 *
 * Runs in the program's threads, and holds nothing between two looks: neither a section nor a lock, so that a
 * handler's calls are served, other threads go on, and the context may end. A child that a handler forked
 * meanwhile comes back here, and has nothing to wait for. */
#include "hooks/serve.h"

#include "base/clock.h"

void ms_serve_wait(const struct ms_pool_wait *wait)
{
    struct ms_section section;
    uint64_t pause = 0;

    for (bool over = false; !over && ms_init_owner();) {
        ms_clock_nap_longer(&pause);
        ms_section_enter(&section);
        over = !ms_init_owner() || ms_pool_wait_look(wait);
        ms_section_leave(&section);
    }
}
