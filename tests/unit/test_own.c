/* test_own.c - what threads have for themselves: zeros for each, never another living thread's, and no more
 * records than threads that lived at once, within a few. */
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread/thread_own.h"
#include "tests/tap.h"

enum { AT_ONCE = 64, IN_TURN = 2000, SEEN_MAX = 4096 };

static const void *seen[SEEN_MAX];
static unsigned seen_count;
static pthread_barrier_t barrier;

static bool are_zeros(const void *place, size_t bytes)
{
    const unsigned char *byte = place;
    for (size_t i = 0; i < bytes; i++)
        if (byte[i])
            return false;
    return true;
}

/* The table of streams is zeroed as the record is, since the next thread gets both. */
static bool is_zeroed(const struct ms_own *own)
{
    return are_zeros(own, offsetof(struct ms_own, streams)) &&
           (!own->streams || are_zeros(own->streams, MS_OWN_STREAMS_BYTES));
}

static void *keep(void *arg)
{
    struct ms_own *own;
    if (ms_thread.own != &ms_own_none)
        return NULL;
    own = ms_own_mine();
    if (!own || own != ms_thread.own || own != ms_own_mine() || !is_zeroed(own) ||
        own != ms_own_with_streams() || !own->streams || !is_zeroed(own))
        return NULL;
    memset(own->streams, 0xff, MS_OWN_STREAMS_BYTES);
    memset(own, 0xff, offsetof(struct ms_own, streams));
    if (arg)
        pthread_barrier_wait(&barrier);
    return own;
}

static void note(const void *own)
{
    for (unsigned i = 0; i < seen_count; i++)
        if (seen[i] == own)
            return;
    if (seen_count < SEEN_MAX)
        seen[seen_count++] = own;
}

int main(void)
{
    pthread_t threads[AT_ONCE];
    unsigned good = 0;
    void *own;
    plan(5);
    ok(is_zeroed(&ms_own_none), "a thread begins with zeros that nobody writes to");
    pthread_barrier_init(&barrier, NULL, AT_ONCE);
    for (unsigned i = 0; i < AT_ONCE; i++)
        if (pthread_create(&threads[i], NULL, keep, &barrier) != 0)
            bail("no thread");
    for (unsigned i = 0; i < AT_ONCE; i++) {
        pthread_join(threads[i], &own);
        good += own != NULL;
        note(own);
    }
    ok(good == AT_ONCE && seen_count == AT_ONCE, "threads that live at once have one each");
    good = 0;
    for (unsigned i = 0; i < IN_TURN; i++) {
        if (pthread_create(&threads[0], NULL, keep, NULL) != 0)
            bail("no thread");
        pthread_join(threads[0], &own);
        good += own != NULL;
        note(own);
    }
    ok(good == IN_TURN, "each of those that come one after the other has zeros");
    const char *watched = getenv("TEST_SANITIZE");
    if (watched && strstr(watched, "thread"))
        skip(1, "under ThreadSanitizer no record comes back (thread_own.c)");
    else
        ok(seen_count <= AT_ONCE + 8, "they have those of threads that ended: %u in all", seen_count);
    own = ms_own_mine();
    ms_own_reset();
    ok(ms_thread.own == &ms_own_none && ms_own_mine() != own, "a fork child keeps nothing of its parent's");
    return done();
}
