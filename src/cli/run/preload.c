/* preload.c - the environment under which a program is followed; see preload.h.
 *
 * Floor 5. */
#include "cli/run/preload.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/options/options.h"
#include "cli/cli.h"
#include "cli/doctor/closure.h"

extern char **environ;

/* In the order in which they depend on each other; those that this build has are preloaded. The last one has
 * what is opened by a path, or under a name of a wheel's own, become one of the others (sim/displace).
 * */
static const char *const sim_libraries[] = {
    "libcuda.so.1",     "libcudart.so.12",   "libcudart.so.13",      "libnccl.so.2",     "libcublasLt.so.12",
    "libcublas.so.12",  "libcublasLt.so.13", "libcublas.so.13",      "libamdhip64.so.5", "libamdhip64.so.6",
    "libamdhip64.so.7", "libascendcl.so",    "libmemsim-displace.so"};

/* The directory of this command's own file, without the slash; "" if it cannot be told. */
static const char *own_directory(void)
{
    static char directory[PATH_MAX];
    char path[PATH_MAX], *slash;

    if (*directory)
        return directory;
    ms_file_executable(path, sizeof path);
    if (!realpath(path, directory))
        strcpy(directory, path);
    slash = strrchr(directory, '/');
    if (slash)
        *slash = '\0';
    return directory;
}

/* Tries the three places; `installed` is relative to a library directory, `name` to a build tree. Keeps the
 * real path. */
static const char *preload_find(const char *installed, const char *name, char *found)
{
    char candidate[2 * PATH_MAX];

    snprintf(candidate, sizeof(candidate), "%s/../lib/%s", own_directory(), installed);
    if (realpath(candidate, found) && access(found, R_OK) == 0)
        return found;
    snprintf(candidate, sizeof(candidate), "%s/%s", own_directory(), name);
    if (realpath(candidate, found) && access(found, R_OK) == 0)
        return found;
    snprintf(candidate, sizeof(candidate), "%s/%s", MS_LIBDIR, installed);
    if (realpath(candidate, found) && access(found, R_OK) == 0)
        return found;
    return NULL;
}

const char *ms_preload_library(void)
{
    static char path[PATH_MAX];

    return preload_find("libmemshim.so", "libmemshim.so", path);
}

/* The library that is preloaded besides if MEMSHIM_USES is on; NULL if it is off, or the library is not
 * here. */
static const char *uses_library(void)
{
    static char path[PATH_MAX];

    return ms_option_int(MS_OPT_USES) == MS_USES_ON
               ? preload_find("libmemshim-uses.so", "libmemshim-uses.so", path)
               : NULL;
}

const char *ms_preload_sim_dir(void)
{
    static char path[PATH_MAX];
    char *slash;

    if (!preload_find("memshim/sim/libcuda.so.1", "libcuda.so.1", path))
        return NULL;
    slash = strrchr(path, '/');
    if (slash)
        *slash = '\0';
    return path;
}

/* The library goes on with what it says it uses; here nothing is run. */
static void preload_complain(void *arg, const char *line)
{
    const char *uses = strstr(line, "; using ");

    (void)arg;
    ms_cli_error("%.*s%s", uses ? (int)(uses - line) : (int)strlen(line), line, "; nothing is run");
}

static void preload_note(void *arg, const char *line)
{
    (void)arg;
    ms_cli_note("%s", line);
}

int ms_preload_check_options(void)
{
    int complaints = ms_options_load(environ, preload_complain, NULL);

    if (!complaints)
        ms_options_check(preload_note, NULL);
    return complaints;
}

/* A growing list of paths, separated by colons. */
struct list {
    char *text;
    bool failed;
};

static void preload_append(struct list *list, const char *directory, const char *name)
{
    char *grown;

    if (asprintf(&grown, "%s%s%s%s%s", list->text ? list->text : "", list->text ? ":" : "", directory,
                 *directory ? "/" : "", name) < 0) {
        list->failed = true;
        return;
    }
    free(list->text);
    list->text = grown;
}

static bool is_sanitizer(const char *path)
{
    static const char *const starts[] = {"libasan.", "libtsan.",  "libhwasan.",
                                         "liblsan.", "libubsan.", "libclang_rt."};
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    size_t i;

    for (i = 0; i < MS_ARRAY_LEN(starts); i++)
        if (!strncmp(name, starts[i], strlen(starts[i])))
            return true;
    return false;
}

/* Another memshim's library, or this one's: one acts in a process, and that is to be the one of this command.
 */
static bool is_memshim(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

    return !strncmp(name, "libmemshim.so", strlen("libmemshim.so")) ||
           !strncmp(name, "libmemshim-uses.so", strlen("libmemshim-uses.so"));
}

static void say_left_out(const char *path)
{
    char real[PATH_MAX];

    if (!realpath(path, real) || strcmp(real, ms_preload_library()) != 0)
        ms_cli_note("LD_PRELOAD has %s, which is left out: %s is this command's", path, ms_preload_library());
}

/* Of what LD_PRELOAD held before, the sanitizers' runtimes or the others. */
static void append_inherited(struct list *list, bool sanitizers, bool quiet)
{
    const char *inherited = getenv("LD_PRELOAD");
    char *copy = inherited ? strdup(inherited) : NULL, *rest = copy, *word;

    while (copy && (word = strsep(&rest, ": ")))
        if (*word && is_memshim(word)) {
            if (!sanitizers && !quiet)
                say_left_out(word);
        } else if (*word && is_sanitizer(word) == sanitizers) {
            preload_append(list, "", word);
        }
    free(copy);
}

