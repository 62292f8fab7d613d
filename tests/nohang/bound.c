/*
 * bound.c - one thread frees twice as much as may be pending behind work that is held, and so waits in a
 * free; what others do meanwhile goes on, and one of them ends the hold. Natively the first of the frees
 * waits in its place.
 */
#include "nohang.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BLOCKS = 8, BLOCK_MIB = 16 };

struct scene {
    struct hold hold;
    cudaStream_t held;
    CUcontext context; /* what the frees are of */
    CUdeviceptr blocks[BLOCKS];
    pthread_t thread;
    atomic_int freeing, refused, letting;
    struct helper *helper;
};

static void free_them(void *argument)
{
    struct scene *scene = argument;

    scene->thread = pthread_self();
    cuCtxSetCurrent(scene->context);
    atomic_store(&scene->freeing, 1);
    for (int i = 0; i < BLOCKS; i++)
        if (cuMemFree_v2(scene->blocks[i]))
            atomic_fetch_add(&scene->refused, 1);
    atomic_store(&scene->freeing, 2);
}

/* Prepares what is to be freed, in the context that is current. */
static void prepare(struct scene *scene)
{
    memset(scene, 0, sizeof *scene);
    cudaFree(NULL); /* without a context the runtime makes the primary one current */
    cuCtxGetCurrent(&scene->context);
    hold_prepare(&scene->hold);
    scene->held = new_stream();
    for (int i = 0; i < BLOCKS; i++)
        if (cuMemAlloc_v2(&scene->blocks[i], BLOCK_MIB * MIB))
            say("no memory");
}

/* From here on a thread is in its frees. */
static void begin(struct scene *scene, unsigned limit_ms)
{
    hold_begin(&scene->hold, scene->held, limit_ms);
    scene->helper = start(free_them, scene);
    while (!atomic_load(&scene->freeing))
        pause_ms(1);
    pause_ms(20);
}

static void end(struct scene *scene)
{
    hold_end(&scene->hold);
    finish(scene->helper);
    say("refused %d", atomic_load(&scene->refused));
    say("device %d", cudaDeviceSynchronize());
}

static void let_go(void *argument)
{
    struct scene *scene = argument;

    atomic_store(&scene->letting, 1);
    pause_ms(60);
    __atomic_store_n(scene->hold.flag, 1, __ATOMIC_RELEASE);
}

/* A thread that calls nothing ends the hold after a while. */
static struct helper *let_go_later(struct scene *scene)
{
    struct helper *helper = start(let_go, scene);

    while (!atomic_load(&scene->letting))
        pause_ms(1);
    return helper;
}

/* Other sizes and the same, new memory and cached. */
static void allocates(void)
{
    static const size_t sizes[] = {700, 50000, 3 * MIB, 20 * MIB};
    struct scene scene;

    for (int i = 0; i < 4; i++)
        cudaFree(take(sizes[i]));
    prepare(&scene);
    begin(&scene, 0);
    for (int i = 0; i < 24; i++)
        take(sizes[i % 4] + (size_t)i * 5000);
    say("meminfo %d", cudaMemGetInfo(&(size_t){0}, &(size_t){0}));
    end(&scene);
}

/* Another thread is in frees of its own; both wait for the same. */
static void frees_too(void)
{
    struct helper *later;
    struct scene scene;
    void *blocks[6];
    int refused = 0;

    for (int i = 0; i < 6; i++)
        blocks[i] = take(i % 2 ? 20 * MIB : 5000);
    prepare(&scene);
    begin(&scene, 0);
    later = let_go_later(&scene);
    for (int i = 0; i < 6; i++)
        refused += cudaFree(blocks[i]) != cudaSuccess;
    say("others refused %d", refused);
    finish(later);
    end(&scene);
}

/* The work ends by itself; nobody else does anything. */
static void ends_by_itself(void)
{
    struct scene scene;

    prepare(&scene);
    hold_begin(&scene.hold, scene.held, 60);
    free_them(&scene);
    hold_end(&scene.hold);
    say("refused %d", atomic_load(&scene.refused));
    say("device %d", cudaDeviceSynchronize());
}

/* A host function frees, which the vendor refuses, or answers as it likes; it is what the device waits
 * for. */
static void free_in_function(void *argument)
{
    struct scene *scene = argument;

    for (int i = 0; i < BLOCKS; i++)
        cudaFree((void *)(uintptr_t)scene->blocks[i]);
    cudaGetLastError();
    atomic_store(&scene->freeing, 2);
}

static void in_function(void)
{
    struct scene scene;

    for (int i = 0; i < 3; i++) { /* what can only be made where calls are permitted is there */
        give_all((void *[]){take(64 * MIB)}, 1);
        cudaDeviceSynchronize();
    }
    prepare(&scene);
    say("launch %d", cudaLaunchHostFunc(scene.held, free_in_function, &scene));
    say("stream %d", cudaStreamSynchronize(scene.held));
    say("device %d, freed %d", cudaDeviceSynchronize(), atomic_load(&scene.freeing));
}

/* A handler frees and allocates, in a thread that is in nobody's call. */
static void *handler_block;
static volatile sig_atomic_t handler_said;

