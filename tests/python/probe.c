/* probe.c - a library for Python programs: takes their Python stack as memshim does, and tells what it
 * says. */
#include "config.h"

#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

#include "base/at_fork.h"
#include "base/arena.h"
#include "base/compiler.h"
#include "base/thread/guard.h"
#include "base/log.h"
#include "base/objects/objects.h"
#include "base/thread/thread_own.h"
#include "base/thread/aux_stack.h"
#include "base/store/store.h"
#include "unwind/frame.h"
#include "unwind/python/merge.h"
#include "unwind/python/pair.h"
#include "unwind/python/python.h"
#include "unwind/python/python_life.h"
#include "unwind/native/unwind.h"

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

/** What lies between two Python frames in the merged stack. */
enum { GAP_NATIVE = 1, GAP_LIBC = 2, GAP_FFI = 4 };

/** The merged stack, as the program compares it. */
struct probe_merged {
    int32_t pythons;                   /* Python frames in it; 0: kept apart; -1: others than were read */
    int32_t natives;                   /* native ones */
    int32_t recorded;                  /* 1: the tree has the same; 0: another; -1: there was no room */
    uint8_t gaps[MS_PYTHON_DEPTH_MAX]; /* before each Python frame: bits of the native ones there */
};

MS_EXPORT void probe_start(int on);
MS_EXPORT uint32_t probe_take(int *state, struct probe_frame *frames, unsigned max, unsigned *count,
                              struct probe_merged *merged);
MS_EXPORT int probe_code(uint32_t row, struct probe_code *code);
MS_EXPORT uint32_t probe_version(void);
MS_EXPORT uint32_t probe_codes(void);
MS_EXPORT int probe_looks(void);
MS_EXPORT unsigned long long probe_life(void);
MS_EXPORT int probe_interrupt(unsigned microseconds);
MS_EXPORT unsigned probe_interrupts(void);
MS_EXPORT double probe_time(int way, unsigned times);

/* What memshim does in a child, where locks are held by threads that are not there. */
static void after_fork(void)
{
    ms_objects_after_fork_child();
    ms_store_reset();
    ms_log_reset();
    ms_arena_reset();
    ms_aux_stacks_reset();
    ms_objects_reset();
    ms_stack_reset();
    ms_at_fork_run(MS_FORK_STACK);
    ms_thread = (struct ms_thread){.own = &ms_own_none};
}

/* Code of the C library, of what answers for it under AddressSanitizer (qsort), and of the library by which
 * ctypes calls. */
static struct code {
    const char *name;
    uint8_t bit;
    uintptr_t begin, end;
} libraries[] = {
    {"/libc.so.6", GAP_LIBC, 0, 0}, {"/libasan.so", GAP_LIBC, 0, 0}, {"/libffi.so", GAP_FFI, 0, 0}};

static int note_library(struct dl_phdr_info *info, size_t bytes, void *arg)
{
    (void)bytes;
    (void)arg;
    for (unsigned i = 0; i < MS_ARRAY_LEN(libraries); i++) {
        struct code *code = &libraries[i];
        for (unsigned n = 0; strstr(info->dlpi_name, code->name) && n < info->dlpi_phnum; n++) {
            if (info->dlpi_phdr[n].p_type != PT_LOAD || !(info->dlpi_phdr[n].p_flags & PF_X))
                continue;
            code->begin = info->dlpi_addr + info->dlpi_phdr[n].p_vaddr;
            code->end = code->begin + info->dlpi_phdr[n].p_memsz;
        }
    }
    return 0;
}

static uint8_t bits_of(uintptr_t frame)
{
    uint8_t bits = GAP_NATIVE;
    for (unsigned i = 0; i < MS_ARRAY_LEN(libraries); i++) {
        if (frame > libraries[i].begin && frame <= libraries[i].end)
            bits |= libraries[i].bit;
    }
    return bits;
}

static void look_over(struct probe_merged *merged, const uintptr_t *frames, unsigned count)
{
    unsigned told;
    const struct ms_python_frame *python = ms_python_frames(&told);
    uint8_t gap = 0;
    merged->pythons = merged->natives = 0;
    for (unsigned i = 0; i < count; i++) {
        if (ms_frame_kind(frames[i]) != MS_FRAME_PYTHON) {
            merged->natives++;
            gap |= bits_of(frames[i]);
            continue;
        }
        unsigned n = (unsigned)merged->pythons;
        if (n >= told || ms_frame_code(frames[i]) != python[n].code ||
            ms_frame_offset(frames[i]) != python[n].offset) {
            merged->pythons = -1;
            return;
        }
        merged->gaps[merged->pythons++] = gap;
        gap = 0;
    }
    if (count && (unsigned)merged->pythons != told)
        merged->pythons = -1;
}

