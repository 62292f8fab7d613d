/* job_copies.h - what each process of a job held when one of them had no memory: copies of their ledgers.
 *
 * Floor 2. A ledger lies where every process of its user can read it, and says at any moment what its process
 * holds. So the process that has no memory copies those of its job, before the program hears of it: nobody is
 * asked, and one that is stopped, or makes no more calls, is told of as well as any other. The first of a job
 * does so, and of a process the first, so that a program that tries again and again pays once.
 *
 * The copies lie beside the ledgers, in a directory of the job's: memshim-job-UID-JOB, JOB being the number
 * in the ledgers. `memshim run` makes one job report of them, or `memshim merge` does. */
#ifndef MS_RECORD_FILE_JOB_COPIES_H
#define MS_RECORD_FILE_JOB_COPIES_H

#include <stdbool.h>
#include <stdint.h>

/** The end of a copy's name. */
#define MS_JOB_COPY ".copy"
/** A file that is there once the copies were read: the job has had its first. */
#define MS_JOB_COPIES_TOLD "told"

/** There was no memory: with nothing locked. `is_inner`: an allocator of the program's own said so, which
 * may have freed what it could and asked again since the vendor refused, so that this is what counts. */
void ms_job_copies_keep(bool is_inner);

/** True of the name of a job's directory. */
bool ms_job_copies_is_name(const char *name);
struct ms_job_copies_sum {
    uint64_t bytes, unix_ns; /* when they were made */
    uint64_t run_id;         /* of one of the copies, 0 for none */
};
/** False if it is not this user's directory. One caller at a time, as the next. */
bool ms_job_copies_sum(int directory_fd, const char *name, struct ms_job_copies_sum *sum_p);
/** Removes it with all that is in it. */
void ms_job_copies_remove(int directory_fd, const char *name);

#endif
