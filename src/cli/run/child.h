/* child.h - a program run as a child: exec, signals, job control, the end.
 *
 * Floor 5. */
#ifndef MS_CLI_RUN_CHILD_H
#define MS_CLI_RUN_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

/** Find a program as execvp would: `name` itself if it has a slash, else along PATH.
 *
 * Returns 0 and a path of malloc's, or 126 / 127 after an error line. */
int ms_child_find(const char *name, char **path_p);

struct ms_child {
    pid_t pid;
    int status;            /* the exit status a shell would give: the program's own, or 128 + signal */
    int signal;            /* that ended it, 0 if none did */
    bool stdout_to_stderr; /* in: keep standard output free for the caller */
};

/** Run `path` with `argv` and wait for its end.
 *
 * It stays in this process group, so that the terminal's signals reach it by themselves; those sent to this
 * process alone are passed on, and when the program is stopped this process stops too, so that a shell sees
 * one job. Returns 0 with *child filled in, or 125, 126 or 127 after an error line if it could not be run. */
int ms_child_run(const char *path, char **argv, struct ms_child *child);

#endif
