/*
 * The log of what is not simulated (MEMSIM_LOG): one way for all simulated libraries, each of which has its
 * own copy of log.c.
 */
#ifndef SIM_LOG_H
#define SIM_LOG_H

/** One line in the file `path`, "process unsupported name nth"; nothing if it is NULL or empty. Keeps errno;
 * any thread may. */
void sim_log_line(const char *path, const char *name, unsigned long long nth);
/** Counts a call, one more in *calls, and writes its line to the file that MEMSIM_LOG names. */
void sim_log_call(const char *name, unsigned long long *calls);

#endif
