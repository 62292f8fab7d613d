/* roctx.c - a stand-in for libroctx64.so.4: levels of each thread, numbers that count, and how often it was
 * called. Facts of the public header: the first level is 0, a pop of nothing is negative, numbers begin
 * at 1. */
#include <stdatomic.h>
#include <stdint.h>

void roctxMarkA(const char *message);
int roctxRangePushA(const char *message);
int roctxRangePop(void);
uint64_t roctxRangeStartA(const char *message);
void roctxRangeStop(uint64_t id);
unsigned roctx_calls(void);

static _Thread_local int level;
static _Atomic uint64_t ranges;
static atomic_uint calls;

void roctxMarkA(const char *message)
{
    (void)message;
    calls++;
}

int roctxRangePushA(const char *message)
{
    (void)message;
    calls++;
    return level++;
}

int roctxRangePop(void)
{
    calls++;
    return level ? --level : -1;
}

uint64_t roctxRangeStartA(const char *message)
{
    (void)message;
    calls++;
    return ++ranges;
}

void roctxRangeStop(uint64_t id)
{
    (void)id;
    calls++;
}

unsigned roctx_calls(void)
{
    return calls;
}
