/* guard.c - the per-thread record of what memshim is doing.
 *
 * Floor 0. Called from hooks; no lock, no allocation. */
#include "config.h"

#include <unistd.h>

#include "base/guard.h"

MS_TLS struct ms_thread ms_thread;

unsigned ms_thread_ask_id(void)
{
    return ms_thread.tid = (unsigned)gettid();
}
