/* grown_sites.h - room for one row more in an array that grows.
 *
 * Floor 5. */
#ifndef MS_CLI_SCREENS_GROWN_SITES_H
#define MS_CLI_SCREENS_GROWN_SITES_H

#include <stdbool.h>
#include <stddef.h>

/** `rows`, of which `*room_p` have room, with room for more than `count`; where it has to become larger,
 * twice as large, `first` at least. NULL without memory: then `rows` is as it was. */
void *ms_grow(void *rows, size_t row_bytes, size_t count, size_t *room_p, size_t first);

#endif
