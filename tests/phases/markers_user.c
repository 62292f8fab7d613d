/* markers_user.c - a program that names its phases by ROCTX and MSTX: markers_user LIBRARIES WAY [THREADS].
 *
 * LIBRARIES  linked: both are needed by the program; opened: both are opened; header: MSTX is compiled in
 * book       ranges around blocks that come and go, of any thread; prints what the report must say, and what
 *            the libraries and the profiler, if there is one, saw
 * hostile    names that nobody should give, ranges that are left open, ended twice, or never begun */
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#define MSTX                  __attribute__((unused)) static
#define mstxMarkA             own_mark
#define mstxRangeStartA       own_start
#define mstxRangeEnd          own_end
#define mstxGetToolId         own_tool
#define mstxDomainCreateA     own_create
#define mstxDomainDestroy     own_destroy
#define mstxDomainMarkA       own_domain_mark
#define mstxDomainRangeStartA own_domain_start
#define mstxDomainRangeEnd    own_domain_end
#include "tests/phases/mstx_object.h"
#undef mstxMarkA
#undef mstxRangeStartA
#undef mstxRangeEnd
#undef mstxGetToolId
#undef mstxDomainCreateA
#undef mstxDomainDestroy
#undef mstxDomainMarkA
#undef mstxDomainRangeStartA
#undef mstxDomainRangeEnd
#include "tests/program.h"

int cudaMalloc(void **pointer, size_t bytes);
int cudaFree(void *pointer);

#ifdef LINKED
#define FUNCTION(result, name, params) extern result name params;
#else
#define FUNCTION(result, name, params) static result(*name) params;
#endif
FUNCTION(void, roctxMarkA, (const char *))
FUNCTION(int, roctxRangePushA, (const char *))
FUNCTION(int, roctxRangePop, (void))
FUNCTION(uint64_t, roctxRangeStartA, (const char *))
FUNCTION(void, roctxRangeStop, (uint64_t))
FUNCTION(unsigned, roctx_calls, (void))
FUNCTION(void, mstxMarkA, (const char *, void *))
FUNCTION(uint64_t, mstxRangeStartA, (const char *, void *))
FUNCTION(void, mstxRangeEnd, (uint64_t))
FUNCTION(void, mstxGetToolId, (uint64_t *))
FUNCTION(void *, mstxDomainCreateA, (const char *))
FUNCTION(void, mstxDomainDestroy, (void *))
FUNCTION(void, mstxDomainMarkA, (void *, const char *, void *))
FUNCTION(uint64_t, mstxDomainRangeStartA, (void *, const char *, void *))
FUNCTION(void, mstxDomainRangeEnd, (void *, uint64_t))

#ifndef LINKED
static void *look(void *library, const char *name)
{
    void *found = library ? dlsym(library, name) : NULL;
    if (!found) {
        fprintf(stderr, "no %s\n", name);
        abort();
    }
    return found;
}

static void find_functions(bool is_header)
{
    void *roctx = dlopen("libroctx64.so.4", RTLD_NOW | RTLD_LOCAL);
    void *mstx = is_header ? NULL : dlopen("libms_tools_ext.so", RTLD_NOW | RTLD_LOCAL);
#define FIND(library, name) name = (__typeof__(name))look(library, #name)
    FIND(roctx, roctxMarkA);
    FIND(roctx, roctxRangePushA);
    FIND(roctx, roctxRangePop);
    FIND(roctx, roctxRangeStartA);
    FIND(roctx, roctxRangeStop);
    FIND(roctx, roctx_calls);
#define FIND_MSTX(name, own) name = is_header ? own : (__typeof__(name))look(mstx, #name)
    FIND_MSTX(mstxMarkA, own_mark);
    FIND_MSTX(mstxRangeStartA, own_start);
    FIND_MSTX(mstxRangeEnd, own_end);
    FIND_MSTX(mstxGetToolId, own_tool);
    FIND_MSTX(mstxDomainCreateA, own_create);
    FIND_MSTX(mstxDomainDestroy, own_destroy);
    FIND_MSTX(mstxDomainMarkA, own_domain_mark);
    FIND_MSTX(mstxDomainRangeStartA, own_domain_start);
    FIND_MSTX(mstxDomainRangeEnd, own_domain_end);
}
#endif

