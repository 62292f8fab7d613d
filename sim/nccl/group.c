/*
 * The group of a thread: what was asked for between ncclGroupStart and ncclGroupEnd, kept until then. Jobs
 * run first, for a group has either jobs or operations.
 */
#include <stdlib.h>

#include "sim/nccl/nccl.h"

static __thread struct group {
    int depth;
    struct sim_job *jobs, **last_job;
    struct sim_operation *operations, **last_operation;
} group;

bool sim_group_open(void)
{
    return group.depth > 0;
}

void sim_group_keep_job(struct sim_job *job)
{
    *group.last_job = job;
    group.last_job = &job->next;
}

ncclResult_t sim_group_keep_operation(const struct sim_operation *operation)
{
    struct sim_operation *kept = malloc(sizeof(*kept));

    if (!kept)
        return sim_fail(ncclSystemError, "out of memory");
    *kept = *operation;
    kept->next = NULL;
    *group.last_operation = kept;
    group.last_operation = &kept->next;
    return ncclSuccess;
}

SIM_NCCL(ncclResult_t, GroupStart, (void))
{
    if (group.depth++ == 0) {
        group.jobs = NULL;
        group.last_job = &group.jobs;
        group.operations = NULL;
        group.last_operation = &group.operations;
    }
    return ncclSuccess;
}

SIM_NCCL(ncclResult_t, GroupEnd, (void))
{
    ncclResult_t result;

    if (!group.depth)
        return sim_fail(ncclInvalidUsage, "ncclGroupEnd: not in a group call.");
    if (--group.depth)
        return ncclSuccess;
    result = sim_jobs_run(group.jobs);
    if (result == ncclSuccess)
        return sim_launch_all(group.operations);
    while (group.operations) {
        struct sim_operation *operation = group.operations;

        group.operations = operation->next;
        sim_operation_free(operation);
    }
    return result;
}
