/* merge_mpi.c - memshim-merge-mpi: the reports of a job merged by the processes of an MPI job.
 *
 * Floor 5, a program of its own: memshim itself never loads an MPI library. Process i takes every so many-th
 * file from the i-th on, and job reports go up a binomial tree to process 0. They are sent, not reduced by an
 * operation of MPI's: such an operation combines equal numbers of elements of one fixed size, while a job
 * report grows with its processes and has a whole report in it; a size that all must fit would have each
 * level send as much as the root holds. Any grouping gives the same bytes (job.h), so the tree's form, and
 * how many processes there are, does not show.
 *
 * Nobody leaves early: who fails still takes what it is sent and says so upwards, and process 0 alone ends
 * with a status. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "cli/job/merge.h"
#include "report/read/parse.h"

const char ms_cli_prefix[] = "memshim-";

const struct ms_verb ms_verbs[] = {
    {"merge-mpi", "[OPTION...] FILE...", "memshim merge by the processes of an MPI job: srun, or mpirun",
     NULL},
    {NULL, NULL, NULL, NULL},
};

const struct ms_flag ms_flags[] = {
    {"merge-mpi", 'L', "", "files-from", "FILE", "read the names of reports from FILE as well, one a line"},
    {"merge-mpi", 'o', "o", "output", "FILE", "write the job report there (- is standard output)"},
    {"merge-mpi", 'f', "f", "force", "", "replace FILE if it exists"},
    {NULL, 0, NULL, NULL, NULL, NULL},
};

const struct ms_verb *ms_verb_find(const char *name)
{
    return strcmp(name, ms_verbs[0].name) ? NULL : &ms_verbs[0];
}

struct merging {
    struct ms_cli_printing printing;
    const char *list;
    struct ms_merge_paths paths;
    struct ms_job job;
    int process, processes; /* MPI's rank and size */
    bool failed;
};

static int merge_mpi_take(void *arg, int id, const char *value)
{
    struct merging *merging = arg;

    if (ms_cli_take_printing(&merging->printing, id, value))
        return 0;
    merging->list = value;
    if (strcmp(value, "-") != 0)
        return 0;
    ms_cli_error("--files-from '-' is not allowed: standard input reaches one process alone; give a file");
    return -1;
}

/* MS_EXIT_OK to go on; *done_p: there is nothing more to do. */
static int take_command_line(struct merging *merging, int argc, char **argv, int *done_p)
{
    int first = ms_cli_parse(argc, argv, false, merge_mpi_take, merging), status = 0;

    *done_p = first < 0;
    if (first < 0)
        return ms_cli_parse_status(first);
    for (int i = first; i < argc && status == 0; i++)
        if ((status = ms_merge_add(&merging->paths, argv[i])) < 0)
            ms_cli_error("no memory for %d names", argc - first);
    if (status == 0 && merging->list)
        status = ms_merge_read_list(merging->list, &merging->paths);
    if (status == 0 && !merging->paths.count) {
        ms_cli_error("no report given; usage: memshim-merge-mpi [OPTION...] [-o FILE] FILE...");
        status = -1;
    }
    *done_p = status < 0;
    return status < 0 ? MS_EXIT_USAGE : MS_EXIT_OK;
}

/* Process 0 alone says what is wrong with the command line, and the others do not go on either. A list that
 * only process 0 can read is a failure of theirs. */
static int merge_mpi_begin(struct merging *merging, int argc, char **argv, int *done_p)
{
    int answer[2] = {MS_EXIT_OK, 0}, unused;

    if (merging->process == 0)
        answer[0] = take_command_line(merging, argc, argv, &answer[1]);
    MPI_Bcast(answer, 2, MPI_INT, 0, MPI_COMM_WORLD);
    *done_p = answer[1];
    if (merging->process != 0 && !answer[1])
        merging->failed = take_command_line(merging, argc, argv, &unused) != MS_EXIT_OK;
    return merging->process == 0 ? answer[0] : MS_EXIT_OK;
}

static void take_files(struct merging *merging)
{
    size_t step = (size_t)merging->processes;

    for (size_t i = (size_t)merging->process; !merging->failed && i < merging->paths.count; i += step)
        merging->failed = ms_job_take_file(&merging->job, merging->paths.rows[i]) < 0;
}

