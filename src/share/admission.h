/* admission.h - whether a process may take more of a device, beside what is kept for others.
 *
 * Floor 2. Announced first, looked at then: a process adds what it wants to its own row, and reads all rows.
 * So of two that ask at the same time at least one sees the other, and what all have together is never more
 * than there is. No lock is shared, so nobody waits for a process that was stopped or killed on its way: what
 * it announced is counted until the kernel says that it has ended. The rule:
 *
 * * Beyond its guarantee: the sum of the larger of use and guarantee, over all rows, is no more than the
 * device has for them. So what is kept for others and not used is not given away.
 * * Within its guarantee: the sum of use is no more than that. It is refused only where others had taken what
 * is kept for it before it came.
 *
 * One thread of a process at a time asks (a lock of its own). No allocation, no call of the kernel's but
 * where a request would be refused. */
#ifndef MS_SHARE_ADMISSION_H
#define MS_SHARE_ADMISSION_H

#include <stdbool.h>

#include "base/lock.h"
#include "share/page.h"

/** A process's place on a page. */
struct ms_admission {
    struct ms_share_page *page;
    unsigned row;
    struct ms_lock lock;
    /** True if the process of another row has ended: then its row is the caller's alone until `left`. */
    bool (*has_ended)(struct ms_admission *self, unsigned row);
    void (*left)(struct ms_admission *self, unsigned row);
};

/** Takes `bytes` if there is room, or says how many are missing. */
bool ms_admission_take(struct ms_admission *self, uint64_t bytes, uint64_t *missing_p);
/** As ms_admission_take, whether there is room or not: the vendor has given them already. */
void ms_admission_note(struct ms_admission *self, uint64_t bytes);
/** The vendor has these back, or did not give them. */
void ms_admission_give(struct ms_admission *self, uint64_t bytes);
/** The bytes that could be taken now. */
uint64_t ms_admission_room(const struct ms_admission *self);

/** The vendor is asked for so much, or has answered; what others ask it for. `*before_us_p`: one of them has
 * a lower row. */
void ms_admission_asks(struct ms_admission *self, uint64_t bytes);
void ms_admission_answered(struct ms_admission *self, uint64_t bytes);
uint64_t ms_admission_others_ask(const struct ms_admission *self, bool *before_us_p);

/** The bytes that others' rows have; looks first who of them has ended. */
uint64_t ms_admission_others_use(struct ms_admission *self);
/** As ms_admission_others_use without that look: no call of the kernel's. */
uint64_t ms_admission_others_have(const struct ms_admission *self);

/** Clears the rows of processes that have ended. True if there was any. */
bool ms_admission_sweep(struct ms_admission *self);
/** Nobody's row becomes this process's, which has claimed it: it takes nothing yet, and nothing is kept for
 * it. */
void ms_admission_join(struct ms_admission *self, unsigned row);
/** Keeps so much for this process, unless the guarantees of all would be more than there is. One process at a
 * time (the caller holds the page's lock). */
bool ms_admission_guarantee(struct ms_admission *self, uint64_t bytes, uint64_t *missing_p);
/** Who is alone on the page says how long the device is: another may have made the page. */
void ms_admission_begin(struct ms_admission *self, uint64_t total_bytes);
/** The row is nobody's again. */
void ms_admission_clear(struct ms_share_page *page, unsigned row);

/** The driver says that so much of the device is free: the rest of what no row has is others'. `free_bytes`
 * was asked before this call, so what is taken meanwhile makes others look smaller, never larger. UINT64_MAX:
 * nobody knows, and others count as having nothing. */
void ms_admission_tell_free(struct ms_share_page *page, uint64_t free_bytes);

#endif
