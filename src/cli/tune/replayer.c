/* replayer.c - a program that asks for what a course says, on the simulated driver.
 *
 * Usage: replayer FD FIRST LAST WARM. FD is an open file of the form of replay_form.h. The events FIRST up
 * to, but not including, LAST are replayed, after what was live before them; what is called from event WARM
 * on is told apart. It is preloaded with the shipped library and queues no work. Its threads take turns as
 * those of the program did and never run at the same time, so that what it counts is the same in each run.
 * Prints "name value" lines: completed; refused (the first event for which there was no memory); peak and its
 * device; and "call" or "steady" with a function's name and its three counts. */
#include <dlfcn.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "cli/tune/replay_form.h"
#include "record/live/ledger.h"
#include "vendor/abi/cuda_driver.h"

static const char *const names[] = {
#define MS_COST(function, what, call, move, gib) #function,
#include "cli/tune/costs.def"
#undef MS_COST
};

static struct driver {
    CUresult (*init)(unsigned);
    CUresult (*retain)(CUcontext *, CUdevice);
    CUresult (*set_current)(CUcontext);
    CUresult (*stream)(CUstream *, unsigned);
    CUresult (*alloc)(CUdeviceptr *, size_t);
    CUresult (*managed)(CUdeviceptr *, size_t, unsigned);
    CUresult (*release)(CUdeviceptr);
    CUresult (*alloc_async)(CUdeviceptr *, size_t, CUstream);
    CUresult (*free_async)(CUdeviceptr, CUstream);
    CUresult (*array)(CUarray *, const CUDA_ARRAY_DESCRIPTOR *);
    CUresult (*array_destroy)(CUarray);
    CUresult (*create)(CUmemGenericAllocationHandle *, size_t, const CUmemAllocationProp *,
                       unsigned long long);
    CUresult (*release_handle)(CUmemGenericAllocationHandle);
    long long (*count)(const char *);
} cu;

static const struct ms_replay_head *head;
static const struct ms_course_event *events;
static uint64_t *places; /* by block: an address, an array or a handle */
static CUcontext contexts[MS_COURSE_DEVICES];
static CUstream streams[MS_COURSE_STREAMS];
static _Thread_local unsigned current = UINT_MAX;

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "replayer: %s\n", what);
    exit(1);
}

static void bind_one(void *driver, const char *name, void *function_p)
{
    *(void **)function_p = dlsym(driver, name);
    if (!*(void **)function_p)
        die(name);
}

static void bind_driver(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);

    if (!driver)
        die(dlerror());
    bind_one(driver, "memsim_count", &cu.count);
    bind_one(driver, "cuInit", &cu.init);
    bind_one(driver, "cuDevicePrimaryCtxRetain", &cu.retain);
    bind_one(driver, "cuCtxSetCurrent", &cu.set_current);
    bind_one(driver, "cuStreamCreate", &cu.stream);
    bind_one(driver, "cuMemAlloc_v2", &cu.alloc);
    bind_one(driver, "cuMemAllocManaged", &cu.managed);
    bind_one(driver, "cuMemFree_v2", &cu.release);
    bind_one(driver, "cuMemAllocAsync", &cu.alloc_async);
    bind_one(driver, "cuMemFreeAsync", &cu.free_async);
    bind_one(driver, "cuArrayCreate_v2", &cu.array);
    bind_one(driver, "cuArrayDestroy", &cu.array_destroy);
    bind_one(driver, "cuMemCreate", &cu.create);
    bind_one(driver, "cuMemRelease", &cu.release_handle);
    if (cu.init(0) != CUDA_SUCCESS)
        die("the driver does not start");
}

static void go_to(unsigned device)
{
    if (device == current)
        return;
    if (!contexts[device] && cu.retain(&contexts[device], (CUdevice)device) != CUDA_SUCCESS)
        die("a device has no context");
    if (cu.set_current(contexts[device]) != CUDA_SUCCESS)
        die("a context cannot be used");
    current = device;
}

