/* grown_sites.c - see grown_sites.h.
 *
 * Floor 5. */
#include "cli/screens/grown_sites.h"

#include <stdlib.h>

void *ms_grow(void *rows, size_t row_bytes, size_t count, size_t *room_p, size_t first)
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
