/* admission.c - see admission.h.
 *
 * The announcement and the look behind it are sequentially consistent: were the look to overtake the store,
 * two processes could each miss the other. A request that does not fit may be in the way of another that is
 * undecided as well. Then the one in the higher row takes its announcement back and waits for the other to be
 * decided, so that of those that want the same memory one gets it. Nobody waits for longer than a few
 * milliseconds: who is undecided for that long was stopped, and what it announced counts as taken. */
#include "share/admission.h"

#include <sched.h>

#include "base/clock.h"
#include "base/count.h"

enum { NAPS_MOST = 8, SPINS_MOST = 16, READS_MOST = 4 };

/* Sums of what others have written may be anything, and never wrap. */
static uint64_t sum_of(uint64_t a, uint64_t b)
{
    return a + b < a ? UINT64_MAX : a + b;
}

static uint64_t used_in(const struct ms_share_row *row)
{
    return atomic_load(&row->used_bytes);
}

static uint64_t kept_for(const struct ms_share_row *row)
{
    return atomic_load_explicit(&row->guarantee_bytes, memory_order_relaxed);
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t capacity_of(const struct ms_share_page *page)
{
    uint64_t total = atomic_load_explicit(&page->head.total_bytes, memory_order_relaxed);
    uint64_t others = atomic_load_explicit(&page->head.others_bytes, memory_order_relaxed);
    return others < total ? total - others : 0;
}

/* The bytes of a row without those that it asks for beyond its guarantee just now: these are decided by what
 * is kept for others, used or not, so whatever others use of that is no matter. */
static uint64_t decided_in(const struct ms_share_row *row)
{
    uint64_t used = used_in(row);
    for (int i = 0; i < READS_MOST && used > kept_for(row); i++) {
        uint64_t turn = atomic_load(&row->turn), undecided = atomic_load(&row->undecided_bytes);
        used = used_in(row);
        if (atomic_load(&row->turn) == turn)
            return used > undecided ? used - undecided : 0;
    }
    return used;
}

/* The bytes of all rows; with those that are kept for them and not used, or without. */
static uint64_t sum_of_rows(const struct ms_share_page *page, unsigned own, bool with_kept)
{
    uint64_t sum = 0;
    for (unsigned i = 0, rows = ms_share_rows(page); i < rows; i++) {
        const struct ms_share_row *row = &page->rows[i];
        if (!atomic_load(&row->is_taken))
            continue;
        if (with_kept)
            sum = sum_of(sum, larger(used_in(row), kept_for(row)));
        else
            sum = sum_of(sum, i == own ? used_in(row) : decided_in(row));
    }
    return sum;
}

/* By how much what is announced is too much; 0: it fits. */
static uint64_t excess(const struct ms_admission *self)
{
    const struct ms_share_row *own = &self->page->rows[self->row];
    uint64_t sum = sum_of_rows(self->page, self->row, used_in(own) > kept_for(own)),
             capacity = capacity_of(self->page);
    return sum > capacity ? sum - capacity : 0;
}

/* --- several at once --- */

/* Of others that are undecided: the first one's row, or the number of rows. */
static unsigned first_undecided(const struct ms_admission *self)
{
    for (unsigned i = 0; i < ms_share_rows(self->page); i++) {
        const struct ms_share_row *row = &self->page->rows[i];
        if (i != self->row && atomic_load(&row->is_taken) && atomic_load(&row->turn) & 1)
            return i;
    }
    return MS_SHARE_ROWS;
}

/* How many decisions others have begun and ended. */
static uint64_t turns_of_others(const struct ms_admission *self)
{
    uint64_t turns = 0;
    for (unsigned i = 0; i < ms_share_rows(self->page); i++) {
        if (i != self->row)
            turns += atomic_load(&self->page->rows[i].turn);
    }
    return turns;
}

/* Short at first. False when it has been long enough. */
static bool rest(unsigned *rests_p, uint64_t *nap_p)
{
    if (*rests_p >= SPINS_MOST + NAPS_MOST)
        return false;
    if ((*rests_p)++ >= SPINS_MOST)
        ms_clock_sleep_longer(nap_p);
    else
        sched_yield();
    return true;
}

static void announce(struct ms_share_row *own, uint64_t bytes)
{
    atomic_fetch_add(&own->turn, 1);
    atomic_fetch_add(&own->used_bytes, bytes);
    atomic_store(&own->undecided_bytes, bytes);
}

static void decide(struct ms_share_row *own)
{
    atomic_store(&own->undecided_bytes, 0);
    atomic_fetch_add(&own->turn, 1);
}

static void take_back(struct ms_share_row *own, uint64_t bytes)
{
    atomic_fetch_sub(&own->used_bytes, bytes);
    decide(own);
}

/* As long as others are undecided. The lowest row stays announced, which the others see. */
static uint64_t contend(struct ms_admission *self, uint64_t bytes)
{
    struct ms_share_row *own = &self->page->rows[self->row];
    unsigned rests = 0, first;
    uint64_t nap = 0, before, missing;
    for (;;) {
        before = turns_of_others(self);
        first = first_undecided(self);
        missing = excess(self);
        bool all_decided = first == MS_SHARE_ROWS && before == turns_of_others(self);
        if (!missing || all_decided || !rest(&rests, &nap))
            return missing;
        if (first > self->row)
            continue;
        take_back(own, bytes);
        while (first_undecided(self) < self->row && rest(&rests, &nap)) {
        }
        announce(own, bytes);
    }
}

bool ms_admission_take(struct ms_admission *self, uint64_t bytes, uint64_t *missing_p)
{
    struct ms_share_row *own = &self->page->rows[self->row];
    if (bytes > capacity_of(self->page)) { /* and might be too large to add */
        *missing_p = bytes - capacity_of(self->page);
        return false;
    }
    ms_lock(&self->lock);
    announce(own, bytes);
    *missing_p = excess(self);
    if (MS_UNLIKELY(*missing_p))
        *missing_p = contend(self, bytes);
    if (MS_UNLIKELY(*missing_p) && ms_admission_sweep(self))
        *missing_p = contend(self, bytes);
    if (MS_LIKELY(!*missing_p))
        decide(own);
    else
        take_back(own, bytes);
    ms_unlock(&self->lock);
    return !*missing_p;
}

void ms_admission_note(struct ms_admission *self, uint64_t bytes)
{
    atomic_fetch_add(&self->page->rows[self->row].used_bytes, bytes);
}

/* Never below nothing: what was given before this process had a row is not in it. */
static void lessen(_Atomic uint64_t *word, uint64_t bytes)
{
    uint64_t before = atomic_load(word);
    while (!atomic_compare_exchange_weak(word, &before, before > bytes ? before - bytes : 0)) {
    }
}

void ms_admission_give(struct ms_admission *self, uint64_t bytes)
{
    lessen(&self->page->rows[self->row].used_bytes, bytes);
}

void ms_admission_asks(struct ms_admission *self, uint64_t bytes)
{
    atomic_fetch_add(&self->page->rows[self->row].asked_bytes, bytes);
}

void ms_admission_answered(struct ms_admission *self, uint64_t bytes)
{
    lessen(&self->page->rows[self->row].asked_bytes, bytes);
}

uint64_t ms_admission_others_ask(const struct ms_admission *self, bool *before_us_p)
{
    uint64_t sum = 0, asked;
    *before_us_p = false;
    for (unsigned i = 0; i < ms_share_rows(self->page); i++) {
        const struct ms_share_row *row = &self->page->rows[i];
        if (i == self->row || !atomic_load(&row->is_taken) || !(asked = atomic_load(&row->asked_bytes)))
            continue;
        sum = sum_of(sum, asked);
        *before_us_p |= i < self->row;
    }
    return sum;
}

uint64_t ms_admission_room(const struct ms_admission *self)
{
    const struct ms_share_row *own = &self->page->rows[self->row];
    uint64_t capacity = capacity_of(self->page), used = used_in(own), kept = kept_for(own);
    uint64_t all = sum_of_rows(self->page, self->row, false),
             with_kept = sum_of_rows(self->page, self->row, true);
    uint64_t within = kept > used ? kept - used : 0, left = capacity > all ? capacity - all : 0;
    uint64_t beyond = capacity > with_kept ? capacity - with_kept : 0;
    return within < left ? sum_of(within, beyond < left - within ? beyond : left - within) : left;
}

uint64_t ms_admission_others_have(const struct ms_admission *self)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < ms_share_rows(self->page); i++) {
        const struct ms_share_row *row = &self->page->rows[i];
        if (i != self->row && atomic_load(&row->is_taken))
            sum = sum_of(sum, used_in(row));
    }
    return sum;
}

