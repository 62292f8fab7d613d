/*
 * Address ranges in order: a treap of disjoint ranges, used for blocks, reservations and registered host
 * memory. Also the lock over all that is mapped: whoever reads device memory holds it for reading, piece by
 * piece, and whoever changes what is mapped holds it for writing. Writers go first, or a busy stream would
 * keep them out for ever.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <time.h>

#include "sim/cuda/sim.h"

/* Whoever writes keeps the gate closed; whoever reads passes it and is counted. Held for a moment, but for
 * copies. */
static pthread_mutex_t gate = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;
static atomic_uint readers;
static atomic_bool writing;

void sim_memory_read_lock(void)
{
    pthread_mutex_lock(&gate);
    atomic_fetch_add_explicit(&readers, 1, memory_order_acquire);
    pthread_mutex_unlock(&gate);
}

void sim_memory_write_lock(void)
{
    int saved = errno;

    pthread_mutex_lock(&gate);
    for (unsigned turn = 0; atomic_load_explicit(&readers, memory_order_acquire); turn++) {
        if (turn > 200)
            nanosleep(&(struct timespec){0, 20000}, NULL);
        else if (turn > 100)
            sched_yield();
    }
    atomic_store_explicit(&writing, true, memory_order_relaxed);
    errno = saved;
}

/* Nobody reads while somebody writes, so the flag is the caller's own. */
void sim_memory_unlock(void)
{
    if (atomic_load_explicit(&writing, memory_order_relaxed)) {
        atomic_store_explicit(&writing, false, memory_order_relaxed);
        pthread_mutex_unlock(&gate);
    } else {
        atomic_fetch_sub_explicit(&readers, 1, memory_order_release);
    }
}

static void rotate_left(struct sim_range **link)
{
    struct sim_range *down = *link, *up = down->right;

    down->right = up->left;
    up->left = down;
    *link = up;
}

static void rotate_right(struct sim_range **link)
{
    struct sim_range *down = *link, *up = down->left;

    down->left = up->right;
    up->right = down;
    *link = up;
}

static void insert_below(struct sim_range **link, struct sim_range *range)
{
    if (!*link) {
        *link = range;
    } else if (range->start < (*link)->start) {
        insert_below(&(*link)->left, range);
        if ((*link)->left->weight > (*link)->weight)
            rotate_right(link);
    } else {
        insert_below(&(*link)->right, range);
        if ((*link)->right->weight > (*link)->weight)
            rotate_left(link);
    }
}

/** Adds a range that must not meet another one; false if it does. The caller holds the lock for writing. */
bool sim_range_insert(struct sim_range **root, struct sim_range *range)
{
    struct sim_range *above = sim_range_above(*root, range->start);
    uint64_t mixed = (uint64_t)(range->start >> 9) * 0x9E3779B97F4A7C15U;

    if (sim_range_find(*root, range->start) || (above && above->start < range->start + range->bytes))
        return false;
    range->left = range->right = NULL;
    range->weight = (uint32_t)(mixed >> 32);
    insert_below(root, range);
    return true;
}

/** Takes out a range that is in the tree. The caller holds the lock for writing. */
void sim_range_remove(struct sim_range **root, struct sim_range *range)
{
    struct sim_range **link = root;

    while (*link != range)
        link = range->start < (*link)->start ? &(*link)->left : &(*link)->right;
    while (range->left && range->right) {
        if (range->left->weight > range->right->weight) {
            rotate_right(link);
            link = &(*link)->right;
        } else {
            rotate_left(link);
            link = &(*link)->left;
        }
    }
    *link = range->left ? range->left : range->right;
}

/** The range that contains the address, or NULL. */
struct sim_range *sim_range_find(struct sim_range *root, uintptr_t address)
{
    while (root) {
        if (address < root->start)
            root = root->left;
        else if (address - root->start < root->bytes)
            return root;
        else
            root = root->right;
    }
    return NULL;
}

/** The first range that starts at or after the address, or NULL. */
struct sim_range *sim_range_above(struct sim_range *root, uintptr_t address)
{
    struct sim_range *best = NULL;

    while (root) {
        if (root->start >= address) {
            best = root;
            root = root->left;
        } else {
            root = root->right;
        }
    }
    return best;
}
