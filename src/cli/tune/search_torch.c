/* search_torch.c - settings of PyTorch's own allocator; see search.h.
 *
 * Floor 5. They are tried by the model of it, on a device with room to spare; of its other backend, which
 * asks the driver for each tensor, these calls are replayed. */
#include "cli/tune/search.h"

#include <string.h>

#include "base/compiler.h"
#include "cli/cli.h"
#include "record/live/ledger.h"

/* So many rows have a least device, and are shown: PyTorch as it comes, and those that reserve least. */
enum { LEASTS = 4 };

static uint64_t lost_of(const struct ms_torch_result *result)
{
    if (result->mapped)
        return ms_replay_cost("cuMemCreate", result->mapped, result->taken_bytes) +
               ms_replay_cost("cuMemMap", result->mapped, 0) +
               ms_replay_cost("cuMemSetAccess", result->mapped, 0) +
               ms_replay_cost("cuMemUnmap", result->unmapped, 0) +
               ms_replay_cost("cuMemRelease", result->unmapped, result->given_bytes);
    return ms_replay_cost("cuMemAlloc_v2", result->segments, result->taken_bytes) +
           ms_replay_cost("cuMemFree_v2", result->segments_freed, result->given_bytes);
}

static bool are_same(const struct ms_torch_result *a, const struct ms_torch_result *b)
{
    return a->completed == b->completed && a->peak_reserved == b->peak_reserved &&
           a->segments == b->segments && a->segments_freed == b->segments_freed && a->mapped == b->mapped &&
           a->unmapped == b->unmapped;
}

/* A row that has the figures of one that is shown shows nothing. */
static bool is_shown(const struct ms_torch_measured *torch, const bool *done, size_t row)
{
    for (size_t i = 0; i < torch->count; i++)
        if (done[i] && are_same(&torch->tries[i].result, &torch->tries[row].result))
            return true;
    return false;
}

static size_t next_to_show(const struct ms_torch_measured *torch, const bool *done, unsigned found)
{
    size_t next = SIZE_MAX;

    if (found < 2 && !done[found ? torch->best : 0])
        return found ? torch->best : 0;
    for (size_t i = 0; i < torch->count; i++)
        if (torch->tries[i].result.completed && !is_shown(torch, done, i) &&
            (next == SIZE_MAX ||
             torch->tries[i].result.peak_reserved < torch->tries[next].result.peak_reserved))
            next = i;
    return next;
}

/* Least devices of PyTorch as it comes, of the best, and of those that reserve least. */
static int find_leasts(struct ms_torch_measured *torch, const struct ms_course *course)
{
    bool done[MS_TORCH_TRIES_MOST] = {false};

    for (unsigned found = 0; found < LEASTS; found++) {
        size_t next = next_to_show(torch, done, found);

        if (next == SIZE_MAX)
            return 0;
        done[next] = torch->tries[next].is_shown = true;
        if (torch->tries[next].result.completed && ms_torch_try_least(course, &torch->tries[next]) < 0)
            return -1;
    }
    return 0;
}

/* The driver's own pool is the simulated one's, with room for tensors beside the blocks that hold none. It is
 * shown and never advised: with work queued, of which a trace says nothing, the pool takes more. */
static int try_async(const struct ms_search *search, struct ms_torch_measured *torch,
                     struct ms_course *tensors)
{
    struct ms_torch_try *tried = &torch->tries[torch->count];
    struct ms_replay replay = {.fd = -1};
    struct ms_replay_result result;
    struct ms_replay_order order = {.replay = &replay,
                                    .settings = "MEMSHIM_MODE=off",
                                    .device_bytes = search->replay_device - torch->beside,
                                    .last = tensors->count,
                                    .warm = SIZE_MAX};
    int status;

    if (ms_course_foreign(tensors) || search->replay_device <= torch->beside)
        return 0;
    for (size_t i = 0; i < tensors->count; i++)
        tensors->events[i].kind = MS_KIND_ASYNC;
    status = ms_replay_open(tensors, &replay);
    if (status == 0)
        status = ms_replay_all(&order, &result, 1, NULL, NULL);
    ms_replay_close(&replay);
    if (status < 0)
        return -1;
    *tried = (struct ms_torch_try){
        .settings = "backend:cudaMallocAsync", .lost_ns = result.sums.ns, .is_shown = true, .is_least = true};
    tried->result = (struct ms_torch_result){.completed = result.completed,
                                             .peak_reserved = result.peak,
                                             .segments = result.sums.calls - result.sums.waits,
                                             .segments_freed = result.sums.waits};
    torch->count++;
    return 0;
}

static const struct ms_search_trace *fullest(const struct ms_search *search)
{
    const struct ms_search_trace *found = NULL;

    for (size_t i = 0; i < search->trace_count; i++)
        if (search->traces[i].course.other_count &&
            (!found || search->traces[i].course.live_peak > found->course.live_peak))
            found = &search->traces[i];
    return found;
}

int ms_search_torch(struct ms_search *search)
{
    const struct ms_search_trace *trace = fullest(search);
    struct ms_torch_measured *torch = &search->torch;
    struct ms_course course = {.count = 0};
    char error[4608] = "there is no memory to try PyTorch's settings";
    int result;

    if (!trace)
        return 0;
    result = ms_torch_measure(trace->path, &trace->course, search->device_bytes, torch, &course, error,
                              sizeof(error));
    for (size_t i = 0; result == 0 && i < torch->count; i++)
        torch->tries[i].lost_ns = lost_of(&torch->tries[i].result);
    if (result == 0 && torch->count)
        result = find_leasts(torch, &course);
    if (result < 0)
        ms_cli_error("%s", error);
    else if (torch->count)
        result = try_async(search, torch, &course);
    ms_course_close(&course);
    return result;
}
