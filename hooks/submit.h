/* submit.h - calls that give work to a stream: what MEMSHIM_FREE=ordered must see (pool/ordered.c).
 *
 * Floor 3. submit.def classifies every function of the driver; submit_rows.c makes wrappers of the rows that
 * submit; submit.c hands the wrappers out and does what is done around a call; submit_link.c puts them where
 * objects are linked with the driver directly. Under every other MEMSHIM_FREE no lookup answers with a
 * wrapper, nothing is exported for these rows, and no call meets this code. */
#ifndef MS_HOOKS_SUBMIT_H
#define MS_HOOKS_SUBMIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "gpu/gpu.h"
#include "pool/pool.h"

enum ms_submit_row {
#define MS_SUBMIT(symbol, ...) MS_SUBMIT_##symbol,
#define MS_SUBMIT_OFF(symbol, ...) MS_SUBMIT_##symbol,
#define MS_MARK(symbol)
#define MS_STILL(symbol)
#include "hooks/submit.def"
#undef MS_SUBMIT
#undef MS_SUBMIT_OFF
#undef MS_MARK
#undef MS_STILL
    MS_SUBMIT_COUNT
};

enum { MS_SUBMIT_SLOTS = 2 };

enum ms_reach { MS_REACH_OWN, MS_REACH_LINEAR, MS_REACH_ANY };

struct ms_submit_info {
    /* off: why `ordered` cannot go on behind such a call; NULL for others */
    const char *symbol, *lookup, *off;
    int version;
    uint8_t per_thread, reach;
    void *wrappers[MS_SUBMIT_SLOTS];
};

/** submit_rows.c */
extern const struct ms_submit_info ms_submit_rows[MS_SUBMIT_COUNT];
/** Whether the driver of CUDA 13.0 exports this function, whatever its row says of it. */
bool ms_submit_knows(const char *symbol);

/** One function of one driver, and the library that it belongs to. */
struct ms_submit_slot {
    void *real;
    const struct ms_gpu *gpu;
};
extern struct ms_submit_slot ms_submit_slots[MS_SUBMIT_COUNT][MS_SUBMIT_SLOTS];

/** Whether wrappers are handed out: MEMSHIM_FREE=ordered, and the pool serves. */
extern atomic_bool ms_submit_on;
/** Once, when memshim starts. */
void ms_submit_start(void);

/** What is done before the vendor's function and after it. `handle` is what the program gave. */
struct ms_submit {
    struct ms_pool_stream *stream;
};
void ms_submit_begin(struct ms_submit *submit, unsigned row, const struct ms_gpu *gpu, uint64_t handle,
                     uint64_t first, uint64_t second);
void ms_submit_end(const struct ms_submit *submit);
/** A call that cannot be followed. */
void ms_submit_off(unsigned row);
/** dlsym(RTLD_NEXT) was asked for this row: calls through the answer are not seen. */
void ms_submit_next(unsigned row);
/** The same of what is no call: one line for the report. */
void ms_submit_give_up(const char *format, const char *what);

/** The record of a stream that the program waits for; NULL if it was given no work that was seen. */
struct ms_pool_stream *ms_submit_stream(const struct ms_gpu *gpu, uint64_t handle);

/** The row of an exported symbol; -1 if it has none. */
int ms_submit_row_of_symbol(const char *symbol);
/** The wrapper of `pointer`, which is this row's function in a driver library; `pointer` where there is none
 * left. Resolve lock held. */
void *ms_submit_wrap_locked(unsigned row, void *pointer, const struct ms_gpu *gpu);
/** cuGetProcAddress answered `pointer`: what the program gets instead. Resolve lock held. */
void *ms_submit_pointer_locked(void *pointer, const char *name, int version, bool per_thread);

/** submit_link.c: in the constructor, for programs that are linked with the driver: the environment asks for
 * `ordered`, so memshim starts now. Under any other policy one variable is read, and that is all. */
void ms_submit_early(void);
/** When memshim has started. */
void ms_submit_link(void);
/** If anything was loaded since. In a section. */
void ms_submit_refresh(void);
void ms_submit_loading(void);

#endif
