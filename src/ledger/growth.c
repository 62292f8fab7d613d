/* growth.c - what a site held over the run, and whether that grows.
 *
 * Floor 2. The run is divided into at most MS_SPANS equal spans, which double in length as it goes on; a
 * site's mark is what it held at the end of a span. Marks are brought up to date when the site changes and
 * when it is reported, for in between it holds what it held. Under the lock of the site's lane. */
#include "config.h"

#include "ledger/internal.h"

enum { STEPS_MIN = 5 };

/* Two spans become one, until `now_ns` is in one of them. A mark is of the end of its span, and the last span
 * has not ended. */
static void widen_spans(struct ms_site *site, uint64_t now_ns)
{
    while (now_ns >> site->span_shift >= MS_SPANS) {
        for (unsigned i = 0; i < site->span_last / 2; i++)
            site->marks[i] = site->marks[2 * i + 1];
        site->span_last /= 2;
        site->span_shift++;
    }
}

MS_NOINLINE void ms_site_mark_slowly(struct ms_site *site, uint64_t now_ns, uint64_t live)
{
    widen_spans(site, now_ns);
    while (site->span_last < now_ns >> site->span_shift)
        site->marks[site->span_last++] = live;
}

/* What never shrinks from the first span on is either taken once and kept, or growing; the difference is how
 * many of the later spans it rose in. */
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
