/* footprints.h - what the driver takes of a device for itself, as far as it was seen to: for contexts, and
 * for the modules that are loaded into them.
 *
 * Floor 2. Told by the hooks, in sections of theirs; a few calls in the life of a process. Rows lie in a
 * table of base/store/store.h: docs/internals/ledger-format.md. Allocates rows, and what it remembers of
 * modules (arena). */
#ifndef MS_RECORD_FOOTPRINT_FOOTPRINTS_H
#define MS_RECORD_FOOTPRINT_FOOTPRINTS_H

#include "record/live/internal.h"

enum ms_footprint { MS_FOOTPRINT_CONTEXT, MS_FOOTPRINT_MODULE, MS_FOOTPRINTS };

/** One taking. */
struct ms_footprint_event {
    enum ms_footprint kind;
    uint64_t context; /* the vendor's id; 0 if none was current */
    uint64_t module;  /* handle of a module or library */
    uint64_t bytes;   /* by which the device's free memory fell */
    /* True if what was free was read before as well, and nothing else was recorded meanwhile; else `bytes` is
     * what is in use on the device and not this process's. */
    bool is_exact;
    ms_stack_id stack;
    uint32_t thread;
    int16_t device;
    uint16_t api;
};

/** Memory that was taken for one context, or for the modules that one place loaded into it. */
struct MS_CACHELINE ms_footprint_row {
    _Atomic uint32_t state; /* 1 once it says what it is */
    uint32_t kind;
    uint64_t context, first_ns;
    _Atomic uint64_t ended_ns; /* the context's end, or that of the last of the modules; 0: there are some */
    _Atomic uint64_t bytes, count; /* now */
    _Atomic uint64_t total_bytes, total_count;
    ms_stack_id stack;
    uint32_t thread; /* of the first */
    int16_t device;
    uint16_t api;
    _Atomic uint32_t is_inferred; /* of one of them, at least */
    uint64_t unused[5];
};
_Static_assert(sizeof(struct ms_footprint_row) == MS_TABLE_FOOTPRINTS_ROW_BYTES, "a row of the ledger");

/** One that finds no row, or whose module could not be remembered, is counted as dropped from the table. */
void ms_ledger_footprint_grew(const struct ms_footprint_event *taking);
/** A module or library is no more. */
void ms_ledger_module_gone(uint64_t module);
/** A context is no more, nor are its modules. */
void ms_ledger_footprints_died(uint64_t context);
/** The bytes that are taken on the device now. */
uint64_t ms_ledger_taken(int device);
/** True if any of these bytes were told from what was in use afterwards. */
bool ms_ledger_taken_is_inferred(int device);
/** The least that a context of the device took, UINT64_MAX if none was seen to begin: where it cannot be
 * asked before the next one, that one takes as much. */
uint64_t ms_ledger_taken_least(int device);
/** True if that context was ever seen on the device. */
bool ms_ledger_taken_by(int device, uint64_t context);
/** Too much was inferred of the device's contexts and modules: takes `bytes` off, as far as they are there,
 * and returns how many. */
uint64_t ms_ledger_footprint_shrank(int device, uint64_t bytes);

/** Copies rows, at most `room`; false if the lock was not to be had within `timeout_ms`. */
bool ms_footprints_copy(struct ms_footprint_row *rows, uint32_t room, uint32_t *count_p, unsigned timeout_ms);

#endif
