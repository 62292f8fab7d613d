/* shares.h - devices that processes share, out of their pages (docs/internals/share-format.md).
 *
 * Floor 5. Nothing is written and no lock taken: who is there is asked of the kernel. */
#ifndef MS_CLI_LIVE_SHARES_H
#define MS_CLI_LIVE_SHARES_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/** The devices of all pages that can be found: where ledgers lie, and in the group's directory. Each is
 * as screens/device_line.h has it, with `uuid`, `group` (the page is one's), and `others_bytes`, which is
 * what is unaccounted; free is what no process has and no other took, as far as anybody saw. NULL without
 * memory. */
json_t *ms_shares_json(void);
/** Removes the pages in this user's directory `path` on which nobody is, or says how many there are. */
size_t ms_shares_clean(const char *path, bool dry);
/** One of those as one line without its end: "GPU-6d656d73: 4.00 GiB = 1.00 GiB free + ...". */
void ms_shares_put(FILE *out, const json_t *device);

#endif
