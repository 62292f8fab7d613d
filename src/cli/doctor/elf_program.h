/* elf_program.h - what a file says about how it will be run and how it reaches a GPU.
 *
 * Floor 5. Reads files, runs nothing. */
#ifndef MS_CLI_DOCTOR_ELF_PROGRAM_H
#define MS_CLI_DOCTOR_ELF_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>

enum ms_elf_kind {
    MS_ELF_UNREADABLE,
    MS_ELF_OTHER,  /* neither ELF nor a script */
    MS_ELF_SCRIPT, /* begins with #! */
    MS_ELF_FILE
};

/** One file. All strings are owned by it; NULL where it has none. */
struct ms_elf_program {
    enum ms_elf_kind kind;
    char *path;
    char *interpreter; /* the program loader, or the program that a script names */
    char *argument;    /* of a script's first line */
    int machine;       /* EM_* */
    bool is_64;
    bool is_executable; /* ET_EXEC, or ET_DYN with a loader: a program, not a library */
    bool is_dynamic;    /* has a dynamic section */
    char *soname, *rpath, *runpath;
    char **needed;
    size_t needed_count;
    bool opens;         /* imports dlopen or dlmopen */
    bool names_driver;  /* holds the text "libcuda.so" without needing it: opens it at run time */
    bool holds_runtime; /* holds a copy of the CUDA runtime */
    /* holds something of the simulated GPU's, as a program with its static runtime does */
    bool is_simulated;
    size_t driver_calls;  /* imported cu* */
    size_t runtime_calls; /* imported cuda* */
};

/** Look at a file; never fails: what cannot be told is left out. */
void ms_elf_read(const char *path, struct ms_elf_program *elf_p);
void ms_elf_free(struct ms_elf_program *elf);

/** The machine that this command runs on, as the files above say it. */
int ms_elf_own_machine(void);
/** "x86-64", "aarch64", or a number. */
const char *ms_elf_machine_name(int machine);

#endif
