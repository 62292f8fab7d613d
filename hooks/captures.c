/* captures.c - the streams at which captures began and have not ended; see watch.h.
 *
 * A capture spreads over other streams, which capture too and end nothing; and what the driver says of a
 * stream may be an error. So it is counted by what the program called. Owns a list in chunks of the arena,
 * whose rows are used again; one lock (MS_RANK_OBJECT), under which nobody is called. */
#include "hooks/watch.h"

#include <string.h>

#include "base/arena.h"
#include "base/lock.h"

#define CHUNK      64
#define PER_THREAD 2u /* in each thread another stream of the current context */

struct origin {
    struct origin *next;
    uint64_t stream, context;
    uint32_t thread;
};

static struct ms_lock lock = MS_LOCK_INIT(MS_RANK_OBJECT);
static struct origin *origins, *spare;

static bool is_its(const struct origin *origin, uint64_t stream, uint64_t context)
{
    return origin->stream == stream &&
           (stream > PER_THREAD || (origin->context == context && origin->thread == ms_thread_id()));
}

static struct origin **find_locked(uint64_t stream, uint64_t context)
{
    struct origin **link = &origins;

    while (*link && !is_its(*link, stream, context))
        link = &(*link)->next;
    return link;
}

static void drop_locked(struct origin **link)
{
    struct origin *origin = *link;

    *link = origin->next;
    origin->next = spare;
    spare = origin;
}

static struct origin *take_locked(void)
{
    struct origin *origin;

    if (!spare) {
        struct origin *chunk = ms_arena_alloc(CHUNK * sizeof(*chunk));
        for (unsigned i = 0; chunk && i < CHUNK; i++) {
            chunk[i].next = spare;
            spare = &chunk[i];
        }
    }
    origin = spare;
    if (origin)
        spare = origin->next;
    return origin;
}

bool ms_capture_is_open(uint64_t stream, uint64_t context)
{
    bool open;

    ms_lock(&lock);
    open = *find_locked(stream, context) != NULL;
    ms_unlock(&lock);
    return open;
}

void ms_capture_set(uint64_t stream, uint64_t context, bool open)
{
    struct origin **link, *origin = NULL;

    ms_lock(&lock);
    link = find_locked(stream, context);
    if (*link && !open)
        drop_locked(link);
    else if (!*link && open && (origin = take_locked()) != NULL) {
        *origin =
            (struct origin){.next = origins, .stream = stream, .context = context, .thread = ms_thread_id()};
        origins = origin;
    }
    ms_unlock(&lock);
}

unsigned ms_captures_context_ended(uint64_t context)
{
    unsigned count = 0;

    ms_lock(&lock);
    for (struct origin **link = &origins; *link;) {
        if ((*link)->context != context) {
            link = &(*link)->next;
            continue;
        }
        drop_locked(link);
        count++;
    }
    ms_unlock(&lock);
    return count;
}

void ms_captures_reset(void)
{
    ms_lock_reset(&lock);
    origins = spare = NULL;
}
