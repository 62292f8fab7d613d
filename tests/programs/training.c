/*
 * A small program that treats a GPU the way a training job does, with no kernel: weights, gradients and
 * optimizer state live for the whole run, each worker thread has a stream of its own, activations come and go
 * with every step, copies and memsets move real bytes. Three of its functions forget memory on purpose.
 *
 * It keeps its own account and prints it last, one "name value" line each, so that a report can be held
 * against it. All workers wait for each other when a step holds the most, which makes the peak the same in
 * every run. It knows nothing of memshim. Run: training [STEPS]; exit 0 if every byte came back right.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef TRAINING_TOOLKIT
#include <cuda_runtime_api.h>
#else
#include "vendor/abi/cuda_runtime.h"
#include "vendor/abi/cuda_runtime_fn.h"
#endif

enum { WORKERS = 4, LAYERS = 6, KEEP_LOGITS_EVERY = 5 };
#define KIB ((size_t)1024)
#define MIB (1024 * KIB)

#define CHECK(call)                                                                                          \
    do {                                                                                                     \
        cudaError_t check_status = (call);                                                                   \
        if (check_status != cudaSuccess) {                                                                   \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(check_status)); \
            exit(1);                                                                                         \
        }                                                                                                    \
    } while (0)

/* The program's own account */

static struct {
    pthread_mutex_t lock;
    size_t live_bytes, peak_bytes;
    unsigned live_count, malloc_calls, malloc_async_calls;
} account = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void account_add(size_t bytes, unsigned *calls)
{
    pthread_mutex_lock(&account.lock);
    account.live_bytes += bytes;
    account.live_count++;
    ++*calls;
    if (account.live_bytes > account.peak_bytes)
        account.peak_bytes = account.live_bytes;
    pthread_mutex_unlock(&account.lock);
}

static void account_remove(size_t bytes)
{
    pthread_mutex_lock(&account.lock);
    account.live_bytes -= bytes;
    account.live_count--;
    pthread_mutex_unlock(&account.lock);
}

/* What is forgotten. Kept out of line so that each has a frame of its own in a stack. */

#define LOGITS_BYTES     (64 * KIB)
#define CHECKPOINT_BYTES (3 * MIB)
#define EVAL_BYTES       (300 * KIB)
#define EVAL_BLOCKS      3

__attribute__((noinline)) static void save_checkpoint(void)
{
    void *copy;

    CHECK(cudaMalloc(&copy, CHECKPOINT_BYTES));
    account_add(CHECKPOINT_BYTES, &account.malloc_calls);
    CHECK(cudaMemset(copy, 0, CHECKPOINT_BYTES));
}

__attribute__((noinline)) static void build_eval_cache(void)
{
    void *block;

    for (int i = 0; i < EVAL_BLOCKS; i++) {
        CHECK(cudaMalloc(&block, EVAL_BYTES));
        account_add(EVAL_BYTES, &account.malloc_calls);
    }
}

__attribute__((noinline)) static void keep_logits(cudaStream_t stream)
{
    void *logits;

    CHECK(cudaMallocAsync(&logits, LOGITS_BYTES, stream));
    account_add(LOGITS_BYTES, &account.malloc_async_calls);
    CHECK(cudaMemsetAsync(logits, 0, LOGITS_BYTES, stream));
}

/* The job */

struct model {
    void *weights, *gradients, *moments;
    size_t bytes;
};

struct worker {
    pthread_t thread;
    cudaStream_t stream;
    const struct model *model;
    unsigned char *batch;  /* pinned */
    unsigned char *result; /* pinned */
    int index, steps;
    bool wrong;
};

static pthread_barrier_t step_is_full;

static const size_t batch_bytes = 512 * KIB;

static size_t layer_bytes(const struct worker *w, int layer)
{
    return (size_t)(layer + 1) * 192 * KIB + (size_t)w->index * 4 * KIB;
}

/* The batch goes in, around and back, and must come out unchanged. */
static void load_batch(struct worker *w, int step, void *scratch)
{
    memset(w->batch, step * 16 + w->index + 1, batch_bytes);
    memset(w->result, 0, batch_bytes);
    CHECK(cudaMemcpyAsync(scratch, w->batch, batch_bytes, cudaMemcpyHostToDevice, w->stream));
}

static void forward(struct worker *w, void *scratch, void *activations[LAYERS])
{
    for (int layer = 0; layer < LAYERS; layer++) {
        size_t bytes = layer_bytes(w, layer);

        CHECK(cudaMallocAsync(&activations[layer], bytes, w->stream));
        account_add(bytes, &account.malloc_async_calls);
        CHECK(cudaMemsetAsync(activations[layer], layer, bytes, w->stream));
    }
    CHECK(
        cudaMemcpyAsync(activations[LAYERS - 1], scratch, batch_bytes, cudaMemcpyDeviceToDevice, w->stream));
}

