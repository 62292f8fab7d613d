/*
 * Host work that needs all ranks of a communicator, in phases. In a group, each phase of every job runs
 * before the next phase of any: so one thread can bring several ranks together. A phase that waits may wait
 * only for what the others do in earlier phases.
 */
#include <stdlib.h>
#include <string.h>

#include "sim/nccl/nccl.h"

enum { PHASES = sizeof(((struct sim_job *)0)->phases) / sizeof(((struct sim_job *)0)->phases[0]) };

struct sim_job *sim_job_new(void)
{
    struct sim_job *job = calloc(1, sizeof(*job));

    if (!job)
        sim_fail(ncclSystemError, "out of memory");
    return job;
}

static void run_phase(struct sim_job *job, int phase)
{
    CUcontext ours;

    if (job->result != ncclSuccess || !job->phases[phase])
        return;
    if (SIM_DRV(cuCtxPushCurrent_v2, job->context) != CUDA_SUCCESS) {
        job->result = sim_fail(ncclUnhandledCudaError, "a communicator's context cannot be made current");
        return;
    }
    job->result = job->phases[phase](job);
    SIM_DRV(cuCtxPopCurrent_v2, &ours);
}

/* If one rank of this thread cannot even come, the others that are here would wait for it for ever. */
static void tell_others(struct sim_job *jobs, const struct sim_job *failed)
{
    for (struct sim_job *job = jobs; job; job = job->next) {
        if (job->comm && job->comm->room && strcmp(job->name, failed->name) == 0) {
            atomic_store(&job->comm->room->aborted, 1);
            sim_room_ring(job->comm->room);
        }
    }
}

ncclResult_t sim_jobs_run(struct sim_job *jobs)
{
    ncclResult_t result = ncclSuccess;

    for (int phase = 0; phase < (int)PHASES; phase++) {
        for (struct sim_job *job = jobs; job; job = job->next)
            run_phase(job, phase);
        for (struct sim_job *job = jobs; job && phase == 0; job = job->next)
            if (job->result != ncclSuccess && *job->name)
                tell_others(jobs, job);
    }
    while (jobs) {
        struct sim_job *job = jobs;

        jobs = job->next;
        if (result == ncclSuccess)
            result = job->result;
        free(job);
    }
    return result;
}

ncclResult_t sim_job_submit(struct sim_job *job)
{
    if (sim_group_open()) {
        sim_group_keep_job(job);
        return ncclSuccess;
    }
    return sim_jobs_run(job);
}
