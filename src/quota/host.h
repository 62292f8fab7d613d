/* host.h - what the host's memory has left, as the kernel tells it.
 *
 * Floor 1.5. For devices whose memory is the host's (hooks/serve/host_floor.h). Reads /proc/meminfo, and the
 * limits of the control groups that the process is in (version 1 and 2), each time anew: some ten short reads
 * of a few microseconds. No allocation, no lock; one caller at a time, who keeps cancellation off. No
 * descriptor is kept, so a program may close all of them. */
#ifndef MS_QUOTA_HOST_H
#define MS_QUOTA_HOST_H

#include <stdbool.h>
#include <stdint.h>

struct ms_host {
    uint64_t total_bytes;
    uint64_t available_bytes; /* without swapping: free pages, and those that the kernel can drop */
    /* The tightest control group still lets its processes have so much; UINT64_MAX without a limit. Pages of
     * files that can be dropped count as free. */
    uint64_t group_bytes;
};

/** False, and nothing is known, where there is no /proc or it says less. `root` is put before each path:
 * "". */
bool ms_host_read(const char *root, struct ms_host *host_p);

#endif