static CUstream stream_of(unsigned number)
{
    if (!streams[number] && head->streams[number].ordered &&
        cu.stream(&streams[number], CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS)
        die("a stream cannot be made");
    return streams[number];
}

/* A picture of as many bytes, or a few more: four floats a point, in lines of 64 KiB. */
static CUresult take_array(uint64_t *place_p, uint64_t bytes)
{
    enum { POINT = 16, LINE = 4096 };
    CUDA_ARRAY_DESCRIPTOR shape = {.Format = CU_AD_FORMAT_FLOAT, .NumChannels = 4};
    uint64_t points = (bytes + POINT - 1) / POINT;
    CUarray array;
    CUresult status;

    shape.Width = points < LINE ? points : LINE;
    shape.Height = points < LINE ? 0 : (points + LINE - 1) / LINE;
    status = cu.array(&array, &shape);
    *place_p = status == CUDA_SUCCESS ? (uint64_t)(uintptr_t)array : 0;
    return status;
}

static CUresult take_handle(uint64_t *place_p, uint64_t bytes, unsigned device)
{
    const uint64_t page = 2u << 20;
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = (int)device}};
    CUmemGenericAllocationHandle handle = 0;
    CUresult status = cu.create(&handle, (bytes + page - 1) & ~(page - 1), &prop, 0);

    *place_p = handle;
    return status;
}

static CUresult take(const struct ms_course_event *event, uint64_t *place_p)
{
    CUdeviceptr address = 0;
    CUresult status;

    go_to(event->device);
    switch (event->kind) {
    case MS_KIND_ARRAY:
        return take_array(place_p, event->bytes);
    case MS_KIND_HANDLE:
    case MS_KIND_GRAPH:
        return take_handle(place_p, event->bytes, event->device);
    case MS_KIND_ASYNC:
        status = cu.alloc_async(&address, event->bytes, stream_of(event->stream));
        break;
    case MS_KIND_MANAGED:
        status = cu.managed(&address, event->bytes, CU_MEM_ATTACH_GLOBAL);
        break;
    default:
        status = cu.alloc(&address, event->bytes);
    }
    *place_p = address;
    return status;
}

static CUresult give(const struct ms_course_event *event, uint64_t place)
{
    go_to(event->device);
    switch (event->kind) {
    case MS_KIND_ARRAY:
        return cu.array_destroy((CUarray)(uintptr_t)place);
    case MS_KIND_HANDLE:
    case MS_KIND_GRAPH:
        return cu.release_handle(place);
    case MS_KIND_ASYNC:
        return cu.free_async(place, stream_of(event->stream));
    default:
        return cu.release(place);
    }
}

/* False if there was no memory; any other refusal ends the program. */
static bool replay_one(const struct ms_course_event *event)
{
    uint64_t *place = &places[event->block];
    CUresult status = event->bytes ? take(event, place) : give(event, *place);

    if (status == CUDA_ERROR_OUT_OF_MEMORY)
        return false;
    if (status != CUDA_SUCCESS) {
        fprintf(stderr, "replayer: event %zu was refused: %d\n", (size_t)(event - events), (int)status);
        exit(1);
    }
    return true;
}

/* Blocks that live when an event comes are asked for in the order in which they were. */
static bool replay_live(uint64_t first, uint64_t *refused_p)
{
    bool *live = calloc(head->block_count + 1u, 1);

    if (!live)
        die("out of memory");
    for (uint64_t i = 0; i < first; i++)
        live[events[i].block] = events[i].bytes != 0;
    for (*refused_p = 0; *refused_p < first; ++*refused_p)
        if (events[*refused_p].bytes && live[events[*refused_p].block] && !replay_one(&events[*refused_p]))
            break;
    free(live);
    return *refused_p == first;
}

static void count_calls(struct ms_replay_calls calls[MS_COST_ROWS])
{
    char text[80];

    for (size_t i = 0; i < MS_COST_ROWS; i++) {
        calls[i].calls = (uint64_t)cu.count(names[i]);
        snprintf(text, sizeof(text), "%s moves", names[i]);
        calls[i].moves = (uint64_t)cu.count(text);
        snprintf(text, sizeof(text), "%s bytes", names[i]);
        calls[i].bytes = (uint64_t)cu.count(text);
    }
}

static void print_calls(const char *word, const struct ms_replay_calls *from,
                        const struct ms_replay_calls *to)
{
    for (size_t i = 0; i < MS_COST_ROWS; i++)
        if (to[i].calls > from[i].calls)
            printf("%s %zu %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", word, i, to[i].calls - from[i].calls,
                   to[i].moves - from[i].moves, to[i].bytes - from[i].bytes);
}

