/* preload.h - the environment under which a program is followed.
 *
 * Floor 5. The library and the simulator are found from where this command lies, never from a variable: what
 * runs inside the program is what was installed or built together with the command. */
#ifndef MS_CLI_RUN_PRELOAD_H
#define MS_CLI_RUN_PRELOAD_H

#include <stdbool.h>
#include <stddef.h>

/** The path of libmemshim.so, or NULL. Looked for in ../lib beside the command's directory, in that directory
 * (a build tree), then in the configured library directory. */
const char *ms_preload_library(void);
/** The directory of the simulated libraries, or NULL; the same search, with memshim/sim behind lib. */
const char *ms_preload_sim_dir(void);

/** Check every MEMSHIM_* variable and the file they name; one error line for each that is wrong. Returns how
 * many. */
int ms_preload_check_options(void);

/** Set LD_PRELOAD (and with `sim` LD_LIBRARY_PATH) in this process's environment, for the program at `path`,
 * which is about to be run.
 *
 * Our library goes before what is preloaded already, but behind a sanitizer's runtime, which insists on being
 * first: one that the program is linked with and nobody preloads is preloaded too. With `sim` the simulated
 * libraries are preloaded by path as well: a program's DT_RPATH beats a search path, not what is loaded
 * already. Of the HIP runtimes, whose versions define the same symbols, those alone are that the program
 * names. What is opened by a path, or under a name of a wheel's own, what is preloaded last displaces. Other
 * copies of memshim's library are left out, of which a line says so unless `quiet`. Returns 0, or -1 after an
 * error line. */
int ms_preload_set(bool sim, const char *path, bool quiet);

/** Have NVTX call memshim (NVTX_INJECTION64_PATH), unless the variable is set: then one line says so. Returns
 * 0, or -1 after an error line. */
int ms_preload_set_nvtx(bool quiet);

/** Have Python read the start-up hook (python/startup), by PYTHONPATH; where it is not installed nothing is
 * set. Returns 0, or -1 after an error line. */
int ms_preload_set_python(void);

#endif
