/* probe.c - a library for Python programs: takes their Python stack as memshim does, and tells what it says.
 */
#include "config.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

#include "base/arena.h"
#include "base/compiler.h"
#include "base/guard.h"
#include "base/log.h"
#include "base/objects.h"
#include "base/spare.h"
#include "base/store.h"
#include "stack/python.h"

/** One frame, as the program compares it. */
struct probe_frame {
    uint32_t code, offset;
    uint64_t entry;
};

struct probe_code {
    const char *file, *name;
    const unsigned char *lines;
    uint32_t lines_bytes, first_line;
};

MS_EXPORT void probe_start(int on);
MS_EXPORT uint32_t probe_take(int *state, struct probe_frame *frames, unsigned max, unsigned *count);
MS_EXPORT int probe_code(uint32_t row, struct probe_code *code);
MS_EXPORT uint32_t probe_version(void);
MS_EXPORT uint32_t probe_codes(void);
MS_EXPORT double probe_time(int way, unsigned times);

/* What memshim does in a child, where locks are held by threads that are not there. */
static void after_fork(void)
{
    ms_objects_after_fork_child();
    ms_store_reset();
    ms_log_reset();
    ms_arena_reset();
    ms_spares_reset();
    ms_objects_reset();
    ms_stack_reset();
    ms_python_reset();
    ms_thread = (struct ms_thread){0};
}

void probe_start(int on)
{
    pthread_atfork(ms_objects_before_fork, ms_objects_after_fork_parent, after_fork);
    ms_python_configure(on != 0);
}

/* The frames, innermost first; the stack's id. */
uint32_t probe_take(int *state, struct probe_frame *frames, unsigned max, unsigned *count)
{
    enum ms_python found;
    uint32_t id = ms_python_capture(&found);
    unsigned told;
    const struct ms_python_frame *frame = ms_python_frames(&told);
    *state = (int)found;
    *count = told;
    for (unsigned i = 0; i < told && i < max; i++)
        frames[i] = (struct probe_frame){frame[i].code, frame[i].offset, frame[i].entry};
    return id;
}

int probe_code(uint32_t row, struct probe_code *code)
{
    const struct ms_code *known = ms_code_at(row);
    if (!known)
        return -1;
    *code = (struct probe_code){ms_code_text(known->file), ms_code_text(known->name), ms_code_lines(known),
                                known->lines_bytes, known->first_line};
    return 0;
}

uint32_t probe_version(void)
{
    return ms_python_version();
}

uint32_t probe_codes(void)
{
    return (uint32_t)ms_table_rows(MS_TABLE_CODES);
}

/* What is timed: all that a hook pays for a stack, the Python part of it, or what it pays where no interpreter
 * is. */
enum { WHOLE, PYTHON, NATIVE };

/* Nanoseconds of one capture of the same stack. */
double probe_time(int way, unsigned times)
{
    struct timespec begun, ended;
    enum ms_python state;
    bool is_here = atomic_exchange(&ms_python_is_here, way != NATIVE);
    clock_gettime(CLOCK_MONOTONIC, &begun);
    for (unsigned i = 0; i < times; i++) {
        if (way == PYTHON)
            ms_python_capture(&state);
        else
            ms_stack_capture(__builtin_frame_address(0), __builtin_return_address(0));
    }
    clock_gettime(CLOCK_MONOTONIC, &ended);
    atomic_store(&ms_python_is_here, is_here);
    return ((double)(ended.tv_sec - begun.tv_sec) * 1e9 + (double)(ended.tv_nsec - begun.tv_nsec)) / times;
}
