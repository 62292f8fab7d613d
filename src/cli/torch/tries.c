/* tries.c - see tries.h.
 *
 * Floor 5. */
#include "cli/torch/tries.h"

#include <string.h>

#include "base/compiler.h"

#define GRANULE (UINT64_C(2) << 20)
#define BETTER  0.99 /* what saves less is not worth a setting */

enum {
    EXCLUDES_NONE,
#define MS_TORCH_EXCLUDES(id, text) EXCLUDES_##id,
#define MS_TORCH_TRY(settings, excludes, reason)
#include "cli/torch/tries.def"
#undef MS_TORCH_EXCLUDES
};

static const char *const excludes_texts[] = {
    NULL,
#define MS_TORCH_EXCLUDES(id, text) text,
#include "cli/torch/tries.def"
#undef MS_TORCH_EXCLUDES
#undef MS_TORCH_TRY
};

static const struct {
    const char *settings, *reason;
    int excludes;
} rows[] = {
#define MS_TORCH_EXCLUDES(id, text)
#define MS_TORCH_TRY(settings, excludes, reason) {settings, reason, EXCLUDES_##excludes},
#include "cli/torch/tries.def"
#undef MS_TORCH_EXCLUDES
#undef MS_TORCH_TRY
};
_Static_assert(MS_ARRAY_LEN(rows) + 2 <= MS_TORCH_TRIES_MOST,
               "with PyTorch as it comes and its other backend");

static int replay(const struct ms_course *course, const char *settings, uint64_t capacity,
                  struct ms_torch_result *result)
{
    struct ms_torch_settings parsed;
    char error[256];

    return ms_torch_parse(settings, &parsed, error, sizeof(error)) < 0
               ? -1
               : ms_torch_replay(course, &parsed, capacity, result);
}

/* PyTorch for ROCm has expandable segments since 2.11 alone, and was seen to hang with them (pytorch#192259).
 */
static bool is_for(const char *foreign, const char *settings)
{
    return !foreign || !strstr(settings, "expandable_segments");
}

int ms_torch_try_all(const struct ms_course *course, uint64_t capacity, struct ms_torch_try *tries)
{
    const char *foreign = ms_course_foreign(course);
    int count = 0;

    if (foreign && strcmp(foreign, "HIP") != 0) /* torch_npu has an allocator and a variable of its own */
        return 0;
    tries[count++] = (struct ms_torch_try){.settings = ""};
    for (size_t i = 0; i < MS_ARRAY_LEN(rows); i++)
        if (is_for(foreign, rows[i].settings))
            tries[count++] = (struct ms_torch_try){.settings = rows[i].settings,
                                                   .reason = rows[i].reason,
                                                   .excludes = excludes_texts[rows[i].excludes]};
    for (int i = 0; i < count; i++)
        if (replay(course, tries[i].settings, capacity, &tries[i].result) < 0)
            return -1;
    return count;
}

int ms_torch_try_least(const struct ms_course *course, struct ms_torch_try *one)
{
    uint64_t low = 0, high = (one->result.peak_reserved + GRANULE - 1) / GRANULE;
    struct ms_torch_result result;

    do {
        if (replay(course, one->settings, high * GRANULE, &result) < 0)
            return -1;
        low = result.completed ? low : high;
        high = result.completed ? high : high + high / 16 + 1;
    } while (!result.completed);
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;

        if (replay(course, one->settings, middle * GRANULE, &result) < 0)
            return -1;
        *(result.completed ? &high : &low) = middle;
    }
    one->least = high * GRANULE;
    return 0;
}

size_t ms_torch_try_best(const struct ms_torch_try *tries, size_t count)
{
    size_t best = 0;

    for (size_t i = 1; i < count; i++) {
        const struct ms_torch_result *result = &tries[i].result, *least = &tries[best].result;

        if (result->completed &&
            (!least->completed || (double)result->peak_reserved < BETTER * (double)least->peak_reserved))
            best = i;
    }
    return best;
}
