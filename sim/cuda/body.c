/*
 * The few kernels that do something. The simulator runs no device code; a kernel of one of these names, in
 * whatever image, is taken to be what docs/internals/simulator.md says it is, so that one program shows the
 * same on it and on hardware. They touch memory as a kernel does: what the device may not reach ends the
 * context's work with an error that sticks. No lock is held while one waits; no allocation.
 */
#include <string.h>

#include "sim/cuda/code/code.h"
#include "sim/cuda/code/multiply.h"

#define PIECE_WORDS    (1UL << 18)
#define FIRST_PAUSE_NS 2000
#define LAST_PAUSE_NS  400000

bool sim_body_reaches(const struct CUctx_st *ctx, CUdeviceptr address, size_t bytes, bool write)
{
    const struct sim_block *block = sim_block_at(address);
    int own = ctx->device->ordinal;

    if (block && block->kind == SIM_BLOCK_DEVICE && block->device != own &&
        !(atomic_load(&ctx->peers) >> block->device & 1))
        return false;
    return sim_block_covers(address, bytes, 1U << own, write);
}

static bool read_word(const struct CUctx_st *ctx, CUdeviceptr address, uint32_t *seen_p)
{
    sim_memory_read_lock();
    bool there = sim_body_reaches(ctx, address, sizeof *seen_p, false);
    if (there)
        *seen_p = __atomic_load_n((uint32_t *)(uintptr_t)address, __ATOMIC_ACQUIRE);
    sim_memory_unlock();
    return there;
}

/* memsim_hold(flag, value, limit_ns): runs until the word at flag is value, or the limit has passed. */
static CUresult hold(const uint64_t *arguments, struct sim_queue *queue)
{
    uint64_t start = sim_now_ns(), pause = FIRST_PAUSE_NS;
    uint32_t seen;

    if (arguments[0] % sizeof seen)
        return CUDA_ERROR_MISALIGNED_ADDRESS;
    for (;;) {
        if (!read_word(queue->ctx, arguments[0], &seen))
            return CUDA_ERROR_ILLEGAL_ADDRESS;
        if (seen == (uint32_t)arguments[1] || (arguments[2] && sim_now_ns() - start >= arguments[2]))
            return CUDA_SUCCESS;
        if (sim_context_error(queue->ctx) != CUDA_SUCCESS)
            return CUDA_SUCCESS; /* nothing runs on in a broken context */
        sim_spend(pause);
        pause = pause < LAST_PAUSE_NS ? pause * 2 : LAST_PAUSE_NS;
    }
}

/* memsim_fill(words, value, count): writes the value to each word. */
static CUresult fill(const uint64_t *arguments, struct sim_queue *queue)
{
    uint32_t value = (uint32_t)arguments[1];

    if (arguments[0] % sizeof value)
        return CUDA_ERROR_MISALIGNED_ADDRESS;
    for (uint64_t done = 0; done < arguments[2]; done += PIECE_WORDS) {
        uint64_t count = arguments[2] - done < PIECE_WORDS ? arguments[2] - done : PIECE_WORDS;
        CUdeviceptr address = arguments[0] + done * sizeof value;

        sim_memory_read_lock();
        bool there = sim_body_reaches(queue->ctx, address, count * sizeof value, true);
        for (uint64_t i = 0; there && i < count; i++) /* another kernel may be waiting for it */
            __atomic_store_n((uint32_t *)(uintptr_t)address + i, value, __ATOMIC_RELAXED);
        sim_memory_unlock();
        if (!there)
            return CUDA_ERROR_ILLEGAL_ADDRESS;
    }
    return CUDA_SUCCESS;
}

/* memsim_sum(words, count, sum): reads each word and writes the sum of them all, 64 bits wide. */
static CUresult sum(const uint64_t *arguments, struct sim_queue *queue)
{
    uint64_t total = 0;
    uint32_t word;

    if (arguments[0] % sizeof word || arguments[2] % sizeof total)
        return CUDA_ERROR_MISALIGNED_ADDRESS;
    for (uint64_t done = 0; done < arguments[1]; done += PIECE_WORDS) {
        uint64_t count = arguments[1] - done < PIECE_WORDS ? arguments[1] - done : PIECE_WORDS;
        CUdeviceptr address = arguments[0] + done * sizeof word;

        sim_memory_read_lock();
        bool there = sim_body_reaches(queue->ctx, address, count * sizeof word, false);
        for (uint64_t i = 0; there && i < count; i++) {
            memcpy(&word, (const char *)(uintptr_t)address + i * sizeof word, sizeof word);
            total += word;
        }
        sim_memory_unlock();
        if (!there)
            return CUDA_ERROR_ILLEGAL_ADDRESS;
    }
    sim_memory_read_lock();
    bool there = sim_body_reaches(queue->ctx, arguments[2], sizeof total, true);
    if (there)
        memcpy((void *)(uintptr_t)arguments[2], &total, sizeof total);
    sim_memory_unlock();
    return there ? CUDA_SUCCESS : CUDA_ERROR_ILLEGAL_ADDRESS;
}

/* memsim_trap(): breaks, as a kernel that runs into a trap. */
static CUresult trap(const uint64_t *arguments, struct sim_queue *queue)
{
    (void)arguments;
    (void)queue;
    return CUDA_ERROR_LAUNCH_FAILED;
}

_Static_assert((int)SIM_MULTIPLY_ARGUMENTS <= SIM_BODY_ARGUMENTS, "there is room for all");

static const struct sim_body bodies[] = {
    {"memsim_hold", 3, {8, 4, 8}, hold},
    {"memsim_fill", 3, {8, 4, 8}, fill},
    {"memsim_sum", 3, {8, 8, 8}, sum},
    {"memsim_trap", 0, {0}, trap},
    {"memsim_multiply", SIM_MULTIPLY_ARGUMENTS, {[0 ... SIM_MULTIPLY_ARGUMENTS - 1] = 8}, sim_body_multiply},
};

/** The kernel of this name, if it does something; NULL: it does nothing. */
const struct sim_body *sim_body_find(const char *name)
{
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++)
        if (!strcmp(bodies[i].name, name))
            return &bodies[i];
    return NULL;
}

/* The buffer of a launch whose arguments lie one behind the other, each at a multiple of its size. */
static const char *packed(void **extra, size_t *bytes_p)
{
    const char *buffer = NULL;

    for (; extra && *extra != CU_LAUNCH_PARAM_END; extra += 2) {
        if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
            buffer = extra[1];
        else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE && extra[1])
            *bytes_p = *(size_t *)extra[1];
        else
            return NULL;
    }
    return buffer;
}

/** Takes a launch's arguments along, in either of the forms in which they are passed; false if they are not
 * there. */
bool sim_body_arguments(const struct sim_body *body, void **parameters, void **extra, uint64_t *arguments)
{
    size_t bytes = 0, offset = 0;
    const char *buffer = packed(extra, &bytes);

    for (unsigned i = 0; i < body->count; i++) {
        size_t size = body->sizes[i];

        offset = (offset + size - 1) & ~(size - 1);
        if (parameters ? !parameters[i] : !buffer || offset + size > bytes)
            return false;
        arguments[i] = 0;
        memcpy(&arguments[i], parameters ? parameters[i] : buffer + offset, size);
        offset += size;
    }
    return true;
}
