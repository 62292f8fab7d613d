/* wrapper_slots.c - which wrapper stands for which real function.
 *
 * A row has MS_WRAPPER_SLOTS wrappers; slot k holds the one real function that wrapper k calls. Slots are
 * taken under the resolve lock. One is given to another function only when its own went away with its
 * library: a program that still calls the old wrapper calls what it unloaded itself. */
#include "hooks/lookup/resolve.h"

struct ms_wrapped ms_wrapper_slots[MS_ROW_COUNT][MS_WRAPPER_SLOTS];

static bool is_loaded(enum ms_row row, const void *real)
{
    const struct ms_gpu *gpu;
    enum ms_row found;

    return ms_library_row_locked((uintptr_t)real, (int)row, &found, &gpu);
}

/* The slot that has this function, else an empty one, else one whose function is gone; -1 if there is
 * none. */
static int choose_locked(enum ms_row row, const void *real)
{
    int choice = -1;

    for (int k = 0; k < MS_WRAPPER_SLOTS && ms_wrapper_slots[row][k].target.real; k++) {
        if (ms_wrapper_slots[row][k].target.real == real)
            return k;
    }
    for (int k = MS_WRAPPER_SLOTS - 1; k >= 0; k--) {
        if (!ms_wrapper_slots[row][k].target.real)
            choice = k;
    }
    for (int k = 0; k < MS_WRAPPER_SLOTS && choice < 0; k++) {
        if (ms_wrapper_slots[row][k].of_library && !is_loaded(row, ms_wrapper_slots[row][k].target.real))
            choice = k;
    }
    return choice;
}

void *ms_wrapper_slot_take_locked(enum ms_row row, const struct ms_target *target)
{
    int k = choose_locked(row, target->real);

    if (k < 0)
        return NULL;
    if (ms_wrapper_slots[row][k].target.real != target->real)
        ms_wrapper_slots[row][k] = (struct ms_wrapped){*target, is_loaded(row, target->real)};
    return ms_rows[row]->wrappers[k];
}
