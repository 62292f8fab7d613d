/* phases.h - what the program names of its own time: ranges and marks, and what memory did while each was
 * open.
 *
 * Floor 2. Every function here may be called from any thread inside a hook scope of hooks/: one lock of its
 * own (MS_RANK_PHASE), and within it those of the accounts. Nothing is allocated but rows.
 *
 * A *interval* is the time from one boundary of a phase (of any thread) to the next. While a phase is open
 * the shards of the accounts measure intervals (shards.h): the most that was live in one, and what each site
 * held then, come out of what they do for the device's peak anyway, so an allocation and a free do nothing
 * for a phase. At each boundary the interval that ends is added to all phases that are open. A phase's
 * figures are those of the devices while it was open, whichever thread made them.
 *
 * Phases of one name are one row, with the least and the most of them and an even choice of their series. */
#ifndef MS_RECORD_PHASES_PHASES_H
#define MS_RECORD_PHASES_PHASES_H

#include "record/live/internal.h"

enum {
    MS_PHASE_NAME_BYTES = 256, /* with its NUL; what is longer is cut */
    MS_PHASE_DEVICES = 16,     /* that a phase has figures of, of each layer: the first ones that were used */
    MS_PHASE_SERIES = 32,
    MS_PHASE_OPENS = 1024, /* at the same time, of all threads */
};

/** Whose interface named it. */
enum ms_phase_source { MS_PHASE_MEMSHIM, MS_PHASE_NVTX, MS_PHASE_ROCTX, MS_PHASE_MSTX, MS_PHASE_SOURCES };

/** The faults that are counted, for diagnostics: an end without a beginning; a beginning for which there was
 * no room. Phases of names beyond what there is room for count in row 0. */
enum ms_phase_fault { MS_PHASE_NOT_OPEN, MS_PHASE_NO_ROOM, MS_PHASE_FAULTS };

/** All phases of one name in one domain. Row 0: of those whose names found no room. */
struct ms_phase {
    _Atomic uint32_t state; /* 1 once it says what it is */
    uint32_t domain, name;  /* of their first bytes in the table of their texts; 0: "" */
    uint32_t source;        /* enum ms_phase_source */
    uint64_t ended, marks;
    uint64_t first_ns, last_ns; /* the first beginning or mark, the latest event */
    uint64_t total_ns;          /* of those that ended */
    uint64_t unused;
};
_Static_assert(sizeof(struct ms_phase) == MS_TABLE_PHASES_ROW_BYTES, "a row of the ledger");

/** The figures of one of these phases on a device. */
struct ms_phase_instance {
    uint64_t peak_bytes;
    int64_t growth_bytes;
};

/** The phases of one name, on one device. */
struct MS_CACHELINE ms_phase_figures {
    _Atomic uint32_t state;
    uint32_t phase;
    int16_t device;
    uint16_t top_count, series_count;
    uint16_t series_shift; /* every 2^shift-th is in the series */
    uint64_t count;
    uint64_t peak_bytes_min, peak_bytes_max, peak_ns; /* peak_ns: of the largest */
    int64_t growth_bytes_min, growth_bytes_max, growth_bytes_sum;
    uint64_t allocated_bytes, allocated_count, freed_bytes, freed_count;
    uint64_t top_bytes[MS_OOM_TOP_SITES]; /* of the sites that held most at the largest peak */
    uint32_t top_sites[MS_OOM_TOP_SITES], unused;
    struct ms_phase_instance series[MS_PHASE_SERIES];
};
_Static_assert(sizeof(struct ms_phase_figures) == MS_TABLE_PHASE_FIGURES_ROW_BYTES, "a row of the ledger");

/** An account's figures at a boundary: as of then, and of the interval that ended. */
struct ms_phase_interval {
    uint64_t live_bytes, live_count, total_bytes, total_count;
    uint64_t peak_bytes, peak_ns;
    uint64_t top_bytes[MS_OOM_TOP_SITES];
    uint32_t top_sites[MS_OOM_TOP_SITES], top_count;
};

