/* entry.h - what the entry points in entry_*.S call.
 *
 * An entry point saves the argument registers, calls one of these, and then either returns the answer or
 * restores the registers and jumps to the C library's function: that one must see the true caller's return
 * address, by which it tells whose RTLD_NEXT, RTLD_DEFAULT, run path and namespace are meant. */
#ifndef MS_HOOKS_LOOKUP_ENTRY_H
#define MS_HOOKS_LOOKUP_ENTRY_H

/** Returned in two registers. `answered` 0: jump to the real function. */
struct ms_verdict {
    long answered;
    void *answer;
};

/** dlsym (version is NULL) and dlvsym. No lock and no allocation when it leaves. */
struct ms_verdict ms_enter_dlsym(void *handle, const char *name, const char *version, const void *caller);

/** dlopen: the flags to go on with. Notes RTLD_DEEPBIND, and clears it where MEMSHIM_DEEPBIND says so. */
int ms_enter_dlopen(const char *file, int flags);

/** dlmopen: another namespace is a blind spot. */
void ms_enter_dlmopen(long space, const char *file);

void ms_enter_dlclose(void);

/* The C library's functions that end a process (ends.c), found with the loader's. */
#define MS_ENDS(X)                                                                                           \
    X(_exit) X(_Exit) X(quick_exit) X(abort) X(execve) X(execv) X(execvp) X(execvpe) X(fexecve) X(execveat)
enum {
#define MS_END(name) MS_REAL_##name,
    MS_ENDS(MS_END)
#undef MS_END
        MS_REAL_ENDS
};
extern void *ms_real_ends[MS_REAL_ENDS];

#endif
