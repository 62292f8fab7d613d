/*
 * Handles that can be told from garbage: every object handed out is in one hash set, so that a handle that
 * was destroyed or never was answers "invalid handle" instead of being followed. Objects are counted; the set
 * holds one reference. One lock, a leaf: nothing else is taken under it, except by dispose functions, which
 * run without it.
 */
#include <pthread.h>
#include <stdlib.h>

#include "sim/cuda/sim.h"

#define BUCKETS 4096

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sim_object *buckets[BUCKETS];

static struct sim_object **bucket_of(const void *handle)
{
    uint64_t mixed = (uint64_t)(uintptr_t)handle * 0x9E3779B97F4A7C15U;

    return &buckets[mixed >> 52];
}

/** Allocates a zeroed object with one reference. It becomes a valid handle with sim_object_publish. */
void *sim_object_new(size_t bytes, enum sim_kind kind, void (*dispose)(void *object))
{
    struct sim_object *object = calloc(1, bytes);

    if (!object)
        return NULL;
    object->kind = kind;
    object->dispose = dispose;
    atomic_init(&object->refs, 1);
    return object;
}

/** Makes the object a valid handle; the set takes over the caller's reference. */
void sim_object_publish(void *object)
{
    struct sim_object **bucket = bucket_of(object);

    pthread_mutex_lock(&lock);
    ((struct sim_object *)object)->bucket_next = *bucket;
    *bucket = object;
    pthread_mutex_unlock(&lock);
}

/** The object behind a handle with one more reference, or NULL if the handle is not a live one of that
 * kind. */
void *sim_object_get(const void *handle, enum sim_kind kind)
{
    struct sim_object *object;

    pthread_mutex_lock(&lock);
    for (object = *bucket_of(handle); object && object != handle; object = object->bucket_next)
        ;
    if (object && object->kind != kind)
        object = NULL;
    if (object)
        atomic_fetch_add(&object->refs, 1);
    pthread_mutex_unlock(&lock);
    return object;
}

void *sim_object_ref(void *object)
{
    atomic_fetch_add(&((struct sim_object *)object)->refs, 1);
    return object;
}

void sim_object_put(void *object)
{
    struct sim_object *counted = object;

    if (atomic_fetch_sub(&counted->refs, 1) != 1)
        return;
    if (counted->dispose)
        counted->dispose(object);
    free(object);
}

/** Ends the handle's validity. True for the one caller who did it, and who then owes a sim_object_put. */
bool sim_object_retire(void *object)
{
    struct sim_object **link;

    pthread_mutex_lock(&lock);
    for (link = bucket_of(object); *link && *link != object; link = &(*link)->bucket_next)
        ;
    bool found = *link != NULL;
    if (found)
        *link = (*link)->bucket_next;
    pthread_mutex_unlock(&lock);
    return found;
}

unsigned long long sim_next_id(void)
{
    static atomic_ullong last;

    return 1 + atomic_fetch_add(&last, 1);
}