/** A phase that is open, on one device. */
struct ms_phase_open_device {
    int16_t device;
    uint16_t top_count, unused[2];
    uint64_t live_bytes, live_count, total_bytes, total_count; /* as it began */
    uint64_t peak_bytes, peak_ns;                              /* of the intervals that ended since */
    uint64_t top_bytes[MS_OOM_TOP_SITES];
    uint32_t top_sites[MS_OOM_TOP_SITES], unused_too;
};

struct MS_CACHELINE ms_phase_open {
    _Atomic uint64_t id; /* 0: no phase; grows with each that begins */
    uint32_t phase, thread;
    uint64_t begun_ns;
    uint32_t domain;
    bool is_nested; /* ends by a pop of its thread */
    uint8_t device_count;
    struct ms_phase_open_device devices[MS_PHASE_DEVICES];
};
_Static_assert(sizeof(struct ms_phase_open) == MS_TABLE_PHASE_OPENS_ROW_BYTES, "a row of the ledger");

/** The place of the text in the table of texts: the same for the same text. 0 for "" and NULL; where there is
 * no room that of "...". Of a long one the first characters. */
uint32_t ms_phase_text(const char *text);
/** As ms_phase_text, for what is no phase: such texts take half of the room at most. */
uint32_t ms_phase_text_other(const char *text);
/** The text there; "" for what is none. */
const char *ms_phase_text_at(uint32_t text);

/** The thread is in a phase of that name from now on, until its pop of that domain. Returns how many it was
 * in already there. */
int ms_phase_push(enum ms_phase_source source, uint32_t domain, uint32_t name);
/** Ends the latest; returns how many the thread is in still, -1 if it was in none. */
int ms_phase_pop(enum ms_phase_source source, uint32_t domain);
/** Begins one of the whole process; its number, 0 if there was no room. Any thread may end it. */
uint64_t ms_phase_begin(enum ms_phase_source source, uint32_t domain, uint32_t name);
void ms_phase_end(uint64_t id);
/** The row, + 1, of the phase in which the calling thread is: its own latest, or else the latest of the whole
 * process; 0 if there is none. */
uint32_t ms_phase_now(void);
void ms_phase_mark(enum ms_phase_source source, uint32_t domain, uint32_t name);

/** The phases that the report tells of: copies, in memory of its own. Figures are in the order of their
 * phases' rows; those of phases that are open count as if they had ended. */
struct ms_phases_told {
    struct ms_phase *phases; /* by row; those with state 0 are none */
    uint32_t *open;          /* how many of each are */
    struct ms_phase_figures *figures;
    uint32_t phase_count, figures_count;
    void *memory;
    size_t memory_bytes;
};

struct ms_snapshot;
bool ms_phases_lock_within(unsigned timeout_ms);
void ms_phases_unlock(void);
/** Under the lock of the phases and those of all accounts, when the sites were copied. */
void ms_phases_copy(struct ms_snapshot *snapshot);
void ms_phases_release(struct ms_snapshot *snapshot);

/** In a reader: every number refers to something, after the sites were made whole. */
void ms_phases_clean(void);

/* phase_names.c, under the lock. */
/** ms_phase_text, or ms_phase_text_other. */
uint32_t ms_phase_text_locked(const char *text, bool is_phases);
/** The row of phases of that name; 0 where there is no room for another. */
uint32_t ms_phase_row(enum ms_phase_source source, uint32_t domain, uint32_t name, uint64_t now_ns);
static inline struct ms_phase *ms_phase_at(uint32_t row)
{
    return &MS_ROWS(PHASES, struct ms_phase)[row];
}

/* phase_figures.c, under the lock. */
/** The figures of a phase on a device; made if `create`. NULL if there are none, or no room. */
struct ms_phase_figures *ms_phase_figures_of(uint32_t phase, int device, bool create);
/** Adds what the phase was on the device until `end`. */
void ms_phase_figures_add(struct ms_phase_figures *figures, const struct ms_phase_open_device *open,
                          const struct ms_phase_interval *end);
void ms_phase_figures_reset(void);

/* intervals: at a boundary, with no lock of the accounts held. */
/** Ends an interval: *interval_p says what account `number` has now, and had in the interval that ends; the
 * next one is measured or not. The sites that held most are told only of a peak above `top_above`. */
void ms_phase_interval_end(unsigned number, bool is_measured, uint64_t top_above, uint64_t now_ns,
                           struct ms_phase_interval *interval_p);

#endif