enum { PUSH, START, RANGE, DOMAIN, NAMES, BLOCKS = 40, STEPS = 300, THREADS_MAX = 8, DEPTH = 3, ENDS = 6 };
static const char *const names[NAMES] = {"push", "start", "range", "layer"};

struct open {
    bool is_open;
    int name;
    uint64_t id, peak, live, allocated, freed;
};

static struct {
    uint64_t count, peak_min, peak_max, allocated, freed;
    int64_t growth;
} figures[NAMES];
static struct open opens[THREADS_MAX][DEPTH], ends[ENDS];
static unsigned crossings, refused;
static uint64_t live;
static void *domain;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void note(struct open *open, uint64_t in, uint64_t out)
{
    if (!open->is_open)
        return;
    open->allocated += in;
    open->freed += out;
    open->peak = live > open->peak ? live : open->peak;
}

static void note_all(uint64_t in, uint64_t out)
{
    for (int i = 0; i < THREADS_MAX * DEPTH; i++)
        note(&opens[0][0] + i, in, out);
    for (int i = 0; i < ENDS; i++)
        note(&ends[i], in, out);
}

static void close_in_book(struct open *open)
{
    __typeof__(&figures[0]) sum = &figures[open->name];
    if (!open->is_open)
        return;
    sum->peak_max = open->peak > sum->peak_max ? open->peak : sum->peak_max;
    sum->peak_min = !sum->count || open->peak < sum->peak_min ? open->peak : sum->peak_min;
    sum->allocated += open->allocated;
    sum->freed += open->freed;
    sum->growth += (int64_t)(live - open->live);
    sum->count++;
    open->is_open = false;
}

static void begin(struct open *open, int name)
{
    *open = (struct open){.is_open = true, .name = name, .peak = live, .live = live};
    if (name == START)
        open->id = roctxRangeStartA(names[name]);
    else if (name == RANGE)
        open->id = mstxRangeStartA(names[name], NULL);
    else
        open->id = mstxDomainRangeStartA(domain, names[name], NULL);
    refused += open->id == 0;
}

static void end(struct open *open)
{
    if (open->name == START)
        roctxRangeStop(open->id);
    else if (open->name == RANGE)
        mstxRangeEnd(open->id);
    else
        mstxDomainRangeEnd(domain, open->id);
    close_in_book(open);
}

static void cross(int thread, unsigned roll, int *depth)
{
    struct open *range = &ends[roll % ENDS];
    crossings++;
    if (roll & 64 && range->is_open) {
        end(range);
    } else if (roll & 64) {
        begin(range, START + (int)(roll >> 8) % 3);
    } else if (*depth == DEPTH || (*depth && roll & 128)) {
        refused += roctxRangePop() != --*depth;
        close_in_book(&opens[thread][*depth]);
    } else {
        opens[thread][*depth] = (struct open){.is_open = true, .name = PUSH, .peak = live, .live = live};
        refused += roctxRangePushA(names[PUSH]) != (*depth)++;
    }
}

static void *work(void *arg)
{
    int thread = (int)(intptr_t)arg, depth = 0;
    void *blocks[BLOCKS] = {NULL};
    uint64_t bytes[BLOCKS];
    unsigned seed = 23u * (unsigned)thread + 7;
    for (int i = 0; i < STEPS; i++) {
        seed = seed * 1103515245 + 12345;
        unsigned roll = seed >> 8, k = roll % BLOCKS;
        pthread_mutex_lock(&mutex);
        if (roll % 4 == 0) {
            cross(thread, seed >> 12, &depth);
        } else if (blocks[k]) {
            cudaFree(blocks[k]);
            blocks[k] = NULL;
            live -= bytes[k];
            note_all(0, bytes[k]);
        } else {
            bytes[k] = 1 + roll % 300000;
            if (cudaMalloc(&blocks[k], bytes[k]) != 0)
                abort();
            live += bytes[k];
            note_all(bytes[k], 0);
        }
        pthread_mutex_unlock(&mutex);
    }
    return NULL;
}

