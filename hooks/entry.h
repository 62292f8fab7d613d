/* entry.h - what the entry points in entry_*.S call.
 *
 * An entry point saves the argument registers, calls one of these, and then either returns the answer or restores the
 * registers and jumps to the C library's function: that one must see the true caller's return address, by which it tells whose
 * RTLD_NEXT, RTLD_DEFAULT, run path and namespace are meant. */
#ifndef MS_HOOKS_ENTRY_H
#define MS_HOOKS_ENTRY_H

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

#endif
