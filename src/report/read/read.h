/* read.h - a report read back from its file.
 *
 * Floor 4, command line only: malloc, jansson's shared library. What is read is not trusted: every access
 * here answers with 0, "" or NULL where the file lacks something or has it in another type, and ids out of
 * range name nothing. */
#ifndef MS_REPORT_READ_READ_H
#define MS_REPORT_READ_READ_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* Longer stacks than the recorder ever keeps (256 frames, some of them several inlined functions) are cut
 * when read. */
#define MS_REPORT_DEPTH_MAX 2048

struct ms_report {
    json_t *root;  /* owned */
    json_t *sites; /* borrowed from root; NULL where absent */
    json_t *stacks;
    json_t *frames;
    json_t *modules;
    struct ms_report_index *site_index, *module_index; /* made when first needed, as the next ones */
    struct ms_report_device_index *device_index;
    struct ms_report_nodes *nodes;     /* stacks[] as numbers */
    unsigned char *folds;              /* report/analyse/fold.c: what is known of each row of frames[] */
    struct ms_report_sites *site_rows; /* report/read/sites.h */
    unsigned *callers;                 /* report/analyse/callers.c: by stack, the row of sites[] plus 1 */
};

/** Read a report; `path` "-" is standard input. What is no regular file is not opened, but for a pipe that
 * the shell made (/dev/fd/N).
 *
 * Returns 0, or -1 with one line in `error` that names the file and what is wrong with it: unreadable, no
 * JSON (with line and column), no memshim report, or one of a later major version. The caller closes a report
 * that was read. */
int ms_report_read(const char *path, struct ms_report *report_p, char *error, size_t error_bytes);
/** As ms_report_read(), but from a descriptor, which it closes; `path` is for errors. */
int ms_report_read_fd(int fd, const char *path, struct ms_report *report_p, char *error, size_t error_bytes);
void ms_report_close(struct ms_report *report);

/** Stacks or frames have changed, or what rows of sites[] say: what was worked out of them is forgotten. */
void ms_report_changed(struct ms_report *report);

/** Members of any object of the report, leniently. */
json_int_t ms_report_int(const json_t *object, const char *key);
const char *ms_report_text(const json_t *object, const char *key);
bool ms_report_bool(const json_t *object, const char *key);
json_t *ms_report_array(const json_t *object, const char *key);

/** The sum of two figures, which nothing says will fit: cut to what can be written. */
json_int_t ms_report_sum(json_int_t a, json_int_t b);

/** The row with this id; NULL if there is none. */
json_t *ms_report_site(const struct ms_report *report, json_int_t id);
json_t *ms_report_module(const struct ms_report *report, json_int_t id);

/** The frame of the node *stack_p and its row in frames[], and *stack_p becomes the node's parent; NULL at
 * the end. A stack of a damaged report may refer to itself: callers bound their steps. */
json_t *ms_report_stack_next(const struct ms_report *report, json_int_t *stack_p, size_t *row_p);
/** The frames of a stack, innermost first, at most `max`; returns how many. A stack that refers to itself is
 * cut. */
size_t ms_report_stack(const struct ms_report *report, json_int_t stack, json_t **frames, size_t max);

/** The interface whose device `device` of a row is: "cuda" where the row does not say. */
const char *ms_report_device_api(const json_t *row);
/** The interface as it stands before "device 0" in a text: nothing for CUDA, "hip " for HIP. */
const char *ms_report_device_prefix(const json_t *row);
/** The bytes that all screens call reserved: the most that the program had of the device at once, the pool's
 * segments and what the vendor made for it; a row of devices[]. Of a report that does not say, what is known
 * to be no more. */
json_int_t ms_report_reserved(const json_t *device);
/** The reserved bytes at the end. */
json_int_t ms_report_held(const json_t *device);
/** Which row of devices[] a row of any list lies on, the first if several are alike; SIZE_MAX for none. What
 * is worked out per device goes through the lists once and asks this: files with many devices exist. */
size_t ms_report_device_of(const struct ms_report *report, const json_t *row);
/** The first row of devices[] that is the same device as this one, which stands for it in such sums. */
size_t ms_report_device_first(const struct ms_report *report, const json_t *device);

/** True if a site's blocks count towards its device: host memory and what others own does not. */
bool ms_report_is_device_memory(const json_t *site);

#endif
