/* measured.c - see measured.h.
 *
 * Floor 5. */
#include "cli/torch/measured.h"

#include <stdio.h>
#include <string.h>

#include "cli/tune/pieces.h"

static int try_settings(const struct ms_course *tensors, uint64_t device_bytes,
                        struct ms_torch_measured *measured)
{
    uint64_t capacity = device_bytes ? device_bytes : UINT64_MAX;
    int count;

    if (device_bytes)
        capacity -= measured->beside < capacity ? measured->beside : capacity;
    count = ms_torch_try_all(tensors, capacity, measured->tries);
    if (count < 0)
        return -1;
    measured->count = (size_t)count;
    if (!count)
        return 0;
    measured->is_off =
        ms_torch_is_off(measured->tries[0].result.peak_reserved + measured->beside, measured->had);
    measured->best = measured->is_off ? 0 : ms_torch_try_best(measured->tries, measured->count);
    return 0;
}

int ms_torch_measure(const char *path, const struct ms_course *blocks, uint64_t device_bytes,
                     struct ms_torch_measured *measured, struct ms_course *tensors_p, char *error,
                     size_t error_bytes)
{
    struct ms_pieces pieces = {0};
    int result;

    memset(measured, 0, sizeof(*measured));
    if (ms_course_read(path, true, tensors_p, error, error_bytes) < 0)
        return -1;
    result = ms_pieces_find(path, &pieces, error, error_bytes);
    if (result >= 0 && tensors_p->block_count) {
        measured->had = blocks->live_peak;
        measured->beside = ms_pieces_beside(&pieces, blocks);
        result = try_settings(tensors_p, device_bytes, measured);
        if (result < 0)
            snprintf(error, error_bytes, "there is no memory to try PyTorch's settings");
    }
    ms_pieces_close(&pieces);
    return result < 0 ? -1 : 0;
}
