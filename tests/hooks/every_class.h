/*
 * every_class.h - what every_class.c and its twin share: a book of every allocation, kept by the program
 * itself.
 *
 * Built with the vendor's headers where a toolkit is present, else with our own declarations; either way the
 * names below are the exported ones. One lock orders the book, and it is held across each call, so that the
 * peak which the program computes is the peak which memshim must see.
 */
#ifndef MS_TESTS_HOOKS_EVERY_CLASS_H
#define MS_TESTS_HOOKS_EVERY_CLASS_H

#include <pthread.h>
#include <stdint.h>

#ifdef WITH_VENDOR_HEADERS
#include <cuda.h>
#include <cuda_runtime_api.h>
#else
#include "vendor/abi/cuda_driver_fn.h"
#include "vendor/abi/cuda_runtime_fn.h"
#endif

enum counted { HOST, DEVICE }; /* whether a block takes the device's own memory */

struct entry {
    const char *api;
    const char *file;
    const char *function;
    int line;
    int device;
    int thread;
    int live;
    enum counted counted;
    uint64_t bytes;
    uint64_t stream;
};

extern pthread_mutex_t book_lock;

/** Write down a call that succeeded; a failed one ends the program. Returns the entry's number. */
int book_take(enum counted counted, const char *api, int status, uint64_t bytes, uint64_t stream,
              const char *file, const char *function, int line);
void book_drop(int entry, int status, const char *what);

/* The call and everything said about it stand on one line, which is the line that the report must name. */
#define TAKE(counted, api, bytes, stream, call)                                                              \
    __extension__({                                                                                          \
        pthread_mutex_lock(&book_lock);                                                                      \
        int take_status = (int)(call);                                                                       \
        int take_entry = book_take(counted, api, take_status, bytes, (uint64_t)(uintptr_t)(stream),          \
                                   __FILE__, __func__, __LINE__);                                            \
        pthread_mutex_unlock(&book_lock);                                                                    \
        take_entry;                                                                                          \
    })
#define DROP(entry, call)                                                                                    \
    do {                                                                                                     \
        pthread_mutex_lock(&book_lock);                                                                      \
        book_drop(entry, (int)(call), #call);                                                                \
        pthread_mutex_unlock(&book_lock);                                                                    \
    } while (0)
/* A call that allocates nothing. */
#define MUST(call) must((int)(call), #call, __LINE__)
void must(int status, const char *what, int line);

/** The twin, compiled with a default stream per thread. */
void per_thread_twin(cudaMemPool_t pool);

#endif
