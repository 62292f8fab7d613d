/* serve_wait.c - a free that has left more pending than MEMSHIM_LIMBO allows waits, as the vendor's would
 * have.
 *
 * Runs in the program's threads, and holds nothing between two looks: neither a hook scope nor a lock, so
 * that a handler's calls are served, other threads go on, and the context may end. A child that a handler
 * forked meanwhile comes back here, and has nothing to wait for. */
#include "hooks/serve/serve.h"

#include "base/clock.h"

void ms_serve_wait(const struct ms_pool_wait *wait)
{
    struct ms_hook_scope scope;
    uint64_t pause = 0;

    for (bool over = false; !over && ms_init_owner();) {
        ms_clock_sleep_longer(&pause);
        ms_hook_scope_enter(&scope);
        over = !ms_init_owner() || ms_pool_wait_poll(wait);
        ms_hook_scope_leave(&scope);
    }
}
