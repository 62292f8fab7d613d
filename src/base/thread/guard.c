/* guard.c - the per-thread record of what memshim is doing.
 *
 * Floor 0. Called from hooks; no lock, no allocation. */
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/thread/guard.h"
#include "base/thread/thread_own.h"

MS_TLS struct ms_thread ms_thread = {.own = &ms_own_none};

unsigned ms_thread_query_id(void)
{
    return ms_thread.tid = (unsigned)syscall(SYS_gettid);
}

bool ms_thread_is_gone(unsigned tid)
{
    int saved_errno = errno;
    bool gone = syscall(SYS_tgkill, getpid(), tid, 0) != 0 && errno == ESRCH;
    errno = saved_errno;
    return gone;
}
