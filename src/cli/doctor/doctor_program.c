/* doctor_program.c - a program's file and what it is loaded with, without running it; see doctor.h.
 *
 * Floor 5. What is said here about what is seen follows from how the hooks work: exported names, dlsym,
 * cuGetProcAddress. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/files.h"
#include "cli/run/child.h"
#include "cli/cli.h"
#include "cli/doctor/closure.h"
#include "cli/doctor/doctor.h"

#define SCRIPTS_MAX 4 /* a script's interpreter may be a script */

static MS_PRINTF(2, 3) void add_line(json_t *array, const char *format, ...)
{
    char *line;
    va_list args;

    va_start(args, format);
    if (vasprintf(&line, format, args) >= 0) {
        json_array_append_new(array, json_string(line));
        free(line);
    }
    va_end(args);
}

/* The loader ignores LD_PRELOAD where the new process has more rights than its user. */
static void check_rights(const char *path, json_t *obstacles)
{
    char capabilities[64];
    struct stat st;

    if (stat(path, &st) < 0)
        return;
    if ((st.st_mode & S_ISUID) && st.st_uid != getuid())
        add_line(obstacles,
                 "%s is set-user-ID: the loader ignores LD_PRELOAD and the MEMSHIM_* variables are not read",
                 path);
    else if ((st.st_mode & S_ISGID) && st.st_gid != getgid())
        add_line(obstacles,
                 "%s is set-group-ID: the loader ignores LD_PRELOAD and the MEMSHIM_* variables are not read",
                 path);
    if (getuid() != 0 && getxattr(path, "security.capability", capabilities, sizeof(capabilities)) > 0)
        add_line(obstacles, "%s has file capabilities: the loader ignores LD_PRELOAD", path);
}

/* The loader itself, named as a program: it loads what is preloaded into the program that is its argument. */
static bool is_loader(const struct ms_elf_program *elf)
{
    return elf->soname && (!strncmp(elf->soname, "ld-linux", 8) || !strncmp(elf->soname, "ld64", 4));
}

/* `program` says "unreachable" where the library must not be preloaded: musl's loader ends a program for it,
 * and one without a loader never hears of it. */
static void check_loader(const struct ms_elf_program *elf, json_t *program, json_t *obstacles)
{
    if (elf->kind != MS_ELF_FILE)
        return;
    if (elf->machine != ms_elf_own_machine() || !elf->is_64)
        add_line(obstacles, "%s is for %s: a library for %s cannot be loaded into it", elf->path,
                 ms_elf_machine_name(elf->machine), ms_elf_machine_name(ms_elf_own_machine()));
    else if (!elf->interpreter && !is_loader(elf)) {
        add_line(obstacles, "%s is statically linked: no loader runs that could preload anything", elf->path);
        json_object_set_new(program, "unreachable", json_true());
    } else if (elf->interpreter && strstr(elf->interpreter, "ld-musl")) {
        add_line(obstacles, "%s is loaded by musl's %s, and libmemshim.so needs the GNU C library", elf->path,
                 elf->interpreter);
        json_object_set_new(program, "unreachable", json_true());
    }
}

/* How one object reaches a GPU; NULL if it does not by itself. *seen_p says under which names. */
static const char *role_of(const struct ms_elf_program *elf, const char *name, const char **seen_p)
{
    static const char by_exports[] =
        "seen: its functions are replaced by their exported names, under the name that the program calls";
    static const char by_lookup[] =
        "seen: the lookup of its functions is answered with memshim's, under the driver's names";

    *seen_p = by_lookup;
    if (!strncmp(name, "libcudart.so.", 13)) {
        *seen_p = by_exports;
        return "the CUDA runtime, shared";
    }
    if (!strncmp(name, "libcuda.so.", 11)) {
        *seen_p = by_exports;
        return "the CUDA driver";
    }
    if (!strncmp(name, "libamdhip64.so", 14) || !strncmp(name, "libascendcl.so", 14)) {
        *seen_p = by_exports;
        return !strncmp(name, "libamd", 6) ? "the HIP runtime" : "the Ascend runtime";
    }
    if (elf->holds_runtime)
        return !strncmp(name, "libnccl.so", 10) ? "NCCL, with a copy of the CUDA runtime inside"
                                                : "a copy of the CUDA runtime inside";
    if (!strncmp(name, "libnccl.so", 10))
        return "NCCL";
    if (elf->names_driver)
        return "opens the CUDA driver at run time";
    *seen_p = by_exports;
    if (elf->runtime_calls || elf->driver_calls)
        return elf->runtime_calls ? "calls the CUDA runtime" : "calls the CUDA driver";
    return NULL;
}