static unsigned ask_tool(const char *what)
{
    unsigned (*function)(void) = (unsigned (*)(void))dlsym(RTLD_DEFAULT, what);
    return function ? function() : 0;
}

static void run_book(int threads)
{
    pthread_t ids[THREADS_MAX];
    uint64_t tool = 0;
    domain = mstxDomainCreateA("a domain");
    mstxGetToolId(&tool);
    /* A phase that ends before a device is used has no figures of it. */
    void *block;
    if (cudaMalloc(&block, 1) != 0)
        abort();
    cudaFree(block);
    for (int i = 0; i < threads; i++)
        pthread_create(&ids[i], NULL, work, (void *)(intptr_t)i);
    for (int i = 0; i < threads; i++)
        pthread_join(ids[i], NULL);
    for (int i = 0; i < ENDS; i++) {
        if (ends[i].is_open)
            end(&ends[i]);
    }
    for (int i = 0; i < THREADS_MAX * DEPTH; i++)
        close_in_book(&opens[0][0] + i);
    roctxMarkA("a mark");
    mstxMarkA("a mark", NULL);
    mstxDomainMarkA(domain, "a mark", NULL);
    mstxDomainDestroy(domain);
    for (int i = 0; i < NAMES; i++)
        say("%s %llu %llu %llu %llu %llu %lld", names[i], (unsigned long long)figures[i].count,
            (unsigned long long)figures[i].peak_min, (unsigned long long)figures[i].peak_max,
            (unsigned long long)figures[i].allocated, (unsigned long long)figures[i].freed,
            (long long)figures[i].growth);
    say("seen %u refused %u tool %llu ranges %u faults %u", roctx_calls(), refused, (unsigned long long)tool,
        ask_tool("mstx_tool_ranges"), ask_tool("mstx_tool_faults"));
}

static void run_hostile(void)
{
    enum { LONG = 1 << 20 };
    char *name = malloc(LONG + 1);
    void *pointer, *none = mstxDomainCreateA(NULL);
    memset(name, 'n', LONG);
    name[LONG] = '\0';
    if (cudaMalloc(&pointer, 1 << 20) != 0)
        abort();
    int popped = roctxRangePop(), first = roctxRangePushA(NULL), second = roctxRangePushA(name);
    roctxRangePushA("\xff\xfe not \xc3 a name");
    roctxMarkA(NULL);
    roctxRangeStop(12345);
    roctxRangeStop(0);
    uint64_t start = roctxRangeStartA("twice");
    roctxRangeStop(start);
    roctxRangeStop(start);
    mstxMarkA(NULL, NULL);
    uint64_t range = mstxRangeStartA("twice too", NULL);
    mstxRangeEnd(range);
    mstxRangeEnd(range);
    mstxRangeEnd(0);
    mstxRangeEnd(~UINT64_C(0));
    mstxDomainRangeEnd(none, mstxDomainRangeStartA(none, NULL, NULL));
    mstxDomainRangeEnd(NULL, mstxDomainRangeStartA(NULL, "no domain", NULL));
    for (int i = 0; i < 1500; i++)
        roctxRangeStartA("never ended");
    say("popped %d levels %d %d", popped, first, second);
    free(name);
}

int main(int argc, char **argv)
{
    const char *way = argc > 2 ? argv[2] : "";
    int threads = argc > 3 ? atoi(argv[3]) : 1;
#ifndef LINKED
    find_functions(argc > 1 && strcmp(argv[1], "header") == 0);
#endif
    if (!strcmp(way, "book") && threads > 0 && threads <= THREADS_MAX)
        run_book(threads);
    else if (!strcmp(way, "hostile"))
        run_hostile();
    else
        return 2;
    return 0;
}
