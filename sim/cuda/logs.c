/*
 * The driver's log of errors: who wants to hear of it is remembered, and there is nothing in it, as the
 * simulator writes none. So nobody is called, the end of the log is its beginning, and a dump is empty. One
 * lock, for the list; an entry is freed with its registration.
 *
 * What they answer: docs.nvidia.com/cuda/cuda-driver-api, "Error Log Management Functions"; statuses as
 * recorded.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "sim/cuda/sim.h"

struct CUlogsCallbackEntry_st {
    struct CUlogsCallbackEntry_st *next;
    CUlogsCallback function;
    void *data;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct CUlogsCallbackEntry_st *entries;

SIM_API(cuLogsRegisterCallback)(CUlogsCallback function, void *data, CUlogsCallbackHandle *handle_p)
{
    SIM_ENTER(cuLogsRegisterCallback);
    struct CUlogsCallbackEntry_st *entry;

    if (!function)
        return CUDA_ERROR_INVALID_VALUE;
    entry = malloc(sizeof *entry);
    if (!entry)
        return CUDA_ERROR_OUT_OF_MEMORY;
    entry->function = function;
    entry->data = data;
    pthread_mutex_lock(&lock);
    entry->next = entries;
    entries = entry;
    pthread_mutex_unlock(&lock);
    if (handle_p)
        *handle_p = entry;
    return CUDA_SUCCESS;
}

SIM_API(cuLogsUnregisterCallback)(CUlogsCallbackHandle handle)
{
    SIM_ENTER(cuLogsUnregisterCallback);
    struct CUlogsCallbackEntry_st **link = &entries, *found;

    pthread_mutex_lock(&lock);
    while (*link && *link != handle)
        link = &(*link)->next;
    found = *link;
    if (found)
        *link = found->next;
    pthread_mutex_unlock(&lock);
    free(found);
    return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

SIM_API(cuLogsCurrent)(CUlogIterator *iterator_p, unsigned flags)
{
    SIM_ENTER(cuLogsCurrent);
    if (!iterator_p || flags)
        return CUDA_ERROR_INVALID_VALUE;
    *iterator_p = 0;
    return CUDA_SUCCESS;
}

SIM_API(cuLogsDumpToFile)(CUlogIterator *iterator, const char *path, unsigned flags)
{
    SIM_ENTER(cuLogsDumpToFile);
    (void)iterator; /* the end is where it is */
    int file = path && !flags ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666) : -1;

    if (file < 0)
        return CUDA_ERROR_INVALID_VALUE;
    close(file);
    return CUDA_SUCCESS;
}

SIM_API(cuLogsDumpToMemory)(CUlogIterator *iterator, char *buffer, size_t *bytes_p, unsigned flags)
{
    SIM_ENTER(cuLogsDumpToMemory);
    (void)iterator;
    if (!buffer || !bytes_p || flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (*bytes_p)
        *buffer = '\0';
    *bytes_p = 0;
    return CUDA_SUCCESS;
}