static void print_peak(void)
{
    char text[32];
    long long most = 0, bytes;
    unsigned which = 0;

    for (unsigned i = 0; i < head->device_count; i++) {
        snprintf(text, sizeof(text), "peak_bytes %u", i);
        bytes = cu.count(text);
        if (bytes > most) {
            most = bytes;
            which = i;
        }
    }
    printf("peak %lld\npeak_device %u\n", most, which);
}

/* --- the turns of threads --- */

/* Only who has the baton does anything; it goes to the thread of the next event. */
static struct {
    sem_t *batons; /* by thread; the last is the caller's */
    pthread_t *threads;
    unsigned count;
    uint64_t at, last, steady;
    bool refused;
    struct ms_replay_calls *warm;
} turns;

/* Replays the thread's events as far as they follow each other. */
static void take_turn(unsigned thread)
{
    for (; turns.at < turns.last && !turns.refused && events[turns.at].thread == thread; turns.at++) {
        if (turns.at == turns.steady)
            count_calls(turns.warm);
        if (!replay_one(&events[turns.at])) {
            turns.refused = true;
            break;
        }
    }
}

/* When all is done the caller goes on, and the threads wait for ever. */
static void hand_on(void)
{
    bool over = turns.at == turns.last || turns.refused;

    sem_post(&turns.batons[over ? turns.count : events[turns.at].thread]);
}

static void *take_turns(void *number)
{
    unsigned thread = (unsigned)(uintptr_t)number;

    for (;;) {
        while (sem_wait(&turns.batons[thread]) < 0)
            ;
        take_turn(thread);
        hand_on();
    }
    return NULL;
}

static void start_threads(void)
{
    for (uint64_t i = 0; i < turns.last; i++)
        if (events[i].thread >= turns.count)
            turns.count = events[i].thread + 1u;
    turns.batons = calloc(turns.count + 1u, sizeof(*turns.batons));
    turns.threads = calloc(turns.count + 1u, sizeof(*turns.threads));
    if (!turns.batons || !turns.threads)
        die("out of memory");
    for (unsigned i = 0; i <= turns.count; i++)
        sem_init(&turns.batons[i], 0, 0);
    for (unsigned i = 0; i < turns.count && turns.count > 1; i++)
        if (pthread_create(&turns.threads[i], NULL, take_turns, (void *)(uintptr_t)i) != 0)
            die("a thread cannot be started");
}

/* Returns how far it came. */
static uint64_t replay_all(uint64_t first, uint64_t last, uint64_t steady, struct ms_replay_calls *warm)
{
    turns.at = first;
    turns.last = last;
    turns.steady = steady;
    turns.warm = warm;
    start_threads();
    if (turns.count <= 1) {
        take_turn(0);
        return turns.at;
    }
    hand_on();
    while (sem_wait(&turns.batons[turns.count]) < 0)
        ;
    return turns.at;
}

static void open_course(const char *text)
{
    struct stat st;
    int fd = atoi(text);

    if (fstat(fd, &st) < 0 || (size_t)st.st_size < sizeof(*head))
        die("there is no course");
    head = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
    if (head == MAP_FAILED || (size_t)st.st_size < sizeof(*head) + head->event_count * sizeof(*events))
        die("the course cannot be read");
    events = (const void *)(head + 1);
    places = calloc(head->block_count + 1u, sizeof(*places));
    if (!places)
        die("out of memory");
}

int main(int argc, char **argv)
{
    static struct ms_replay_calls start[MS_COST_ROWS], warm[MS_COST_ROWS], end[MS_COST_ROWS];
    uint64_t first, last, steady, at;
    bool completed;

    if (argc != 5)
        die("usage: replayer FD FIRST LAST WARM; memshim tune runs it");
    open_course(argv[1]);
    first = strtoull(argv[2], NULL, 10);
    last = strtoull(argv[3], NULL, 10);
    steady = strtoull(argv[4], NULL, 10);
    if (last > head->event_count || first > last)
        die("there are no such events");
    bind_driver();
    go_to(0);
    count_calls(start);
    completed = replay_live(first, &at);
    if (completed) {
        at = replay_all(first, last, steady, warm);
        completed = at == last;
    }
    count_calls(end);
    printf("completed %d\nrefused %" PRIu64 "\n", completed, at);
    print_peak();
    print_calls("call", start, end);
    if (steady > first && steady < at)
        print_calls("steady", warm, end);
    return 0;
}