/* A job report goes as its length, and then its bytes: MPI counts in ints. */
enum { TAG = 1, PART_BYTES = 1 << 30 };
#define FAILED UINT64_MAX

static int part_of(uint64_t left)
{
    return left < PART_BYTES ? (int)left : PART_BYTES;
}

/* The others wait for us: without memory all end. */
static char *memory_for(uint64_t bytes, int from)
{
    char *text = malloc(bytes + 1);

    if (!text) {
        ms_cli_error("no memory for the %llu bytes of process %d", (unsigned long long)bytes, from);
        MPI_Abort(MPI_COMM_WORLD, MS_EXIT_USAGE);
    }
    return text;
}

static void take_text(struct merging *merging, const char *text, uint64_t bytes, int from)
{
    struct ms_parse_fault fault;
    json_t *root = ms_parse_text(text, bytes, &fault);

    if (!root || ms_job_take_merged(&merging->job, root) < 0) {
        ms_cli_error("what process %d sent is no job report, or there is no memory", from);
        merging->failed = true;
    }
    json_decref(root);
}

static void receive(struct merging *merging, int from)
{
    uint64_t bytes = 0;
    char *text;

    MPI_Recv(&bytes, 1, MPI_UINT64_T, from, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (bytes == FAILED)
        merging->failed = true;
    if (bytes == FAILED || !bytes)
        return;
    text = memory_for(bytes, from);
    for (uint64_t at = 0; text && at < bytes; at += PART_BYTES)
        MPI_Recv(text + at, part_of(bytes - at), MPI_BYTE, from, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (text && !merging->failed)
        take_text(merging, text, bytes, from);
    free(text);
}

/* The job report of what was taken, for the caller to free(); NULL with nothing in it, or after an error. */
static char *merge_mpi_text_of(struct merging *merging, size_t *bytes_p)
{
    char *text = NULL;
    FILE *out;

    if (merging->failed || !merging->job.rank_count)
        return NULL;
    merging->failed = ms_job_finish(&merging->job) < 0;
    out = merging->failed ? NULL : open_memstream(&text, bytes_p);
    if (merging->failed || (out && ms_job_write(out, &merging->job) == 0 && fclose(out) == 0))
        return text;
    ms_cli_error("no memory for the job report of %zu processes", merging->job.rank_count);
    merging->failed = true;
    return NULL;
}

static void send_up(struct merging *merging, int to)
{
    size_t length = 0;
    char *text = merge_mpi_text_of(merging, &length);
    uint64_t bytes = merging->failed ? FAILED : text ? length : 0;

    MPI_Send(&bytes, 1, MPI_UINT64_T, to, TAG, MPI_COMM_WORLD);
    for (uint64_t at = 0; bytes != FAILED && at < bytes; at += PART_BYTES)
        MPI_Send(text + at, part_of(bytes - at), MPI_BYTE, to, TAG, MPI_COMM_WORLD);
    free(text);
}

/* Process p takes p + 1, p + 2, p + 4, ... as far as its lowest bit, and sends to p without that bit. */
static int reduce(struct merging *merging)
{
    for (int bit = 1; bit < merging->processes; bit <<= 1) {
        if (merging->process & bit) {
            send_up(merging, merging->process - bit);
            return MS_EXIT_OK;
        }
        if (merging->process + bit < merging->processes)
            receive(merging, merging->process + bit);
    }
    if (merging->failed || ms_job_finish(&merging->job) < 0)
        return MS_EXIT_USAGE;
    return ms_merge_write(&merging->printing, &merging->job);
}

int main(int argc, char **argv)
{
    static char name[] = "merge-mpi";
    struct merging merging = {.process = 0};
    int done, status;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &merging.process);
    MPI_Comm_size(MPI_COMM_WORLD, &merging.processes);
    argv[0] = name;
    status = merge_mpi_begin(&merging, argc, argv, &done);
    if (!done) {
        take_files(&merging);
        status = reduce(&merging);
    }
    ms_job_close(&merging.job);
    ms_merge_close(&merging.paths);
    MPI_Finalize();
    return status;
}
