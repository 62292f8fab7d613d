/* slots.c - which wrapper stands for which real function.
 *
 * A row has MS_SLOTS wrappers; slot k holds the one real function that wrapper k calls. Slots are taken under the resolve lock and
 * never given back: a wrapper, once handed out, may be called for as long as the process lives. */
#include "hooks/resolve.h"

static struct ms_target slots[MS_ROW_COUNT][MS_SLOTS];

void *ms_slot_wrapper_locked(enum ms_row row, const struct ms_target *target)
{
    for (unsigned k = 0; k < MS_SLOTS; k++) {
        struct ms_target *slot = &slots[row][k];
        if (slot->real && slot->real != target->real)
            continue;
        if (!slot->real)
            *slot = *target;
        return ms_rows[row]->wrappers[k];
    }
    return NULL;
}

const struct ms_target *ms_slot_target(enum ms_row row, unsigned slot)
{
    return &slots[row][slot];
}
