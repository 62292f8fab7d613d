/* job.h - the reports of a job's processes, combined: one report of the same schema, with ranks[] and job{}.
 *
 * Floor 5. A job report is the whole report of the process whose device was fullest, so that every verb reads
 * it, and beside it what all processes had. Everything is made of integers by operations that any grouping
 * leaves the same, with ties to the lower rank: merging all at once or by a tree gives the same bytes. Peaks
 * are never added up: a process counts by its fullest device.
 *
 * job.c has the rows, job_take.c and job_measured.c take reports, job_read.c job reports, job_finish.c sorts,
 * job_groups.c says who does the same and who stands out, job_write.c and job_text.c write; merge_tree.c
 * merges files, cmd_merge.c is the verb. */
#ifndef MS_CLI_JOB_JOB_H
#define MS_CLI_JOB_JOB_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "cli/check/check.h"
#include "export/names.h"
#include "report/read/read.h"

enum ms_job_figure {
    MS_JOB_PEAK, /* of its fullest device */
    MS_JOB_LIVE, /* at the end, on all devices */
    MS_JOB_LEAKED,
    MS_JOB_RESERVED, /* of the device where that was most */
    MS_JOB_CALLS,
    MS_JOB_GROWTH,
    MS_JOB_FIGURES
};
extern const char *const ms_job_figures[MS_JOB_FIGURES]; /* keys */

/** Things that processes have in common, as lists of rows that any of them has. */
enum ms_job_list_id { MS_JOB_SITES, MS_JOB_OWNERS, MS_JOB_PHASES, MS_JOB_DEVICES, MS_JOB_LISTS };

/* So many words and figures a row has at most. */
enum { MS_JOB_WORDS = 6, MS_JOB_WEIGHTS = 4 };

/** How the rows of a list are told. */
struct ms_job_list_info {
    const char *name;                    /* key of the list in job{} */
    const char *words[MS_JOB_WORDS + 1]; /* keys of texts, to the first NULL */
    unsigned keys;      /* so many of these say which row it is; a process tells the others */
    const char *number; /* key of a number; NULL: none */
    bool is_key;        /* which also says which row it is */
    size_t most;        /* so many rows are kept, the first by key */
    const char *weights[MS_JOB_WEIGHTS + 1]; /* keys of figures, to the first NULL */
};
extern const struct ms_job_list_info ms_job_lists[MS_JOB_LISTS];

/** Words of rows of MS_JOB_SITES. */
enum { MS_JOB_HASH, MS_JOB_KIND, MS_JOB_API, MS_JOB_AT, MS_JOB_OWNER, MS_JOB_FILE };
/** Figures of MS_JOB_SITES, MS_JOB_OWNERS and MS_JOB_PHASES. */
enum { MS_JOB_AT_PEAK, MS_JOB_SITE_LIVE, MS_JOB_SITE_LEAKED, MS_JOB_SITE_CALLS };
enum { MS_JOB_OWNER_PEAK, MS_JOB_OWNER_LIVE, MS_JOB_OWNER_LEAKED, MS_JOB_OWNER_GROWTH };
enum { MS_JOB_PHASE_PEAK, MS_JOB_PHASE_GROWTH, MS_JOB_PHASE_COUNT, MS_JOB_PHASE_NS };

/* So many call sites are kept of each process: they say what it does, and why it stands out. */
enum { MS_JOB_PARTS = 8 };

struct ms_job_part {
    uint32_t site;
    json_int_t bytes;
};

/** The figures that a process had on a device, those of memshim check. */
struct ms_job_device {
    uint32_t row; /* of MS_JOB_DEVICES */
    json_int_t bytes[MS_CHECK_DEVICE_FIGURES];
};

