/*
 * The registrations of compiled code: images, kernels and device variables, under the addresses of their host
 * stubs. Registration runs in constructors and only takes notes; an image goes to the driver when something
 * of it is first used. Owns a hash table of entries under one mutex, held while an image is loaded so that it
 * is loaded once.
 */
#include <pthread.h>
#include <stdlib.h>

#include "sim/cudart/runtime.h"

struct image {
    const void *wrapper; /* what the compiler emitted; the driver reads it */
    CUlibrary library;
    bool loaded;
};

enum kind { KERNEL, VARIABLE, MANAGED, HANDLE };

struct entry {
    const void *key; /* host stub, host variable, or the handle itself */
    enum kind kind;
    struct image *image; /* NULL for a HANDLE */
    const char *name;
    size_t bytes;
    CUkernel kernel;
    struct entry *next;
};

enum { BUCKETS = 256 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct entry *buckets[BUCKETS];

static struct entry **bucket_of(const void *key)
{
    uintptr_t bits = (uintptr_t)key;

    return &buckets[((bits >> 4) ^ (bits >> 12)) % BUCKETS];
}

static struct entry *find(const void *key)
{
    struct entry *entry = *bucket_of(key);

    while (entry && entry->key != key)
        entry = entry->next;
    return entry;
}

/* Out of memory in a constructor: the entry is missing, and using it says so. */
static struct entry *add(const void *key, enum kind kind)
{
    struct entry *entry = calloc(1, sizeof(*entry));
    struct entry **bucket = bucket_of(key);

    if (!entry)
        return NULL;
    entry->key = key;
    entry->kind = kind;
    entry->next = *bucket;
    *bucket = entry;
    return entry;
}

static void note(void **handle, const void *key, enum kind kind, const char *name, size_t bytes)
{
    struct entry *entry;

    pthread_mutex_lock(&lock);
    entry = add(key, kind);
    if (entry) {
        entry->image = (struct image *)(void *)handle;
        entry->name = name;
        entry->bytes = bytes;
    }
    pthread_mutex_unlock(&lock);
}

static cudaError_t load(struct image *image)
{
    cudaError_t rc;

    if (!image)
        return cudaErrorInvalidKernelImage;
    if (image->loaded)
        return cudaSuccess;
    rc = SIM_DRV(cuLibraryLoadData, &image->library, image->wrapper, NULL, NULL, 0, NULL, NULL, 0);
    image->loaded = rc == cudaSuccess;
    return rc;
}

static cudaError_t resolve_kernel(const void *func, CUkernel *kernel_p)
{
    struct entry *entry = find(func);
    cudaError_t rc = cudaSuccess;

    if (!entry || (entry->kind != KERNEL && entry->kind != HANDLE))
        return cudaErrorInvalidDeviceFunction;
    if (!entry->kernel) {
        rc = load(entry->image);
        if (rc == cudaSuccess)
            rc = SIM_DRV(cuLibraryGetKernel, &entry->kernel, entry->image->library, entry->name);
    }
    *kernel_p = entry->kernel;
    return rc == cudaErrorSymbolNotFound ? cudaErrorInvalidDeviceFunction : rc;
}

cudaError_t sim_kernel(const void *func, CUkernel *kernel_p)
{
    cudaError_t rc;

    pthread_mutex_lock(&lock);
    rc = resolve_kernel(func, kernel_p);
    pthread_mutex_unlock(&lock);
    return rc;
}

const void *sim_kernel_stub(CUkernel kernel)
{
    const void *stub = kernel;

    pthread_mutex_lock(&lock);
    for (int i = 0; i < BUCKETS; i++)
        for (const struct entry *entry = buckets[i]; entry; entry = entry->next)
            if (entry->kind == KERNEL && entry->kernel == kernel)
                stub = entry->key;
    pthread_mutex_unlock(&lock);
    return stub;
}

void sim_kernel_publish(CUkernel kernel)
{
    struct entry *entry;

    pthread_mutex_lock(&lock);
    if (!find(kernel)) {
        entry = add(kernel, HANDLE);
        if (entry)
            entry->kernel = kernel;
    }
    pthread_mutex_unlock(&lock);
}

static cudaError_t resolve_symbol(const void *symbol, CUdeviceptr *address_p, size_t *bytes_p)
{
    struct entry *entry = find(symbol);
    cudaError_t rc;

    if (!entry || (entry->kind != VARIABLE && entry->kind != MANAGED))
        return cudaErrorInvalidSymbol;
    rc = load(entry->image);
    if (rc != cudaSuccess)
        return rc;
    /* A variable has an address in each context: nothing to keep. */
    if (entry->kind == MANAGED)
        rc = SIM_DRV(cuLibraryGetManaged, address_p, bytes_p, entry->image->library, entry->name);
    else
        rc = SIM_DRV(cuLibraryGetGlobal, address_p, bytes_p, entry->image->library, entry->name);
    if (rc == cudaSuccess && entry->bytes)
        *bytes_p = entry->bytes;
    return rc == cudaErrorSymbolNotFound ? cudaErrorInvalidSymbol : rc;
}

cudaError_t sim_symbol(const void *symbol, CUdeviceptr *address_p, size_t *bytes_p)
{
    cudaError_t rc;

    pthread_mutex_lock(&lock);
    rc = resolve_symbol(symbol, address_p, bytes_p);
    pthread_mutex_unlock(&lock);
    return rc;
}

SIM_API cudaError_t cudaGetSymbolAddress(void **pointer, const void *symbol)
{
    CUdeviceptr address;
    size_t bytes;

    SIM_TRY(sim_context());
    SIM_CHECK(pointer, cudaErrorInvalidValue);
    SIM_TRY(sim_symbol(symbol, &address, &bytes));
    *pointer = sim_pointer(address);
    return cudaSuccess;
}

SIM_API cudaError_t cudaGetSymbolSize(size_t *bytes, const void *symbol)
{
    CUdeviceptr address;

    SIM_TRY(sim_context());
    SIM_CHECK(bytes, cudaErrorInvalidValue);
    SIM_TRY(sim_symbol(symbol, &address, bytes));
    return cudaSuccess;
}

SIM_API void **__cudaRegisterFatBinary(void *wrapper)
{
    struct image *image = calloc(1, sizeof(*image));

    if (image)
        image->wrapper = wrapper;
    return (void **)(void *)image;
}

SIM_API void __cudaRegisterFatBinaryEnd(void **handle)
{
    (void)handle;
}

SIM_API void __cudaUnregisterFatBinary(void **handle)
{
    struct image *image = (struct image *)(void *)handle;
    struct entry **link, *entry;

    if (!image)
        return;
    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < BUCKETS; i++) {
        link = &buckets[i];
        while ((entry = *link) != NULL) {
            if (entry->image == image) {
                *link = entry->next;
                free(entry);
            } else {
                link = &entry->next;
            }
        }
    }
    pthread_mutex_unlock(&lock);
    if (image->loaded)
        (void)SIM_DRV(cuLibraryUnload, image->library);
    free(image);
}

