/* site_growth.c - what a site held over the run, and whether that grows.
 *
 * Floor 2. The run is divided into at most MS_SPANS equal spans, which double in length as it goes on; a
 * site's mark is what it held at the end of a span. Marks are brought up to date when the site changes and
 * when it is reported, for in between it holds what it held. Under the lock of the site's shard. A process
 * may be killed at any store: span_last follows the mark, and while marks move span_shift says that none is
 * known. */
#include "record/live/internal.h"

enum { STEPS_MIN = 5 };

/* Two spans become one, until `now_ns` is in one of them. A mark is of the end of its span, and the last span
 * has not ended. */
static void widen_spans(struct ms_site *site, uint64_t now_ns)
{
    unsigned shift = site->span_shift, last = site->span_last;
    site->span_shift = MS_SPAN_SHIFT_NONE;
    atomic_signal_fence(memory_order_seq_cst);
    for (; now_ns >> shift >= MS_SPANS; shift++) {
        for (unsigned i = 0; i < last / 2; i++)
            site->marks[i] = site->marks[2 * i + 1];
        last /= 2;
    }
    site->span_last = (uint8_t)last;
    atomic_signal_fence(memory_order_seq_cst);
    site->span_shift = (uint8_t)shift;
}

unsigned ms_span_shift(uint64_t now_ns)
{
    unsigned shift = MS_SPAN_SHIFT_START;
    while (now_ns >> shift >= MS_SPANS)
        shift++;
    return shift;
}

MS_NOINLINE void ms_site_mark_slowly(struct ms_site *site, uint64_t now_ns, uint64_t live)
{
    if (now_ns >> site->span_shift >= MS_SPANS)
        widen_spans(site, now_ns);
    while (site->span_last < now_ns >> site->span_shift) {
        site->marks[site->span_last] = live;
        atomic_signal_fence(memory_order_seq_cst);
        site->span_last++;
    }
}

/* Spans are as long as they are because something happened behind half of MS_SPANS of them. */
uint64_t ms_site_latest_ns(const struct ms_site *site)
{
    uint64_t spans = site->span_last;
    if (site->span_shift == MS_SPAN_SHIFT_NONE)
        return site->last_ns;
    if (site->span_shift > MS_SPAN_SHIFT_START && spans < MS_SPANS / 2)
        spans = MS_SPANS / 2;
    return spans << site->span_shift > site->last_ns ? spans << site->span_shift : site->last_ns;
}

void ms_site_cut_marks(struct ms_site *site, uint64_t now_ns)
{
    if (site->span_shift != ms_span_shift(now_ns)) {
        site->span_shift = MS_SPAN_SHIFT_NONE;
        site->span_last = 0;
    } else if (site->span_last > now_ns >> site->span_shift) {
        site->span_last = (uint8_t)(now_ns >> site->span_shift);
    }
}

/* Of the marks from `first` on: how many steps there are up to the one that is most, the last such, and in
 * how many of them it rose. */
struct fallback {
    uint64_t first, top, most;
    unsigned steps, rises;
};

static struct fallback fallback_of(const struct ms_site *site)
{
    struct fallback fallback = {.first = site->first_ns >> site->span_shift};
    fallback.top = fallback.first;
    for (uint64_t i = fallback.first; i < site->span_last; i++) {
        if (site->marks[i] >= fallback.most) {
            fallback.most = site->marks[i];
            fallback.top = i;
        }
    }
    for (uint64_t i = fallback.first + 1; i <= fallback.top && i < site->span_last; i++) {
        fallback.steps++;
        fallback.rises += site->marks[i] > site->marks[i - 1];
    }
    return fallback;
}

/* A program that fills something once and then empties it does that too, but in less time, with fewer blocks,
 * or before it is nearly done: more than that nobody can tell, so the finding is an inferred one. */
uint64_t ms_site_grew(const struct ms_site *site)
{
    const uint64_t least_ns = UINT64_C(1) << 30, latest = 8, count_min = 100;
    struct fallback fallback = fallback_of(site);
    uint64_t after = site->span_last > fallback.top ? site->span_last - fallback.top - 1 : 0;
    if (site->live_bytes || site->died_bytes || site->free_count < count_min)
        return 0;
    if ((fallback.top - fallback.first) << site->span_shift < least_ns || after * latest > site->span_last)
        return 0;
    return fallback.steps >= STEPS_MIN && 4 * fallback.rises >= 3 * fallback.steps ? fallback.most : 0;
}

/* A site that never shrinks from the first span on is either taken once and kept, or growing; the difference
 * is how many of the later spans it rose in. */
bool ms_site_is_growing(const struct ms_site *site)
{
    uint64_t first = site->first_ns >> site->span_shift, held = site->live_bytes + site->died_bytes, most = 0;
    unsigned steps = 0, rises = 0;
    for (uint64_t i = first; i < site->span_last; i++) {
        most = site->marks[i] > most ? site->marks[i] : most;
        steps += i > first;
        rises += i > first && site->marks[i] > site->marks[i - 1];
    }
    return steps >= STEPS_MIN && 4 * rises >= 3 * steps && held >= most / 4 * 3;
}