struct ms_job_rank {
    json_int_t rank; /* -1: none */
    json_int_t pid, start_unix_ns, ooms;
    const char *host;
    json_int_t figures[MS_JOB_FIGURES];
    json_int_t at_unix_ns; /* when it was looked at; 0: it has ended, and tells no `live` */
    struct ms_job_part held[MS_JOB_PARTS], leaked[MS_JOB_PARTS], live[MS_JOB_PARTS]; /* most first */
    uint8_t held_count, leaked_count, live_count;
    struct ms_job_device *devices; /* owned; by row */
    size_t device_count;
    uint32_t group;
};

/** How many processes had about so much: buckets of a 64th (job.c). */
struct ms_job_count {
    uint16_t bucket;
    uint32_t count;
};

struct ms_job_spread {
    json_int_t min, max;
    uint32_t min_rank, max_rank; /* rows of ranks[] */
    struct ms_job_part blamed; /* of who had most: the call site that had most of it; UINT32_MAX: not told */
    struct ms_job_count *counts; /* by bucket */
    uint16_t buckets;
};

/** A row of a list, as a call site. */
struct ms_job_row {
    const char *key; /* the words that say which it is */
    const char *words[MS_JOB_WORDS];
    json_int_t number;
    uint32_t told_by; /* the row of ranks[] that tells the other words: the lowest that has it */
    uint32_t ranks;   /* that have it */
    struct ms_job_spread weights[MS_JOB_WEIGHTS];
    uint32_t state_word; /* while a report is taken: what it has of this */
    json_int_t now[MS_JOB_WEIGHTS];
    struct ms_job_part now_blamed[MS_JOB_WEIGHTS];
    json_int_t now_held, now_live; /* of device memory alone */
};

struct ms_job_list {
    struct ms_names keys;
    struct ms_job_row *rows;
    size_t count, room;
    json_int_t left_out; /* rows of processes that are in none of these */
};

struct ms_job_group {
    uint32_t first, count; /* of ranks: the lowest, and how many */
};

struct ms_job_outlier {
    uint32_t rank; /* row of ranks[] */
    enum ms_job_figure figure;
    json_int_t value, median; /* its own, and its group's */
    uint32_t site;            /* UINT32_MAX: none */
    json_int_t site_bytes, site_median;
};

struct ms_job {
    struct ms_names texts;
    struct ms_job_rank *ranks;
    size_t rank_count, rank_room;
    struct ms_job_list lists[MS_JOB_LISTS];
    json_t *shown; /* the report of the fullest, owned */
    json_t *least; /* what a context took of a card of each model at least (report/analyse/contexts_others.h),
                      owned */
    uint32_t shown_rank;
    uint32_t state_word;
    struct ms_job_group *groups;
    size_t group_count;
    struct ms_job_outlier *outliers; /* most beyond its group first */
    size_t outlier_count, outliers_all;
};

/** Take a report that has its names; what of it is kept is kept by reference. 0, or -1 without memory. */
int ms_job_take(struct ms_job *job, struct ms_report *report);
/** Take the least bytes that contexts took of each model of card, from a report or a job's. */
void ms_job_take_least(struct ms_job *job, const struct ms_report *report);
/** Take a file, be it a report or a job report. 0, or -1 after an error line. */
int ms_job_take_file(struct ms_job *job, const char *path);
/** Take what a job report says, whose root stays the caller's. 0, or -1: no memory, or it is damaged. */
int ms_job_take_merged(struct ms_job *job, json_t *root);
/** Everything in its order, groups and outliers. 0, or -1 after an error line (no memory, or one process
 * twice). Nothing is taken afterwards. */
int ms_job_finish(struct ms_job *job);
void ms_job_close(struct ms_job *job);

/** The job report. 0, or -1 with errno. */
int ms_job_write(FILE *out, const struct ms_job *job);
void ms_job_put_text(FILE *out, const struct ms_job *job);
/** "2 figures stand out" and a line for each, at most `most`, with the call site that makes it so. */
void ms_job_put_outliers(FILE *out, const struct ms_job *job, size_t most);

/* --- between its files
 * ------------------------------------------------------------------------------------ */