static void backward(struct worker *w, void *activations[LAYERS])
{
    char *gradients = (char *)w->model->gradients + (size_t)w->index * batch_bytes;

    CHECK(
        cudaMemcpyAsync(w->result, activations[LAYERS - 1], batch_bytes, cudaMemcpyDeviceToHost, w->stream));
    CHECK(cudaMemcpyAsync(gradients, activations[LAYERS - 1], batch_bytes, cudaMemcpyDeviceToDevice,
                          w->stream));
    for (int layer = LAYERS - 1; layer >= 0; layer--) {
        CHECK(cudaFreeAsync(activations[layer], w->stream));
        account_remove(layer_bytes(w, layer));
    }
}

static void train_step(struct worker *w, int step)
{
    void *activations[LAYERS], *scratch;

    CHECK(cudaMalloc(&scratch, batch_bytes));
    account_add(batch_bytes, &account.malloc_calls);
    load_batch(w, step, scratch);
    forward(w, scratch, activations);
    if (w->index == 0 && step % KEEP_LOGITS_EVERY == 0)
        keep_logits(w->stream);

    pthread_barrier_wait(&step_is_full);
    backward(w, activations);
    CHECK(cudaStreamSynchronize(w->stream));
    CHECK(cudaFree(scratch));
    account_remove(batch_bytes);
    if (memcmp(w->batch, w->result, batch_bytes) != 0)
        w->wrong = true;
    pthread_barrier_wait(&step_is_full);
}

static void *run_worker(void *argument)
{
    struct worker *w = argument;

    CHECK(cudaSetDevice(0));
    CHECK(cudaStreamCreateWithFlags(&w->stream, cudaStreamNonBlocking));
    CHECK(cudaHostAlloc((void **)&w->batch, batch_bytes, cudaHostAllocDefault));
    CHECK(cudaHostAlloc((void **)&w->result, batch_bytes, cudaHostAllocDefault));
    for (int step = 0; step < w->steps; step++)
        train_step(w, step);
    CHECK(cudaFreeHost(w->batch));
    CHECK(cudaFreeHost(w->result));
    CHECK(cudaStreamDestroy(w->stream));
    return NULL;
}

static void *state_new(size_t bytes)
{
    void *state;

    CHECK(cudaMalloc(&state, bytes));
    account_add(bytes, &account.malloc_calls);
    CHECK(cudaMemset(state, 0, bytes));
    return state;
}

static void state_free(void *state, size_t bytes)
{
    CHECK(cudaFree(state));
    account_remove(bytes);
}

static bool train(int steps)
{
    struct model model = {.bytes = 24 * MIB};
    struct worker workers[WORKERS] = {0};
    bool wrong = false;

    model.weights = state_new(model.bytes);
    model.gradients = state_new(model.bytes);
    model.moments = state_new(2 * model.bytes);
    build_eval_cache();
    /* the workers' streams do not wait for the default one, which clears the state */
    CHECK(cudaDeviceSynchronize());
    pthread_barrier_init(&step_is_full, NULL, WORKERS);
    for (int i = 0; i < WORKERS; i++) {
        workers[i].index = i;
        workers[i].steps = steps;
        workers[i].model = &model;
        if (pthread_create(&workers[i].thread, NULL, run_worker, &workers[i]) != 0) {
            perror("pthread_create");
            exit(1);
        }
    }
    for (int i = 0; i < WORKERS; i++) {
        pthread_join(workers[i].thread, NULL);
        wrong |= workers[i].wrong;
    }
    pthread_barrier_destroy(&step_is_full);
    save_checkpoint();
    state_free(model.moments, 2 * model.bytes);
    state_free(model.gradients, model.bytes);
    state_free(model.weights, model.bytes);
    CHECK(cudaDeviceSynchronize());
    return !wrong;
}

static void print_account(int steps)
{
    size_t kept = (size_t)((steps + KEEP_LOGITS_EVERY - 1) / KEEP_LOGITS_EVERY);

    printf("leak save_checkpoint cudaMalloc %zu bytes in 1 block\n", CHECKPOINT_BYTES);
    printf("leak build_eval_cache cudaMalloc %zu bytes in %d blocks\n", EVAL_BLOCKS * EVAL_BYTES,
           EVAL_BLOCKS);
    printf("leak keep_logits cudaMallocAsync %zu bytes in %zu blocks\n", kept * LOGITS_BYTES, kept);
    printf("calls cudaMalloc %u\n", account.malloc_calls);
    printf("calls cudaMallocAsync %u\n", account.malloc_async_calls);
    printf("live_bytes %zu\n", account.live_bytes);
    printf("live_count %u\n", account.live_count);
    printf("peak_live_bytes %zu\n", account.peak_bytes);
}

int main(int argc, char **argv)
{
    int steps = argc > 1 ? atoi(argv[1]) : 20;

    if (steps < 1 || argc > 2) {
        fprintf(stderr, "usage: training [STEPS]\n");
        return 2;
    }
    printf("training: %d workers, %d steps\n", WORKERS, steps);
    bool right = train(steps);
    print_account(steps);
    printf("copies %s\n", right ? "right" : "WRONG");
    return !right;
}
