/*
 * kit.h: what the programs share that run on the simulator and on hardware alike: parts that run in processes
 * of their own, a device to begin with, kernels, and work that holds a stream until the host lets it go.
 *
 * They are linked against libcuda.so.1 and libcudart by name alone, so that a search path decides what they
 * run on. Nothing here is loaded into anybody's process; it may allocate, and takes no locks.
 */
#ifndef MS_TESTS_GPU_KIT_H
#define MS_TESTS_GPU_KIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "vendor/abi/cuda_driver.h"
#include "vendor/abi/cuda_driver_fn.h"
#include "vendor/abi/cuda_runtime.h"
#include "vendor/abi/cuda_runtime_fn.h"

#define KIT_KIB          (1UL << 10)
#define KIT_MIB          (1UL << 20)
#define KIT_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/** A part of a program. It runs in a process of its own, so that what it breaks is its own. */
struct kit_part {
    const char *name; /* beginning with a dot: only another part starts it, as its other process */
    void (*run)(int argc, char **argv);
};

/**
 * Runs the parts that the command line asks for (all without), each in a process of its own that is ended
 * when it takes too long. `ended` hears of each part, with the reason if it did not come to its end, else
 * NULL. Returns the exit status.
 */
int kit_main(int argc, char **argv, const struct kit_part *parts, void (*line)(const char *text),
             void (*ended)(const char *part, const char *reason));

/** Starts the part `role` (one with a dot) as another process with one argument; returns its exit status, or
 * -1. */
int kit_child(const char *role, const char *argument);

/** Starts it and does not wait. */
int kit_child_start(const char *role, const char *argument);
int kit_child_end(int pid);

/** Ends this part: what it asked for cannot be had at all. */
__attribute__((format(printf, 1, 2), noreturn)) void kit_give_up(const char *format, ...);

/** The call must succeed, or the part makes no sense. */
#define kit_must(call)                                                                                       \
    do {                                                                                                     \
        int must_status = (int)(call);                                                                       \
        if (must_status != 0)                                                                                \
            kit_give_up("%s:%d: %s answers %d", __FILE__, __LINE__, #call, must_status);                     \
    } while (0)

/** Device 0's primary context, current; through the driver, and the kernels loaded. */
CUcontext kit_begin(void);

/** Whether the driver has this function. */
bool kit_has(const char *name);
int kit_devices(void);
uint64_t kit_now_ns(void);
void kit_pause_ms(unsigned ms);

/** A kernel of kernels.c; NULL if images cannot be loaded here. */
CUfunction kit_kernel(const char *name);

/** Launches one thread of memsim_fill: `words` times `value` from `address` on. Touches nothing on the
 * simulator. */
CUresult kit_fill(CUdeviceptr address, uint32_t value, uint64_t words, CUstream stream);

/* --- hold.c: work that ends when the host says so ------------------------------------------------------- */

enum kit_hold_kind { KIT_HOLD_KERNEL = 1, KIT_HOLD_VALUE, KIT_HOLD_NONE };

struct kit_hold {
    volatile uint32_t *word;
    CUdeviceptr address;
    atomic_bool released;
};

/** How streams are held here: by a kernel that runs until released where that works, else by a wait for a
 * value. */
enum kit_hold_kind kit_hold_kind(void);
void kit_hold_use(enum kit_hold_kind kind);

/** Holds the stream from here on. A kernel gives up after 30 seconds by itself, so that no device stays
 * hung. */
CUresult kit_hold(struct kit_hold *hold, CUstream stream);
void kit_release(struct kit_hold *hold);

/** A wait for the stream, bounded: true when its work is over, false if it is still not after `ms`. */
bool kit_over(CUstream stream, unsigned ms);

/** What is looked at: something is prepared, then called while a stream is held. Both get `data`. */
struct kit_question {
    void (*prepare)(void *data);
    void (*call)(void *data);
    void (*finish)(void *data);
    void *data;
};

/** Whether the call comes back only after what holds the stream was released: "yes", "no", or why it cannot
 * be said. */
const char *kit_waits(CUstream stream, const struct kit_question *question);

#endif