/** By rank, those without one last, then host, process and time. */
int ms_job_compare(const struct ms_job_rank *a, const struct ms_job_rank *b);
struct ms_job_rank *ms_job_add_rank(struct ms_job *job);
/** A word of a row of the job's call sites. */
static inline const char *ms_job_site_word(const struct ms_job *job, uint32_t site, unsigned word)
{
    return job->lists[MS_JOB_SITES].rows[site].words[word];
}
/** The words that a row says of itself. */
struct ms_job_words {
    const char *texts[MS_JOB_WORDS];
    json_int_t number;
};
/** The row with these words, of which those that are its key count, new if need be; UINT32_MAX without
 * memory. */
uint32_t ms_job_row(struct ms_job *job, enum ms_job_list_id list, const struct ms_job_words *words);
/** True if processes tell words of a list's rows that are not their keys. */
static inline bool ms_job_is_told(enum ms_job_list_id list)
{
    return ms_job_lists[list].words[ms_job_lists[list].keys] != NULL;
}
/** Figures that are below nothing, which only a damaged file has, count as nothing. */
static inline json_int_t ms_job_figure_of(json_int_t value)
{
    return value > 0 ? value : 0;
}
/** A text that lives as long as the job; NULL without memory. */
const char *ms_job_text(struct ms_job *job, const char *text);
/** True if a process is lower than the one that told the words of a row, or if none has told them yet. */
bool ms_job_tells(const struct ms_job *job, const struct ms_job_row *row, uint32_t rank);
/** It tells them. 0, or -1 without memory. */
int ms_job_tell(struct ms_job *job, enum ms_job_list_id list, uint32_t row, uint32_t rank,
                const struct ms_job_words *words);
/** The bucket of a figure. */
unsigned ms_job_bucket(json_int_t value);
/** `count` processes of bucket `bucket` more; -1 without memory. */
int ms_job_count_in(struct ms_job_spread *spread, unsigned bucket, uint32_t count);
/** The least and the most, as those of `other` go further or, `first`, are the first. */
void ms_job_widen(const struct ms_job *job, struct ms_job_spread *spread, bool first,
                  const struct ms_job_spread *other);
/** Half way from one figure to another: of an even number of figures the median is that of the middle two. */
static inline json_int_t ms_job_between(json_int_t a, json_int_t b)
{
    return (a & b) + ((a ^ b) >> 1);
}
/** The median, with the figures down to the beginning of their buckets. */
json_int_t ms_job_median(const struct ms_job_spread *spread, uint32_t ranks);
/** Of a figure over ranks[]: the rows of the least, the median (of an even number the lower of the middle
 * two) and the most, and the median itself. Ties to the lower rank. */
json_int_t ms_job_spread_of(const struct ms_job *job, enum ms_job_figure figure, uint32_t *order,
                            uint32_t rows[3]);
/** A report that is being taken. */
struct ms_job_footprint_event {
    struct ms_job *job;
    const struct ms_report *report;
    uint32_t rank;  /* row of ranks[] */
    size_t fullest; /* row of devices[] */
    struct ms_job_touched {
        enum ms_job_list_id list;
        uint32_t row;
    } * touched; /* what this report has */
    size_t touched_count, touched_room;
    json_int_t *leaked;  /* by site id */
    uint32_t *site_rows; /* by site id: the job's row, UINT32_MAX: none */
};
/** The row, whose `now` is the report's; of a number that is UINT32_MAX, or without memory, NULL. */
struct ms_job_row *ms_job_touch(struct ms_job_footprint_event *taking, enum ms_job_list_id list,
                                uint32_t number);
/** Take the figures that memshim check measures of it: growth, devices, owners, phases (job_measured.c). 0,
 * or -1 without memory. */
int ms_job_take_measured(struct ms_job_footprint_event *taking);
/** Groups and outliers, of ranks and sites in their order. 0, or -1 without memory. */
int ms_job_group(struct ms_job *job);

/** Merge files by a tree: `processes` at once, 64 files each (merge_tree.c). 0, or -1 after an error line. */
int ms_merge_tree(struct ms_job *job, char **paths, size_t count, long processes);

#endif
