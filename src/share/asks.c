/* asks.c - see asks.h.
 *
 * What is wanted is written before the ask is counted, and read behind the count, so that an answer to that
 * count has seen it. */
#include "share/asks.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

/* The rows that were asked, and the count that each has to have heard. */
struct round {
    uint32_t numbers[MS_SHARE_ROWS];
    bool waits[MS_SHARE_ROWS];
    uint64_t wait_ns, given_before; /* by the rows that were asked */
};

/* The bytes that the rows that were asked have given back, ever. */
static uint64_t given_by(const struct ms_share_page *page, const struct round *round)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < MS_SHARE_ROWS; i++)
        sum += round->numbers[i] ? atomic_load(&page->rows[i].given_bytes) : 0;
    return sum;
}

/* The bytes that a row could give back of what it has beyond its guarantee, or of the rest. */
static uint64_t could_give(const struct ms_share_row *row, bool beyond)
{
    uint64_t cached = atomic_load(&row->cached_bytes), used = atomic_load(&row->used_bytes),
             kept = atomic_load(&row->guarantee_bytes);
    uint64_t over = used > kept ? used - kept : 0, of_over = cached < over ? cached : over;
    if (!atomic_load(&row->is_taken))
        return 0;
    return beyond ? of_over : cached - of_over;
}

/* The number of an ask is never 0, which stands for none. */
static void ask_row(struct ms_admission *self, unsigned i, uint64_t bytes, struct round *round)
{
    struct ms_share_row *row = &self->page->rows[i];
    if (!round->numbers[i])
        round->given_before += atomic_load(&row->given_bytes);
    if (atomic_load(&row->asks) == atomic_load(&row->heard))
        atomic_store(&row->asked_ns, ms_clock_ns());
    atomic_fetch_add(&row->wanted_bytes, bytes);
    do {
        round->numbers[i] = atomic_fetch_add(&row->asks, 1) + 1;
    } while (!round->numbers[i]);
    round->waits[i] = true;
    syscall(SYS_futex, &row->asks, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static uint64_t ask_rows(struct ms_admission *self, uint64_t bytes, bool beyond, struct round *round)
{
    for (unsigned i = 0; i < ms_share_rows(self->page) && bytes; i++) {
        uint64_t has = i == self->row ? 0 : could_give(&self->page->rows[i], beyond);
        if (!has)
            continue;
        has = has < bytes ? has : bytes;
        ask_row(self, i, has, round);
        bytes -= has;
    }
    return bytes;
}

/* A process tells what is free in it when the vendor gives it something, or takes it, and not what its
 * program has freed since. So what is still missing is asked of all that have anything, each for all of it.
 */
static void ask_all(struct ms_admission *self, uint64_t bytes, bool beyond, struct round *round)
{
    for (unsigned i = 0; i < ms_share_rows(self->page) && bytes; i++) {
        const struct ms_share_row *row = &self->page->rows[i];
        uint64_t used = atomic_load(&row->used_bytes), kept = beyond ? atomic_load(&row->guarantee_bytes) : 0;
        if (i == self->row || !atomic_load(&row->is_taken) || used <= kept)
            continue;
        ask_row(self, i, used - kept < bytes ? used - kept : bytes, round);
    }
}

/* True if a row has answered, is nobody's any more, or has not heard for too long. The clocks of two
 * processors may differ a little, so that an ask lies in the future. */
static bool is_over(const struct ms_share_row *row, uint32_t number, uint64_t wait_ns)
{
    return (int32_t)(atomic_load(&row->heard) - number) >= 0 || !atomic_load(&row->is_taken) ||
           (int64_t)(ms_clock_ns() - atomic_load(&row->asked_ns)) >= (int64_t)wait_ns;
}

static bool all_are_over(const struct ms_admission *self, struct round *round)
{
    bool all = true;
    for (unsigned i = 0; i < MS_SHARE_ROWS; i++) {
        if (round->waits[i] && is_over(&self->page->rows[i], round->numbers[i], round->wait_ns))
            round->waits[i] = false;
        all = all && !round->waits[i];
    }
    return all;
}

struct ms_asks_result ms_asks_make(struct ms_admission *self, uint64_t bytes, bool beyond, uint64_t wait_ns)
{
    struct round round = {.wait_ns = wait_ns};
    struct ms_asks_result result = {0};
    uint64_t nap = 0, begun_ns = ms_clock_ns(), left;
    int saved_errno = errno;
    ms_admission_sweep(self); /* nobody waits for the dead */
    left = ask_rows(self, bytes, true, &round);
    if (!beyond)
        left = ask_rows(self, left, false, &round);
    ask_all(self, left, beyond, &round);
    while (!all_are_over(self, &round) && ms_clock_ns() - begun_ns < wait_ns) {
        ms_clock_sleep_longer(&nap);
        ms_admission_sweep(self);
    }
    for (unsigned i = 0; i < MS_SHARE_ROWS; i++) {
        uint32_t number = round.numbers[i];
        result.asked += number != 0;
        result.heard += number && (int32_t)(atomic_load(&self->page->rows[i].heard) - number) >= 0;
    }
    uint64_t after = given_by(self->page, &round);
    result.brought_bytes = after > round.given_before ? after - round.given_before : 0;
    errno = saved_errno;
    return result;
}

uint64_t ms_asks_hear(struct ms_admission *self, uint32_t *asks_p)
{
    struct ms_share_row *own = &self->page->rows[self->row];
    *asks_p = atomic_load(&own->asks);
    return atomic_exchange(&own->wanted_bytes, 0);
}

void ms_asks_answered(struct ms_admission *self, uint32_t asks, uint64_t given_bytes)
{
    struct ms_share_row *own = &self->page->rows[self->row];
    atomic_fetch_add(&own->given_bytes, given_bytes);
    atomic_store(&own->heard, asks);
}

void ms_asks_await(struct ms_admission *self, uint64_t wait_ns)
{
    struct ms_share_row *own = &self->page->rows[self->row];
    const struct timespec rest = {(time_t)(wait_ns / 1000000000u), (long)(wait_ns % 1000000000u)};
    uint32_t heard = atomic_load(&own->heard);
    if (atomic_load(&own->asks) == heard)
        syscall(SYS_futex, &own->asks, FUTEX_WAIT, heard, &rest, NULL, 0);
}