uint64_t ms_admission_others_use(struct ms_admission *self)
{
    ms_admission_sweep(self);
    return ms_admission_others_have(self);
}

/* --- who comes and goes --- */

void ms_admission_clear(struct ms_share_page *page, unsigned row)
{
    struct ms_share_row *gone = &page->rows[row];
    atomic_store(&gone->guarantee_bytes, 0);
    atomic_store(&gone->used_bytes, 0);
    atomic_store(&gone->undecided_bytes, 0);
    atomic_store(&gone->asked_bytes, 0);
    atomic_store(&gone->cached_bytes, 0);
    atomic_store(&gone->contexts_bytes, 0);
    atomic_store(&gone->wanted_bytes, 0);
    atomic_store(&gone->heard, atomic_load(&gone->asks));
    atomic_store(&gone->turn, (atomic_load(&gone->turn) | 1) + 1);
    atomic_store(&gone->is_taken, 0);
}

bool ms_admission_sweep(struct ms_admission *self)
{
    bool any = false;
    for (unsigned i = 0; i < ms_share_rows(self->page); i++) {
        if (i == self->row || !atomic_load(&self->page->rows[i].is_taken) || !self->has_ended(self, i))
            continue;
        ms_admission_clear(self->page, i);
        self->left(self, i);
        any = true;
    }
    return any;
}

