/* joiner.c - a library whose constructor waits for a thread that takes a stack, while the loader's lock is
 * held.
 *
 * What the thread does comes as an address in the environment, as the constructor cannot be given an
 * argument. */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

__attribute__((constructor)) static void wait_for_thread(void)
{
    const char *address = getenv("JOINER_CALLS");
    pthread_t thread;
    if (!address ||
        pthread_create(&thread, NULL, (void *(*)(void *))(uintptr_t)strtoull(address, NULL, 16), NULL) != 0)
        return;
    pthread_join(thread, NULL);
}
