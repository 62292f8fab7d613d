/*
 * facts_routes.c: question 1: the routes of runtime calls into the driver. tests/gpu/routes finds them, run
 * with a library that stands before the driver; here its lines become facts, and the static runtime's are
 * held against the shared one's.
 */
#include "facts.h"

#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OUTPUT_BYTES 65536

static const struct {
    const char *name;
    enum fact_id id;
} names[] = {
#define X(question, item, name, asked) {#name, FACT_##name},
#include "facts.def"
#undef X
};

/* Where the loader found a library that is loaded. */
static char *path_of(const char *library)
{
    struct link_map *map = NULL;
    void *handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);

    if (!handle || dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0)
        return NULL;
    return realpath(map->l_name, NULL);
}

/* The output of a program beside this one, run with the proxy first on the search path. NULL if it is not
 * there. */
static char *run(const char *folder, const char *program, int *status_p)
{
    char command[PATH_MAX], *output = calloc(1, OUTPUT_BYTES);

    snprintf(command, sizeof command, "%s/%s", folder, program);
    if (!output || access(command, X_OK) != 0) {
        free(output);
        return NULL;
    }
    FILE *pipe = popen(command, "r");
    if (!pipe) {
        free(output);
        return NULL;
    }
    size_t used = fread(output, 1, OUTPUT_BYTES - 1, pipe);
    output[used] = '\0';
    *status_p = pclose(pipe);
    return output;
}

static void set_environment(const char *folder, const char *driver)
{
    const char *before = getenv("LD_LIBRARY_PATH");
    char path[2 * PATH_MAX];

    snprintf(path, sizeof path, "%s/proxy%s%s", folder, before && before[0] ? ":" : "", before ? before : "");
    setenv("LD_LIBRARY_PATH", path, 1);
    setenv("ROUTES_DRIVER", driver, 1);
}

static void print(const char *output)
{
    char *copy = strdup(output), *rest = copy, *text;

    while ((text = strsep(&rest, "\n")) != NULL) {
        char *value = strchr(text, ' ');
        if (!value)
            continue;
        *value++ = '\0';
        for (size_t i = 0; i < KIT_COUNT(names); i++)
            if (strcmp(names[i].name, text) == 0)
                fact_say(names[i].id, "%s", value);
    }
    free(copy);
}

void facts_routes(int argc, char **argv)
{
    char self[PATH_MAX] = "";
    int status = 0;
    char *driver = path_of("libcuda.so.1");

    (void)argc;
    (void)argv;
    if (readlink("/proc/self/exe", self, sizeof self - 1) < 0 || !driver)
        kit_give_up("the driver's path is not known");
    const char *folder = dirname(self);
    set_environment(folder, driver);
    char *shared = run(folder, "routes", &status);
    if (!shared || status != 0)
        kit_give_up("routes: %s", shared ? shared : "it is not there");
    print(shared);
    char *linked = run(folder, "routes_static", &status);
    if (!linked)
        fact(static_runtime_same_routes,
             "- routes_static is not there: no static runtime where this was built");
    else if (status != 0)
        fact(static_runtime_same_routes, "- routes_static does not run here");
    else
        fact(static_runtime_same_routes, "%s", strcmp(shared, linked) == 0 ? "yes" : "no");
    char *compiled = run(folder, "launch", &status);
    if (compiled && status == 0)
        print(compiled);
    else
        fact(compiled_launch_reaches, "- %s",
             compiled ? "launch does not run here" : "there was no nvcc where this was built");
    free(compiled);
    free(shared);
    free(linked);
    free(driver);
}
