/*
 * facts_hangs.c: question 12: streams that wait for each other. What would hang for ever is let go by the
 * host.
 */
#include "facts.h"

#define MANY       64
#define PATIENT_MS 2000
#define HANGS_MS   300

static CUresult launch_nothing(CUstream stream)
{
    CUfunction kernel = kit_kernel("memsim_nothing");

    return kernel ? cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL) : CUDA_ERROR_NOT_FOUND;
}

/* The stream runs a kernel and then writes the word that another stream waits for. */
static void let_go_from(CUstream stream, const struct kit_hold *hold)
{
    kit_must(launch_nothing(stream));
    kit_must(cuStreamWriteValue32_v2(stream, hold->address, 1, CU_STREAM_WRITE_VALUE_DEFAULT));
}

static void two_streams(void)
{
    struct kit_hold hold;
    CUstream one, other;
    CUevent after;

    kit_must(cuStreamCreate(&one, CU_STREAM_NON_BLOCKING));
    kit_must(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    kit_must(cuEventCreate(&after, CU_EVENT_DISABLE_TIMING));
    kit_must(kit_hold(&hold, one));
    let_go_from(other, &hold);
    fact(streams_run_together, "%s", kit_over(one, PATIENT_MS) ? "yes" : "no");
    kit_release(&hold);
    kit_must(cuCtxSynchronize());

    kit_must(kit_hold(&hold, one));
    kit_must(cuEventRecord(after, one));
    kit_must(cuStreamWaitEvent(other, after, 0));
    let_go_from(other, &hold);
    fact(wait_for_held_stream_hangs, "%s", kit_over(one, HANGS_MS) ? "no" : "yes");
    kit_release(&hold);
    kit_must(cuCtxSynchronize());
}

static void behind_legacy(void)
{
    struct kit_hold hold;
    CUstream blocking;

    kit_must(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
    kit_must(kit_hold(&hold, CU_STREAM_LEGACY));
    let_go_from(blocking, &hold);
    fact(blocking_behind_legacy_hangs, "%s", kit_over(CU_STREAM_LEGACY, HANGS_MS) ? "no" : "yes");
    kit_release(&hold);
    kit_must(cuCtxSynchronize());
}

static void many_streams(enum fact_id id, enum kit_hold_kind kind)
{
    CUstream streams[MANY];
    struct kit_hold hold;
    unsigned blocked = 0;
    enum kit_hold_kind usual = kit_hold_kind();

    for (unsigned i = 0; i < MANY; i++)
        kit_must(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
    kit_hold_use(kind);
    CUresult status = kit_hold(&hold, streams[0]);
    kit_hold_use(usual);
    if (status != CUDA_SUCCESS) {
        fact_say(id, "- it cannot hold a stream here: status %d", (int)status);
    } else {
        for (unsigned i = 1; i < MANY; i++)
            kit_must(launch_nothing(streams[i]));
        kit_pause_ms(HANGS_MS);
        for (unsigned i = 1; i < MANY; i++)
            blocked += !kit_over(streams[i], 20);
        fact_say(id, "%u", blocked);
        kit_release(&hold);
    }
    kit_must(cuCtxSynchronize());
    for (unsigned i = 0; i < MANY; i++)
        kit_must(cuStreamDestroy_v2(streams[i]));
}

void facts_hangs(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    kit_begin();
    kit_must(launch_nothing(NULL));
    kit_must(cuCtxSynchronize());
    enum kit_hold_kind kind = kit_hold_kind();
    fact(hold_kind, "%s",
         kind == KIT_HOLD_KERNEL  ? "kernel"
         : kind == KIT_HOLD_VALUE ? "value"
                                  : "- nothing");
    if (kind == KIT_HOLD_NONE)
        kit_give_up("neither kernels nor waits for values hold a stream here");
    two_streams();
    behind_legacy();
    if (kind == KIT_HOLD_KERNEL)
        many_streams(FACT_streams_blocked_by_kernel, KIT_HOLD_KERNEL);
    else
        fact(streams_blocked_by_kernel, "- kernels do not hold a stream here");
    many_streams(FACT_streams_blocked_by_value, KIT_HOLD_VALUE);
}