void ms_admission_join(struct ms_admission *self, unsigned row)
{
    struct ms_share_row *own = &self->page->rows[row];
    ms_admission_clear(self->page, row);
    self->row = row;
    atomic_store(&own->most_bytes, UINT64_MAX);
    atomic_store(&own->given_bytes, 0);
    ms_raise(&self->page->head.rows_taken, row + 1);
    atomic_store(&own->is_taken, 1);
}

bool ms_admission_guarantee(struct ms_admission *self, uint64_t bytes, uint64_t *missing_p)
{
    uint64_t sum = bytes, capacity = capacity_of(self->page);
    ms_admission_sweep(self);
    for (unsigned i = 0; i < ms_share_rows(self->page); i++) {
        if (i != self->row && atomic_load(&self->page->rows[i].is_taken))
            sum = sum_of(sum, kept_for(&self->page->rows[i]));
    }
    *missing_p = sum > capacity ? sum - capacity : 0;
    if (!*missing_p)
        atomic_store(&self->page->rows[self->row].guarantee_bytes, bytes);
    return !*missing_p;
}

void ms_admission_begin(struct ms_admission *self, uint64_t total_bytes)
{
    ms_admission_sweep(self);
    for (unsigned i = 0; i < ms_share_rows(self->page); i++)
        if (i != self->row && atomic_load(&self->page->rows[i].is_taken))
            return;
    atomic_store(&self->page->head.total_bytes, total_bytes);
}

void ms_admission_tell_free(struct ms_share_page *page, uint64_t free_bytes)
{
    uint64_t total = atomic_load_explicit(&page->head.total_bytes, memory_order_relaxed);
    uint64_t used = sum_of_rows(page, MS_SHARE_ROWS, false),
             in_use = free_bytes < total ? total - free_bytes : 0;
    atomic_store(&page->head.others_bytes, in_use > used ? in_use - used : 0);
}
