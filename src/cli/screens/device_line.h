/* device_line.h - a device and whose its memory is, in one line: of processes that run, or of a report's
 * peak.
 *
 * Floor 5. */
#ifndef MS_CLI_SCREENS_DEVICE_LINE_H
#define MS_CLI_SCREENS_DEVICE_LINE_H

#include <jansson.h>
#include <stdio.h>

/** The line without its end: "4.00 GiB = 1.00 GiB free + 2.50 GiB yours (2.00 GiB allocated + 400.0 MiB
 * cached + 112.0 MiB contexts) + 300.0 MiB neighbours (300.0 MiB serve 4712) + 212.0 MiB unaccounted", and
 * behind it whose guarantees there are. `device` has `total_bytes`, `free_bytes`, `yours_bytes`,
 * `neighbours_bytes` and `unaccounted_bytes`. It may have parts of `yours`: `allocated_bytes`,
 * `cached_bytes`, `contexts_bytes` (`contexts_at_most`: others' may be in it), and `processes[]{pid, name,
 * used_bytes, yours, guarantee_bytes?}`. */
void ms_device_line_put(FILE *out, const json_t *device);

/** By how much a process has more than is kept for it; 0 where nothing is. */
json_int_t ms_device_line_beyond(const json_t *process);

#endif
