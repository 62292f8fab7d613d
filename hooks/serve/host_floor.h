/* host_floor.h - MEMSHIM_HOST_FLOOR: what the host keeps where a device's memory is the host's.
 *
 * Floor 3. On a GB10 or a Jetson the device takes pages of the machine's memory, and a machine that has none
 * left may stop to answer, with no process killed. So the quota asks here before more is taken: the memory
 * that is available without swapping, without the floor, has to hold what this process asks for, and what
 * other processes on the device's page are asking for just now. A limit of the process's control group holds
 * too, though such memory is not charged to it: what the process takes of the device counts as if it were. */
#ifndef MS_HOOKS_SERVE_HOST_FLOOR_H
#define MS_HOOKS_SERVE_HOST_FLOOR_H

#include <stdbool.h>
#include <stdint.h>

#include "vendor/gpu.h"

/** True if there may be a floor. */
bool ms_host_floor_is_set(void);
/** The quota asks about the device from now on, if its memory is the host's. True if any device of the driver
 * is such a one. */
bool ms_host_floor_meet(const struct ms_gpu *gpu, int device);
/** The bytes of the device that are free, where its driver says `free_bytes`, which may be without the pages
 * that the kernel can drop. */
uint64_t ms_host_floor_free(int device, uint64_t free_bytes);

#endif