static json_t *object_json(const struct ms_loaded *row, const char *user)
{
    const char *seen,
        *role = role_of(&row->elf, ms_file_name(row->elf.soname ? row->elf.soname : row->name), &seen);
    json_t *object;

    if (row->found && !role)
        return NULL;
    object = json_pack("{s:s, s:o}", "name", row->name, "path",
                       row->found ? json_string(row->elf.path) : json_null());
    if (user)
        json_object_set_new(object, "needed_by", json_string(user));
    json_object_set_new(object, "role",
                        json_string(row->found ? role : "not found: the program will not start without it"));
    if (row->found)
        json_object_set_new(object, "seen", json_string(seen));
    return object;
}

static void check_simulated(const struct ms_elf_program *elf, json_t *obstacles)
{
    if (elf->holds_runtime && !elf->is_simulated && strncmp(ms_file_name(elf->path), "libcudart.so.", 13))
        add_line(
            obstacles,
            "%s holds a copy of the vendor's CUDA runtime, which needs private tables of the real driver: "
            "it cannot run on the simulated one; link with the simulated libcudart_static.a, or with "
            "-cudart shared",
            elf->path);
}

static void read_objects(const char *path, bool sim, json_t *program)
{
    json_t *objects = json_array();
    struct ms_closure closure;
    bool opens = false;
    size_t i;

    ms_closure_read(path, &closure);
    for (i = 0; i < closure.count; i++) {
        const struct ms_loaded *row = &closure.rows[i];
        json_t *object = object_json(row, i ? ms_file_name(closure.rows[row->parent].name) : NULL);

        if (object)
            json_array_append_new(objects, object);
        opens = opens || row->elf.opens;
        if (sim && row->found)
            check_simulated(&row->elf, json_object_get(program, "obstacles"));
    }
    json_object_set_new(program, "objects", objects);
    json_object_set_new(program, "opens_more", json_boolean(opens));
    ms_closure_free(&closure);
}

/* The program that a script is run by; `#!/usr/bin/env NAME` is looked through. NULL if it cannot be
 * found. */
static char *script_program(const struct ms_elf_program *script)
{
    char *found = NULL;

    if (script->argument && !strcmp(ms_file_name(script->interpreter), "env")) {
        const char *name = script->argument + (!strncmp(script->argument, "-S ", 3) ? 3 : 0);
        char *word = strndup(name, strcspn(name, " \t"));

        if (!word || ms_child_find(word, &found) != 0)
            found = NULL;
        free(word);
        return found;
    }
    return access(script->interpreter, X_OK) == 0 ? strdup(script->interpreter) : NULL;
}

json_t *ms_doctor_program(const char *path, bool sim, bool deep)
{
    json_t *program = json_object(), *obstacles = json_array(), *through = json_array();
    char *current = strdup(path);
    struct ms_elf_program elf;
    int scripts;

    json_object_set_new(program, "path", json_string(path));
    json_object_set_new(program, "obstacles", obstacles);
    json_object_set_new(program, "scripts", through);
    for (scripts = 0; current; scripts++) {
        char *next = NULL;

        ms_elf_read(current, &elf);
        check_rights(current, obstacles);
        check_loader(&elf, program, obstacles);
        if (elf.kind == MS_ELF_SCRIPT && scripts < SCRIPTS_MAX) {
            json_array_append_new(through, json_string(current));
            next = script_program(&elf);
            if (!next)
                add_line(obstacles, "%s names an interpreter that is not there: %s", current,
                         elf.interpreter);
        } else if (elf.kind != MS_ELF_FILE) {
            add_line(obstacles, "%s is neither a program nor a script", current);
        } else {
            json_object_set_new(program, "file", json_string(current));
            json_object_set_new(program, "machine", json_string(ms_elf_machine_name(elf.machine)));
            json_object_set_new(program, "python",
                                json_boolean(!strncmp(ms_file_name(current), "python", 6)));
            if (deep)
                read_objects(current, sim, program);
            else if (sim)
                check_simulated(&elf, obstacles);
        }
        ms_elf_free(&elf);
        free(current);
        current = next;
    }
    return program;
}
