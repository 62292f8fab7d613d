/* doctor_machine.c - this machine and this installation; see doctor.h.
 *
 * Floor 5. */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/closure.h"
#include "cli/doctor.h"
#include "cli/preload.h"

static json_t *path_or_null(const char *path)
{
    return path ? json_string(path) : json_null();
}

/* What other libraries are put into every process, by the environment and by the system's file. */
static json_t *other_preloads(void)
{
    json_t *array = json_array();
    const char *inherited = getenv("LD_PRELOAD");
    char line[4096], *word, *rest;
    FILE *file = fopen("/etc/ld.so.preload", "re");

    if (inherited && *inherited)
        json_array_append_new(array, json_string(inherited));
    while (file && fgets(line, sizeof(line), file)) {
        line[strcspn(line, "#\n")] = '\0';
        for (rest = line; (word = strsep(&rest, " \t:"));)
            if (*word)
                json_array_append_new(array, json_string(word));
    }
    if (file)
        fclose(file);
    return array;
}

json_t *ms_doctor_machine(void)
{
    char *driver = ms_closure_find("libcuda.so.1");
    json_t *machine = json_object();

    json_object_set_new(machine, "machine", json_string(ms_elf_machine_name(ms_elf_own_machine())));
#ifdef MS_HAVE_ENTRY
    json_object_set_new(machine, "lookup_hooks", json_true());
#else
    json_object_set_new(machine, "lookup_hooks", json_false());
#endif
    json_object_set_new(machine, "library", path_or_null(ms_preload_library()));
    json_object_set_new(machine, "simulator", path_or_null(ms_preload_sim_dir()));
    json_object_set_new(machine, "driver", path_or_null(driver));
    json_object_set_new(machine, "device_files", json_boolean(access("/dev/nvidiactl", F_OK) == 0));
    json_object_set_new(machine, "secure", json_boolean(getauxval(AT_SECURE) != 0));
    json_object_set_new(machine, "ledger", json_string("anonymous memory of each process"));
    json_object_set_new(machine, "other_preloads", other_preloads());
    free(driver);
    return machine;
}
