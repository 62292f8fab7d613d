/*
 * hold.c: work that holds a stream until the host lets it go, and what it is for: whether a call waits for
 * that work.
 *
 * "Waits" is found by order, not by time: a thread raises a flag and then lets the work go; a call that has
 * come back while the flag was down did not wait. That the flag was up proves nothing by itself, as the
 * caller may have been slow: then it is asked again with more patience.
 */
#include <pthread.h>

#include "kit.h"

#define LIMIT_NS 30000000000ULL
#define PROBE_MS 50
#define WORDS    1024

static enum kit_hold_kind kind;
static volatile uint32_t *words;
static CUdeviceptr words_address;
static unsigned words_used;

/* A word that device and host see, each one used once. */
static CUresult take_word(struct kit_hold *hold)
{
    if (!words) {
        void *memory;
        CUresult status = cuMemHostAlloc(&memory, WORDS * sizeof *words,
                                         CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_PORTABLE);
        if (status == CUDA_SUCCESS)
            status = cuMemHostGetDevicePointer_v2(&words_address, memory, 0);
        if (status != CUDA_SUCCESS)
            return status;
        words = memory;
    }
    if (words_used == WORDS)
        return CUDA_ERROR_OUT_OF_MEMORY;
    hold->word = &words[words_used];
    hold->address = words_address + words_used * sizeof *words;
    *hold->word = 0;
    words_used++;
    atomic_store(&hold->released, false);
    return CUDA_SUCCESS;
}

static CUresult hold_by_kernel(struct kit_hold *hold, CUstream stream, uint64_t limit_ns)
{
    CUfunction kernel = kit_kernel("memsim_hold");
    uint32_t value = 1;
    void *parameters[] = {&hold->address, &value, &limit_ns};

    return kernel ? cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL)
                  : CUDA_ERROR_NOT_FOUND;
}

bool kit_over(CUstream stream, unsigned ms)
{
    uint64_t until = kit_now_ns() + ms * 1000000ULL;

    do {
        if (cuStreamQuery(stream) != CUDA_ERROR_NOT_READY)
            return true;
        kit_pause_ms(1);
    } while (kit_now_ns() < until);
    return false;
}

/* Whether a kernel of ours really runs until it is released, and then ends. */
static bool kernels_hold(void)
{
    struct kit_hold hold;
    CUstream stream;

    if (take_word(&hold) != CUDA_SUCCESS || cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS)
        return false;
    bool held = hold_by_kernel(&hold, stream, LIMIT_NS) == CUDA_SUCCESS && !kit_over(stream, PROBE_MS);
    kit_release(&hold);
    held = held && cuStreamSynchronize(stream) == CUDA_SUCCESS;
    cuStreamDestroy_v2(stream);
    return held;
}

static bool values_hold(void)
{
    struct kit_hold hold;
    CUstream stream;

    if (take_word(&hold) != CUDA_SUCCESS || cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS)
        return false;
    bool held = cuStreamWaitValue32_v2(stream, hold.address, 1, CU_STREAM_WAIT_VALUE_EQ) == CUDA_SUCCESS &&
                !kit_over(stream, PROBE_MS);
    kit_release(&hold);
    held = held && cuStreamSynchronize(stream) == CUDA_SUCCESS;
    cuStreamDestroy_v2(stream);
    return held;
}

enum kit_hold_kind kit_hold_kind(void)
{
    if (!kind)
        kind = kernels_hold() ? KIT_HOLD_KERNEL : values_hold() ? KIT_HOLD_VALUE : KIT_HOLD_NONE;
    return kind;
}

void kit_hold_use(enum kit_hold_kind other)
{
    kind = other;
}

CUresult kit_hold(struct kit_hold *hold, CUstream stream)
{
    if (kit_hold_kind() == KIT_HOLD_NONE)
        return CUDA_ERROR_NOT_SUPPORTED;
    CUresult status = take_word(hold);
    if (status != CUDA_SUCCESS)
        return status;
    if (kind == KIT_HOLD_KERNEL)
        return hold_by_kernel(hold, stream, LIMIT_NS);
    return cuStreamWaitValue32_v2(stream, hold->address, 1, CU_STREAM_WAIT_VALUE_EQ);
}

void kit_release(struct kit_hold *hold)
{
    atomic_store(&hold->released, true);
    __atomic_store_n(hold->word, 1, __ATOMIC_RELEASE);
}

struct release {
    struct kit_hold *hold;
    unsigned ms;
};

static void *release_later(void *data)
{
    const struct release *release = data;

    kit_pause_ms(release->ms);
    kit_release(release->hold);
    return NULL;
}

const char *kit_waits(CUstream stream, const struct kit_question *question)
{
    static const unsigned patience_ms[] = {60, 400};

    for (size_t i = 0; i < KIT_COUNT(patience_ms); i++) {
        struct kit_hold hold;
        struct release release = {&hold, patience_ms[i]};
        pthread_t releaser;

        if (question->prepare)
            question->prepare(question->data);
        if (kit_hold(&hold, stream) != CUDA_SUCCESS)
            return "- nothing can hold a stream here";
        if (pthread_create(&releaser, NULL, release_later, &release) != 0) {
            kit_release(&hold);
            return "- no thread could be started";
        }
        question->call(question->data);
        bool released = atomic_load(&hold.released);
        pthread_join(releaser, NULL);
        if (question->finish)
            question->finish(question->data);
        cuStreamSynchronize(stream);
        if (!released)
            return "no";
    }
    return "yes";
}
