/* test_stack.c - the tree gives the same id to the same stack, from any thread, and back again. */
#include "config.h"

#include <pthread.h>

#include "base/arena.h"
#include "base/store/store.h"
#include "unwind/stack.h"
#include "tests/tap.h"

enum { THREADS = 8, STACKS = 20000, DEPTH = 12 };

static ms_stack_id ids[THREADS][STACKS];

/* Stack number i: its outer frames are few and shared, its inner ones many. */
static unsigned make_stack(unsigned i, uintptr_t *frames)
{
    unsigned depth = 2 + i % (DEPTH - 1);
    for (unsigned level = 0; level < depth; level++) {
        unsigned height = depth - level; /* 1 is the outermost */
        frames[level] =
            0x1000 + height * 0x100000 + (height < 4 ? i % (height * 3) : i % (1u << height)) * 16;
    }
    return depth;
}

static bool reads_back(ms_stack_id id, const uintptr_t *frames, unsigned count)
{
    ms_stack_id parent;
    uintptr_t frame;
    uint32_t generation;
    for (unsigned i = 0; i < count; i++) {
        if (ms_stack_node(id, &parent, &frame, &generation) != 0 || frame != frames[i] || generation != 0 ||
            parent >= id)
            return false;
        id = parent;
    }
    return id == 0;
}

static void *intern_all(void *arg)
{
    ms_stack_id *mine = arg;
    uintptr_t frames[DEPTH];
    unsigned start = (unsigned)(mine - ids[0]) / THREADS; /* each thread begins elsewhere */
    for (unsigned j = 0; j < STACKS; j++) {
        unsigned i = (start + j) % STACKS;
        unsigned depth = make_stack(i, frames);
        mine[i] = ms_stack_intern(frames, depth);
    }
    return NULL;
}

static void test_threads(void)
{
    pthread_t threads[THREADS];
    int different = 0, wrong = 0;
    uintptr_t frames[DEPTH];
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, intern_all, ids[i]);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (unsigned i = 0; i < STACKS; i++) {
        for (int t = 1; t < THREADS; t++)
            different += ids[t][i] != ids[0][i];
        unsigned depth = make_stack(i, frames);
        wrong += !reads_back(ids[0][i], frames, depth);
    }
    is_int(different, 0, "all threads get the same id for the same stack");
    is_int(wrong, 0, "every id reads back as its stack");
    ok(ms_stack_count() < 2 * STACKS, "shared outer frames are stored once (%u nodes)", ms_stack_count());
    is_u64(ms_stack_dropped(), 0, "none was dropped");
}

static void test_limits(void)
{
    ms_stack_id parent;
    uintptr_t frame;
    uint32_t generation;
    uint32_t count = ms_stack_count();
    ok(ms_stack_node(0, &parent, &frame, &generation) != 0, "0 is no node");
    ok(ms_stack_node(count + 1, &parent, &frame, &generation) != 0, "nor is what was not given out");
    is_u64(ms_stack_intern(NULL, 0), 0, "a stack of no frames is none");
    bool dropped = false;
    for (uintptr_t i = 0; i < 1 << 21 && !dropped; i++) {
        frame = 0x40000000 + i;
        dropped = ms_stack_intern(&frame, 1) == 0;
    }
    ok(dropped && ms_stack_dropped() == 1, "a full table drops, and counts it");
    frame = 0x40000000;
    ok(ms_stack_intern(&frame, 1) != 0, "and still knows what it has");
    ms_store_reset();
    ms_stack_reset();
    is_u64(ms_stack_count(), 0, "a child starts empty");
    ok(ms_stack_intern(&frame, 1) == 1, "and counts from one");
}

int main(void)
{
    plan(11);
    test_threads();
    test_limits();
    return done();
}
