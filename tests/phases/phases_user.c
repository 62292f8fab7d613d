/* phases_user.c - a program that names its phases, and keeps a book of them: phases_user WAY [NUMBER].
 *
 * book THREADS  ranges of three interfaces around blocks that come and go; prints what the report must say
 * kill          is inside of two phases when it says so, and stays
 * hostile N     names that nobody should give, N of them different; ranges that are left open and ended twice
 * fork          a child ends what its parent began
 * signals       a handler that begins and ends phases, wherever the program is */
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "include/memshim.h"
#ifdef REAL_NVTX
#include <nvtx3/nvToolsExt.h>
#include <stdlib.h>
#define ATTRIBUTES(handle)                                                                                   \
    {                                                                                                        \
        .version = NVTX_VERSION, .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,                                      \
        .messageType = NVTX_MESSAGE_TYPE_REGISTERED, .message.registered = (handle)                          \
    }
#else
#include "tests/phases/nvtx_object.h"
#define ATTRIBUTES(handle)                                                                                   \
    {                                                                                                        \
        .version = 3, .size = sizeof(nvtxEventAttributes_t), .text_type = MS_NVTX_TEXT_REGISTERED,           \
        .text = (handle)                                                                                     \
    }
#endif
#include "tests/program.h"

int cudaMalloc(void **pointer, size_t bytes);
int cudaFree(void *pointer);

enum { NAMES = 6, BLOCKS = 60, STEPS = 400, THREADS_MAX = 8, DEPTH = 4, ENDS = 4 };
static const char *const names[NAMES] = {"load", "step", "forward", "backward", "layer", "thread"};

struct open {
    int name; /* -1: none */
    uint64_t id, peak, live, allocated, freed;
};

static struct {
    uint64_t count, peak_min, peak_max, allocated, freed;
    int64_t growth;
} figures[NAMES];
static uint64_t live;
static struct open opens[THREADS_MAX][DEPTH], ends[ENDS];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static nvtxDomainHandle_t domain;
static nvtxStringHandle_t texts[NAMES];

static void each_open(void (*visit)(struct open *open, uint64_t bytes), uint64_t bytes)
{
    for (int i = 0; i < THREADS_MAX; i++) {
        for (int k = 0; k < DEPTH; k++) {
            if (opens[i][k].name >= 0)
                visit(&opens[i][k], bytes);
        }
    }
    for (int i = 0; i < ENDS; i++) {
        if (ends[i].name >= 0)
            visit(&ends[i], bytes);
    }
}

static void note_in(struct open *open, uint64_t bytes)
{
    open->allocated += bytes;
    open->peak = live > open->peak ? live : open->peak;
}

static void note_out(struct open *open, uint64_t bytes)
{
    open->freed += bytes;
}

static void begin_in_book(struct open *open, int name)
{
    *open = (struct open){.name = name, .peak = live, .live = live};
}

static void end_in_book(struct open *open)
{
    __typeof__(&figures[0]) sum = &figures[open->name];
    sum->peak_max = open->peak > sum->peak_max ? open->peak : sum->peak_max;
    sum->peak_min = !sum->count || open->peak < sum->peak_min ? open->peak : sum->peak_min;
    sum->allocated += open->allocated;
    sum->freed += open->freed;
    sum->growth += (int64_t)(live - open->live);
    sum->count++;
    open->name = -1;
}

/* Names 0 and 1 by memshim's own functions, 2 and 3 by NVTX's, 4 in a domain with registered strings. */
static void push(int name)
{
    const nvtxEventAttributes_t attributes = ATTRIBUTES(texts[name]);
    if (name < 2)
        MEMSHIM_PHASE_PUSH(names[name]);
    else if (name < 4)
        nvtxRangePushA(names[name]);
    else
        nvtxDomainRangePushEx(domain, &attributes);
}

static void pop(int name)
{
    if (name < 2)
        MEMSHIM_PHASE_POP();
    else if (name < 4)
        nvtxRangePop();
    else
        nvtxDomainRangePop(domain);
}

static void cross(int thread, unsigned roll, int *depth)
{
    struct open *end = &ends[roll % ENDS];
    int name = (int)(roll >> 8) % (NAMES - 1);
    if (roll & 64) { /* of the whole process: whoever comes ends it */
        if (end->name >= 0) {
            nvtxRangeEnd(end->id);
            end_in_book(end);
        } else {
            begin_in_book(end, NAMES - 1);
            end->id = nvtxRangeStartA(names[NAMES - 1]);
        }
    } else if (*depth && (*depth == DEPTH || roll & 128)) {
        struct open *open = &opens[thread][--*depth];
        pop(open->name);
        end_in_book(open);
    } else {
        begin_in_book(&opens[thread][(*depth)++], name);
        push(name);
    }
}