static void on_signal(int number)
{
    void *p = NULL;

    (void)number;
    handler_said = cudaFree(handler_block) == cudaSuccess ? 1 : 2;
    if (cudaMalloc(&p, 3 * MIB))
        handler_said = 3;
}

static void handler(void)
{
    struct helper *later;
    struct scene scene;

    signal(SIGUSR1, on_signal);
    handler_block = take(20 * MIB);
    prepare(&scene);
    begin(&scene, 0);
    later = let_go_later(&scene);
    raise(SIGUSR1);
    say("handled %d", (int)handler_said);
    finish(later);
    end(&scene);
}

/* A handler interrupts the very thread that waits, and is back before the hold ends. */
static atomic_int interrupted;

static void on_interruption(int number)
{
    (void)number;
    atomic_fetch_add(&interrupted, 1);
}

static void interruption(void)
{
    struct sigaction action = {.sa_handler = on_interruption};
    struct scene scene;

    sigaction(SIGUSR2, &action, NULL);
    prepare(&scene);
    begin(&scene, 0);
    for (int i = 1; i <= 5; i++) {
        pthread_kill(scene.thread, SIGUSR2);
        while (atomic_load(&interrupted) < i)
            pause_ms(1);
    }
    end(&scene);
}

/* Captures begin and end. */
static void captures(void)
{
    cudaStream_t other = new_stream();
    cudaGraph_t graph = NULL;
    struct scene scene;
    void *p = take(4096);
    int broken = 0;

    prepare(&scene);
    begin(&scene, 0);
    for (int i = 0; i < 10; i++) {
        broken += cudaStreamBeginCapture(other, cudaStreamCaptureModeThreadLocal) != cudaSuccess;
        broken += cudaMemsetAsync(p, 1, 64, other) != cudaSuccess;
        pause_ms(1);
        broken += cudaStreamEndCapture(other, &graph) != cudaSuccess;
        broken += cudaGraphDestroy(graph) != cudaSuccess;
    }
    say("broken captures %d", broken);
    end(&scene);
}

/* The hold is let go of only when a capture is open, and the capture ends only when the frees are over. */
static void in_a_capture(void)
{
    cudaStream_t other = new_stream();
    cudaGraph_t graph = NULL;
    struct scene scene;
    void *p = take(4096);

    prepare(&scene);
    begin(&scene, 0);
    say("begin %d", cudaStreamBeginCapture(other, cudaStreamCaptureModeRelaxed));
    say("memset %d", cudaMemsetAsync(p, 1, 64, other));
    hold_end(&scene.hold);
    finish(scene.helper);
    say("end %d", cudaStreamEndCapture(other, &graph));
    say("destroy %d", cudaGraphDestroy(graph));
    say("device %d", cudaDeviceSynchronize());
}

/* A child is made, which uses no GPU; it comes from a thread that does not wait. */
static void forks(void)
{
    struct scene scene;
    int status = 0;
    pid_t child;

    prepare(&scene);
    begin(&scene, 0);
    child = fork();
    if (child == 0)
        _exit(7);
    waitpid(child, &status, 0);
    say("the child ended with %d", WEXITSTATUS(status));
    end(&scene);
}

/* Streams are made, waited for, and end; so does the one that is held. */
static void streams_end(void)
{
    struct scene scene;
    void *p = take(4096);

    prepare(&scene);
    begin(&scene, 0);
    for (int i = 0; i < 3; i++) {
        cudaStream_t other = new_stream();

        say("memset %d", cudaMemsetAsync(p, 1, 4096, other));
        say("stream %d", cudaStreamSynchronize(other));
        say("destroy %d", cudaStreamDestroy(other));
    }
    say("destroy %d", cudaStreamDestroy(scene.held));
    end(&scene);
}

/* The context ends; what its thread gets is the moment's. */
static void context_ends(void)
{
    struct helper *later;
    struct scene scene;
    CUcontext context;

    take(5000);
    say("create %d", cuCtxCreate_v2(&context, 0, 0));
    prepare(&scene);
    begin(&scene, 0);
    later = let_go_later(&scene);
    say("destroy %d", cuCtxDestroy_v2(context));
    finish(later);
    finish(scene.helper);
    say("set %d", cudaSetDevice(0));
    take(20 * MIB);
    say("device %d", cudaDeviceSynchronize());
}

static void device_reset(void)
{
    struct helper *later;
    struct scene scene;

    prepare(&scene);
    begin(&scene, 0);
    later = let_go_later(&scene);
    say("reset %d", cudaDeviceReset());
    finish(later);
    finish(scene.helper);
    take(20 * MIB);
    say("device %d", cudaDeviceSynchronize());
}

const struct program programs_bound[] = {
    {"bound-allocates", allocates, NULL},
    {"bound-frees-too", frees_too, NULL},
    {"bound-ends-by-itself", ends_by_itself, NULL},
    {"bound-in-function", in_function, NULL},
    {"bound-handler", handler, NULL},
    {"bound-interruption", interruption, NULL},
    {"bound-captures", captures, NULL},
    {"bound-in-a-capture", in_a_capture, NULL},
    {"bound-forks", forks, NULL},
    {"bound-streams-end", streams_end, NULL},
    {"bound-context-ends", context_ends, NULL},
    {"bound-device-reset", device_reset, NULL},
    {NULL, NULL, NULL},
};