/* gcc's AddressSanitizer ends a program in which anything comes before its runtime: where the program needs
 * one that nobody preloads yet, that goes first. */
static void append_address_sanitizer(struct list *list, const char *program)
{
    struct ms_closure closure;
    size_t i;

    ms_closure_read(program, &closure);
    for (i = 1; i < closure.count; i++) {
        const struct ms_loaded *row = &closure.rows[i];

        if (row->found && (!strncmp(row->name, "libasan.", 8) || !strncmp(row->name, "libhwasan.", 10)) &&
            !(list->text && strstr(list->text, row->name)) && !strpbrk(row->elf.path, ": "))
            preload_append(list, "", row->elf.path);
    }
    ms_closure_free(&closure);
}

static bool preload_is_named(const struct ms_closure *closure, const char *library)
{
    size_t i;

    for (i = 1; i < closure->count; i++)
        if (!strcmp(closure->rows[i].name, library))
            return true;
    return false;
}

/* The versions of HIP's runtime have one set of symbols and nodes: a program would get the first that is
 * preloaded, whichever it was linked with. What opens one of them later finds it along the search path. */
static bool preload_fits(const struct ms_closure *closure, const char *library)
{
    return strncmp(library, "libamdhip64.", strlen("libamdhip64.")) != 0 ||
           preload_is_named(closure, library);
}

static void append_simulator(struct list *list, const char *directory, const char *program)
{
    struct ms_closure closure;
    char path[PATH_MAX + 32];
    size_t i;

    ms_closure_read(program, &closure);
    for (i = 0; i < MS_ARRAY_LEN(sim_libraries); i++) {
        snprintf(path, sizeof(path), "%s/%s", directory, sim_libraries[i]);
        if (access(path, R_OK) == 0 && preload_fits(&closure, sim_libraries[i]))
            preload_append(list, directory, sim_libraries[i]);
    }
    ms_closure_free(&closure);
}

static int set_library_path(const char *directory)
{
    const char *inherited = getenv("LD_LIBRARY_PATH");
    struct list list = {NULL, false};

    preload_append(&list, "", directory);
    if (inherited && *inherited)
        preload_append(&list, "", inherited);
    if (list.failed || setenv("LD_LIBRARY_PATH", list.text, 1) < 0)
        return -1;
    free(list.text);
    return 0;
}

int ms_preload_set_python(void)
{
    const char *inherited = getenv("PYTHONPATH");
    char path[PATH_MAX], *slash;
    struct list list = {NULL, false};

    if (!preload_find("../share/memshim/startup/sitecustomize.py", "startup/sitecustomize.py", path))
        return 0;
    slash = strrchr(path, '/');
    *slash = '\0';
    if (strchr(path, ':'))
        return 0;
    preload_append(&list, "", path);
    if (inherited && *inherited && strcmp(inherited, path) != 0)
        preload_append(&list, "", inherited);
    if (list.failed || setenv("PYTHONPATH", list.text, 1) < 0) {
        free(list.text);
        ms_cli_error("out of memory");
        return -1;
    }
    free(list.text);
    return 0;
}

int ms_preload_set_nvtx(bool quiet)
{
    const char *own = getenv("NVTX_INJECTION64_PATH"), *library = ms_preload_library();

    if (own && library && strcmp(own, library) != 0 && !quiet)
        ms_cli_note(
            "NVTX_INJECTION64_PATH=%.200s is yours and stays: NVTX's ranges are no phases in the report",
            own);
    if (own || !library || setenv("NVTX_INJECTION64_PATH", library, 0) == 0)
        return 0;
    ms_cli_error("out of memory");
    return -1;
}

int ms_preload_set(bool sim, const char *path, bool quiet)
{
    const char *library = ms_preload_library();
    const char *directory = sim ? ms_preload_sim_dir() : NULL;
    struct list list = {NULL, false};

    if (!library) {
        ms_cli_error("libmemshim.so is not in %s/../lib, %s or %s", own_directory(), own_directory(),
                     MS_LIBDIR);
        return -1;
    }
    if (sim && !directory) {
        ms_cli_error("the simulated libcuda.so.1 is not in %s/../lib/memshim/sim, %s or %s/memshim/sim",
                     own_directory(), own_directory(), MS_LIBDIR);
        return -1;
    }
    if (strpbrk(library, ": ") || (sim && strpbrk(directory, ": "))) {
        ms_cli_error("%s cannot be preloaded: its path has a space or a colon in it",
                     strpbrk(library, ": ") ? library : directory);
        return -1;
    }
    append_inherited(&list, true, quiet);
    append_address_sanitizer(&list, path);
    if (uses_library()) /* before the library that it jumps to */
        preload_append(&list, "", uses_library());
    preload_append(&list, "", library);
    append_inherited(&list, false, quiet); /* before the vendor's, whose functions it may be there for */
    if (sim)
        append_simulator(&list, directory, path);
    if (list.failed || setenv("LD_PRELOAD", list.text, 1) < 0 || (sim && set_library_path(directory) < 0)) {
        ms_cli_error("out of memory");
        return -1;
    }
    free(list.text);
    return 0;
}
