/* array.h - room for one row more in an array that grows.
 *
 * Floor 5. */
#ifndef MS_CLI_ARRAY_H
#define MS_CLI_ARRAY_H

#include <stddef.h>
#include <stdlib.h>

/** `rows`, of which `*room_p` have room, with room for more than `count`; where it has to become larger,
 * twice as large, `first` at least. NULL without memory: then `rows` is as it was. */
static inline void *ms_array_grow(void *rows, size_t row_bytes, size_t count, size_t *room_p, size_t first)
{
    size_t room = *room_p ? 2 * *room_p : first;
    void *larger;

    if (count < *room_p)
        return rows;
    larger = reallocarray(rows, room, row_bytes);
    if (larger)
        *room_p = room;
    return larger;
}

#endif
