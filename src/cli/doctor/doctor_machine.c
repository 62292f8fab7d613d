/* doctor_machine.c - this machine and this installation; see doctor.h.
 *
 * Floor 5. */
#include "config.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/options/options.h"
#include "cli/cli.h"
#include "cli/doctor/closure.h"
#include "cli/doctor/doctor.h"
#include "cli/run/preload.h"
#include "cli/live/stale_text.h"
#include "record/file/journal.h"

static json_t *path_or_null(const char *path)
{
    return path ? json_string(path) : json_null();
}

/* The other libraries that are put into every process, by the environment and by the system's file. */
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

static bool takes_ledger(const char *directory)
{
    struct statfs system;

    return directory && *directory && access(directory, W_OK | X_OK) == 0 &&
           statfs(directory, &system) == 0 && !ms_journal_network_name((unsigned long)system.f_type);
}

/* The directory where the library would put a ledger, in its order; NULL if it would keep it in memory
 * alone. */
static const char *ledger_directory(void)
{
    const char *chosen, *runtime = getenv("XDG_RUNTIME_DIR");

    ms_options_load(environ, NULL, NULL); /* what is wrong with them is said before the run */
    chosen = ms_option_text(MS_OPT_DIR);
    if (*chosen)
        return takes_ledger(chosen) ? chosen : NULL;
    if (takes_ledger("/dev/shm"))
        return "/dev/shm";
    if (runtime && *runtime == '/' && takes_ledger(runtime))
        return runtime;
    return takes_ledger("/tmp") ? "/tmp" : NULL;
}

/* The other vendors' libraries, as far as they are here, and what they need to find a device. */
static json_t *other_libraries(void)
{
    static const struct {
        const char *name, *api, *device;
    } known[] = {{"libnccl.so.2", "nccl", NULL},
                 {"libamdhip64.so.5", "hip", "/dev/kfd"},
                 {"libamdhip64.so.6", "hip", "/dev/kfd"},
                 {"libamdhip64.so.7", "hip", "/dev/kfd"},
                 {"libascendcl.so", "acl", "/dev/davinci_manager"}};
    json_t *array = json_array();

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        char *path = ms_closure_find(known[i].name);
        if (!path)
            continue;
        json_t *library =
            json_pack("{s:s, s:s, s:s}", "name", known[i].name, "api", known[i].api, "path", path);
        if (known[i].device) {
            json_object_set_new(library, "device_file", json_string(known[i].device));
            json_object_set_new(library, "device_files", json_boolean(access(known[i].device, F_OK) == 0));
        }
        json_array_append_new(array, library);
        free(path);
    }
    return array;
}

static void count_stale(void *arg, const struct ms_stale *stale)
{
    ms_stale_add(arg, stale);
}

static void look_for_stale(void *arg, const char *directory)
{
    struct ms_stale_sum sum = {0, 0};
    int fd = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return;
    ms_stale_clean(fd, true, count_stale, &sum);
    close(fd);
    if (sum.count)
        json_array_append_new(arg, json_pack("{s:s, s:I, s:I}", "directory", directory, "count",
                                             (json_int_t)sum.count, "bytes", (json_int_t)sum.bytes));
}

static json_t *stale_ledgers(void)
{
    json_t *array = json_array();

    ms_stale_places(look_for_stale, array);
    return array;
}

json_t *ms_doctor_machine(void)
{
    const char *ledger = ledger_directory();
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
    json_object_set_new(machine, "devices", ms_doctor_devices());
    json_object_set_new(machine, "libraries", other_libraries());
    json_object_set_new(machine, "secure", json_boolean(getauxval(AT_SECURE) != 0));
    json_object_set_new(
        machine, "ledger",
        json_string(ledger ? ledger : "memory of each process alone: what is killed leaves no record"));
    json_object_set_new(machine, "stale_ledgers", stale_ledgers());
    json_object_set_new(machine, "other_preloads", other_preloads());
    free(driver);
    return machine;
}