SIM_API void __cudaRegisterFunction(void **handle, const char *stub, char *device_stub, const char *name,
                                    int thread_limit, struct uint3 *thread_id, struct uint3 *block_id,
                                    struct dim3 *block_dim, struct dim3 *grid_dim, int *warp_size)
{
    (void)device_stub;
    (void)thread_limit;
    (void)thread_id;
    (void)block_id;
    (void)block_dim;
    (void)grid_dim;
    (void)warp_size;
    note(handle, stub, KERNEL, name, 0);
}

SIM_API void __cudaRegisterVar(void **handle, char *variable, char *device_address, const char *name,
                               int external, size_t bytes, int constant, int global)
{
    (void)device_address;
    (void)external;
    (void)constant;
    (void)global;
    note(handle, variable, VARIABLE, name, bytes);
}

SIM_API void __cudaRegisterManagedVar(void **handle, void **variable_p, char *device_address,
                                      const char *name, int external, size_t bytes, int constant, int global)
{
    (void)device_address;
    (void)external;
    (void)constant;
    (void)global;
    note(handle, variable_p, MANAGED, name, bytes);
}

SIM_API void __cudaRegisterHostVar(void **handle, const char *name, char *variable, size_t bytes)
{
    (void)handle;
    (void)name;
    (void)variable;
    (void)bytes;
}

/* The host reads a managed variable through a pointer of its own: fill it in before the first such read. */
static void place_managed(struct image *image)
{
    CUdeviceptr address;
    size_t bytes;

    for (unsigned i = 0; i < BUCKETS; i++) {
        for (struct entry *entry = buckets[i]; entry; entry = entry->next) {
            if (entry->image != image || entry->kind != MANAGED)
                continue;
            if (resolve_symbol(entry->key, &address, &bytes) == cudaSuccess)
                *(void **)(uintptr_t)entry->key = sim_pointer(address);
        }
    }
}

SIM_API char __cudaInitModule(void **handle)
{
    if (!handle || sim_context() != cudaSuccess)
        return 0;
    pthread_mutex_lock(&lock);
    place_managed((struct image *)(void *)handle);
    pthread_mutex_unlock(&lock);
    return 1;
}