/* Whether the stack of this id is of these frames; where none are given, of both kinds apart. */
static int is_recorded(ms_stack_id id, const uintptr_t *frames, unsigned count)
{
    unsigned i = 0;
    bool is_apart = false;
    if (ms_stack_dropped())
        return -1;
    for (uintptr_t frame; id; i++) {
        uint32_t generation;
        if (ms_stack_node(id, &id, &frame, &generation) != 0 || (count && (i == count || frame != frames[i])))
            return 0;
        is_apart |= frame == ms_frame_pseudo(MS_PSEUDO_APART, 0);
    }
    return count ? i == count : is_apart;
}

void probe_start(int on)
{
    dl_iterate_phdr(note_library, NULL);
    ms_stack_configure(MS_WALK_UNWIND, MS_STACK_DEPTH_MAX);
    pthread_atfork(ms_objects_before_fork, ms_objects_after_fork_parent, after_fork);
    ms_python_configure(on != 0);
}

/* The Python frames, innermost first, and what becomes of them if `merged` is not NULL; the stack's id. */
uint32_t probe_take(int *state, struct probe_frame *frames, unsigned max, unsigned *count,
                    struct probe_merged *merged)
{
    static MS_TLS uintptr_t placed[MS_PAIRED_MAX];
    const struct ms_merge_call call = {MS_WALK_UNWIND, MS_STACK_DEPTH_MAX, __builtin_frame_address(0),
                                       ms_strip((uintptr_t)__builtin_return_address(0))};
    enum ms_python found;
    ms_guard_enter();
    ms_stack_id stack = merged ? ms_stack_capture(call.frame, (void *)call.caller) : 0;
    uint32_t id = ms_python_capture(&found);
    unsigned told;
    const struct ms_python_frame *frame = ms_python_frames(&told);
    *state = (int)found;
    *count = told;
    for (unsigned i = 0; i < told && i < max; i++)
        frames[i] = (struct probe_frame){frame[i].code, frame[i].offset, frame[i].entry};
    if (merged && found == MS_PYTHON_READ) {
        unsigned merges = ms_merge_frames(&call, placed);
        look_over(merged, placed, merges);
        merged->recorded = is_recorded(stack, placed, merges);
    }
    ms_guard_leave();
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
    return atomic_load(&ms_python_seen);
}

uint32_t probe_codes(void)
{
    return (uint32_t)ms_table_rows(MS_TABLE_CODES);
}

/* Whether the next stack looks for an interpreter, or reads the frames of one. */
int probe_looks(void)
{
    return atomic_load(&ms_python_is_here);
}

/* The interpreter's life, by which numbers of code objects count; 0: it is not known. */
unsigned long long probe_life(void)
{
    return atomic_load(&ms_python_life);
}

/* What is timed: all that a hook pays for a stack, the Python part of it, or what it pays where no
 * interpreter is. */
enum { WHOLE, PYTHON, NATIVE };

/* Frames of a stack by default (options.def). */
enum { DEPTH = 64 };

/* Nanoseconds of one capture of the same stack. */
double probe_time(int way, unsigned times)
{
    struct timespec begun, ended;
    enum ms_python state;
    bool is_here = atomic_load(&ms_python_is_here);
    ms_stack_configure(MS_WALK_UNWIND, DEPTH);
    if (way == NATIVE)
        atomic_store(&ms_python_is_here, false);
    clock_gettime(CLOCK_MONOTONIC, &begun);
    for (unsigned i = 0; i < times; i++) {
        if (way == PYTHON)
            ms_python_capture(&state);
        else
            ms_stack_capture(__builtin_frame_address(0), __builtin_return_address(0));
    }
    clock_gettime(CLOCK_MONOTONIC, &ended);
    if (way == NATIVE)
        atomic_store(&ms_python_is_here, is_here);
    return ((double)(ended.tv_sec - begun.tv_sec) * 1e9 + (double)(ended.tv_nsec - begun.tv_nsec)) / times;
}

static _Atomic unsigned interrupts;

/* Wherever the program is, but in memshim itself: a hook that is called there asks the vendor and no more. */
static void interrupt(int signal)
{
    (void)signal;
    if (ms_guard_enter() == 0)
        ms_stack_capture(__builtin_frame_address(0), __builtin_return_address(0));
    ms_guard_leave();
    atomic_fetch_add_explicit(&interrupts, 1, memory_order_relaxed);
}

/* From now on a timer's handler takes stacks, without the interpreter's knowledge; 0 ends it. */
int probe_interrupt(unsigned microseconds)
{
    struct sigaction action = {.sa_handler = interrupt, .sa_flags = SA_RESTART};
    struct itimerval timer = {{0, microseconds}, {0, microseconds}};
    return sigaction(SIGALRM, &action, NULL) || setitimer(ITIMER_REAL, &timer, NULL);
}

unsigned probe_interrupts(void)
{
    return atomic_load_explicit(&interrupts, memory_order_relaxed);
}