static void *work(void *arg)
{
    int thread = (int)(intptr_t)arg, depth = 0;
    void *blocks[BLOCKS] = {NULL};
    uint64_t bytes[BLOCKS];
    unsigned seed = 17u * (unsigned)thread + 5;
    for (int i = 0; i < STEPS; i++) {
        seed = seed * 1103515245 + 12345;
        unsigned roll = seed >> 8, k = roll % BLOCKS;
        pthread_mutex_lock(&mutex);
        if (roll % 7 == 0) {
            cross(thread, seed >> 12, &depth);
        } else if (blocks[k]) {
            cudaFree(blocks[k]);
            blocks[k] = NULL;
            live -= bytes[k];
            each_open(note_out, bytes[k]);
        } else {
            bytes[k] = 1 + roll % 300000;
            if (cudaMalloc(&blocks[k], bytes[k]) != 0)
                abort();
            live += bytes[k];
            each_open(note_in, bytes[k]);
        }
        pthread_mutex_unlock(&mutex);
    }
    return NULL;
}

static void run_book(int threads)
{
    pthread_t ids[THREADS_MAX];
    memset(opens, -1, sizeof opens);
    memset(ends, -1, sizeof ends);
    domain = nvtxDomainCreateA("a domain");
    for (int i = 0; i < NAMES; i++)
        texts[i] = nvtxDomainRegisterStringA(domain, names[i]);
    /* A phase that ends before a device is used has no figures of it. */
    void *block;
    if (cudaMalloc(&block, 1) != 0)
        abort();
    cudaFree(block);
    for (int i = 0; i < threads; i++)
        pthread_create(&ids[i], NULL, work, (void *)(intptr_t)i);
    for (int i = 0; i < threads; i++)
        pthread_join(ids[i], NULL);
    for (int i = 0; i < THREADS_MAX; i++) {
        for (int k = 0; k < DEPTH; k++) {
            if (opens[i][k].name >= 0)
                end_in_book(&opens[i][k]);
        }
    }
    for (int i = 0; i < ENDS; i++) {
        if (ends[i].name >= 0)
            end_in_book(&ends[i]);
    }
    for (int i = 0; i < NAMES; i++)
        say("%s %llu %llu %llu %llu %llu %lld", names[i], (unsigned long long)figures[i].count,
            (unsigned long long)figures[i].peak_min, (unsigned long long)figures[i].peak_max,
            (unsigned long long)figures[i].allocated, (unsigned long long)figures[i].freed,
            (long long)figures[i].growth);
}

static void *block(size_t bytes)
{
    void *pointer = NULL;
    if (cudaMalloc(&pointer, bytes) != 0)
        abort();
    return pointer;
}

static void run_kill(void)
{
    block(1 << 20);
    MEMSHIM_PHASE_PUSH("outer");
    cudaFree(block(8 << 20));
    nvtxRangePushA("inner");
    cudaFree(block(4 << 20));
    block(2 << 20);
    say("ready");
    for (;;)
        pause();
}

static void run_hostile(int names_given)
{
    enum { LONG = 1 << 20 };
    char *name = malloc(LONG + 1), text[64];
    memset(name, 'n', LONG);
    name[LONG] = '\0';
    block(1 << 20);
    MEMSHIM_PHASE_PUSH(name);
    MEMSHIM_PHASE_PUSH("\x1b[31m\r\nred\x07");
    nvtxRangePushA("\xff\xfe not \xc3 a name \xf0\x9f");
    nvtxRangePushA(NULL);
    MEMSHIM_PHASE_PUSH("");
    for (int i = 0; i < names_given; i++) {
        snprintf(text, sizeof text, "name %d", i);
        nvtxRangePushA(text);
        nvtxRangePop();
    }
    for (int i = 0; i < 3000; i++)
        nvtxRangeStartA("never ended");
    nvtxRangeEnd(12345);
    MEMSHIM_PHASE_END(~UINT64_C(0));
    nvtxDomainRangePop(nvtxDomainCreateA("empty"));
    free(name);
}

static void run_fork(void)
{
    MEMSHIM_PHASE_PUSH("parent");
    nvtxRangePushA("parent's too");
    pid_t child = fork();
    if (child == 0) {
        nvtxRangePop();
        MEMSHIM_PHASE_POP();
        MEMSHIM_PHASE_PUSH("child");
        block(3 << 20);
        MEMSHIM_PHASE_POP();
        exit(0);
    }
    waitpid(child, NULL, 0);
    block(1 << 20);
    nvtxRangePop();
    MEMSHIM_PHASE_POP();
}

static volatile sig_atomic_t handled;

static void handle(int number)
{
    (void)number;
    MEMSHIM_PHASE_PUSH("handler");
    nvtxRangePushA("handler");
    nvtxRangePop();
    MEMSHIM_PHASE_POP();
    handled++;
}

static void run_signals(void)
{
    const struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
    signal(SIGALRM, handle);
    block(1 << 20);
    setitimer(ITIMER_REAL, &often, NULL);
    while (handled < 300) {
        MEMSHIM_PHASE_PUSH("loop");
        cudaFree(block(65536));
        MEMSHIM_PHASE_POP();
    }
    setitimer(ITIMER_REAL, &never, NULL);
}

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "";
    int number = argc > 2 ? atoi(argv[2]) : 0;
    if (!strcmp(way, "book") && number > 0 && number <= THREADS_MAX)
        run_book(number);
    else if (!strcmp(way, "kill"))
        run_kill();
    else if (!strcmp(way, "hostile"))
        run_hostile(number);
    else if (!strcmp(way, "fork"))
        run_fork();
    else if (!strcmp(way, "signals"))
        run_signals();
    else
        return 2;
    return 0;
}
