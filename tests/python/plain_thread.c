/* plain_thread.c - for sites.py: a function that allocates, called from a thread of its own that runs no
 * Python, as the backward pass of a framework is. */
#include <pthread.h>
#include <stddef.h>
#include <sys/prctl.h>

extern int cudaMalloc(void **pointer, size_t bytes);
int allocate_in_thread(size_t bytes);

static void *work(void *bytes)
{
    void *pointer;

    prctl(PR_SET_NAME, "backward_0", 0, 0, 0);
    return cudaMalloc(&pointer, *(size_t *)bytes) == 0 ? bytes : NULL;
}

int allocate_in_thread(size_t bytes)
{
    pthread_t thread;
    void *result = NULL;

    if (pthread_create(&thread, NULL, work, &bytes) != 0)
        return -1;
    pthread_join(thread, &result);
    return result ? 0 : -1;
}
