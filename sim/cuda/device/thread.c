/*
 * The driver's state of each host thread: the stack of contexts, its own default streams, its capture mode.
 * One pointer of thread-local storage, so that the library can be opened late; freed when the thread ends.
 */
#include <pthread.h>
#include <stdlib.h>

#include "sim/cuda/sim.h"

static __thread struct sim_thread *own;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;

static void drop_thread(void *data)
{
    struct sim_thread *thread = data;

    own = NULL;
    if (atomic_load(&sim_initialized) < 0) /* a child made by fork: the locks may be held by nobody */
        return;
    while (thread->depth)
        if (thread->stack[--thread->depth])
            sim_object_put(thread->stack[thread->depth]);
    for (struct sim_thread_queue *entry = thread->queues, *next; entry; entry = next) {
        next = entry->next;
        sim_capture_forget(entry->queue);
        sim_queue_close(entry->queue);
        sim_queue_put(entry->queue);
        free(entry);
    }
    free(thread);
}

static void make_key(void)
{
    pthread_key_create(&key, drop_thread);
}

struct sim_thread *sim_thread(void)
{
    if (__builtin_expect(!own, 0)) {
        pthread_once(&once, make_key);
        struct sim_thread *thread = calloc(1, sizeof *thread);
        if (thread)
            thread->id = sim_next_id();
        if (thread && pthread_setspecific(key, thread)) {
            free(thread);
            thread = NULL;
        }
        own = thread;
    }
    return own;
}
