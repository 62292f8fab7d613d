/* doctor.h - what the doctor finds out, as JSON: the verb prints it as it is, or as text.
 *
 * Floor 5. Every function returns a new value that the caller owns. */
#ifndef MS_CLI_DOCTOR_DOCTOR_H
#define MS_CLI_DOCTOR_DOCTOR_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/** This machine and this installation: library, simulator, entry points, driver, other preloads. */
json_t *ms_doctor_machine(void);

/** NVIDIA's devices, as the management library tells them: index, name, total_bytes, free_bytes,
 * reserved_bytes, processes[]{pid, state running|zombie|gone, user, own, used_bytes}, unaccounted_bytes: in
 * use and no process's. Without the library, or of a driver before 510, there are none. */
json_t *ms_doctor_devices(void);

/** The program's file and what it is loaded with, without running it: kind, objects that reach a GPU,
 * obstacles[]: why memshim could not get into the process, one line each. `deep`: look at the libraries too,
 * not at the program alone. */
json_t *ms_doctor_program(const char *path, bool sim, bool deep);

/** Run the program under memshim and say what the reports say: status, reports, routes, blind spots. NULL
 * after an error line. */
json_t *ms_doctor_run(const char *path, char **argv, bool sim);

/** All of it as text. */
void ms_doctor_print(FILE *out, const json_t *findings);

#endif
