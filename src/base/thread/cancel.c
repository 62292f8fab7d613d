/* cancel.c - where the C library keeps a thread's type of cancellation.
 *
 * Floor 0. No lock, no allocation. pthread_self() of glibc is the address of the thread's own record, of
 * which nothing but the type follows what is done here; whatever else may change in it meanwhile (another
 * thread asks for this one's end, a signal's handler runs) leaves more than one byte changed, or not each
 * time, and then it is not known, and the type is set as ever. */
#include <string.h>

#include "base/thread/cancel.h"

ptrdiff_t ms_cancel_distance;
_Atomic unsigned char ms_cancel_bits;

#ifdef __GLIBC__
/* glibc 2.36 has the type in byte 776 of 2,304 on x86-64, and nearer to the beginning on aarch64. */
enum { RECORD_BYTES = 1024, ROUNDS = 3 };

static MS_UNSYNCHRONIZED void read_record(unsigned char *copy)
{
    const volatile unsigned char *record = (const volatile unsigned char *)pthread_self();
    for (size_t i = 0; i < RECORD_BYTES; i++)
        copy[i] = record[i];
}

/* The only byte that differs; -1 if there is none, or more than one. */
static ptrdiff_t only_difference(const unsigned char *a, const unsigned char *b)
{
    ptrdiff_t place = -1;
    for (ptrdiff_t i = 0; i < RECORD_BYTES; i++) {
        if (a[i] == b[i])
            continue;
        if (place >= 0)
            return -1;
        place = i;
    }
    return place;
}

/* There and back again. What is copied would take most of a small stack. */
static ptrdiff_t follow_once(unsigned char *bits_p)
{
    static unsigned char before[RECORD_BYTES], between[RECORD_BYTES], after[RECORD_BYTES];
    int type;
    read_record(before);
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
    read_record(between);
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type);
    read_record(after);
    ptrdiff_t place = only_difference(before, between);
    if (place < 0 || memcmp(before, after, sizeof before) != 0 || before[place] & ~between[place])
        return -1;
    *bits_p = before[place] ^ between[place];
    return place;
}

void ms_cancel_learn(void)
{
    unsigned char bits, again;
    ptrdiff_t place = follow_once(&bits);
    for (unsigned i = 1; place >= 0 && i < ROUNDS; i++) {
        if (follow_once(&again) != place || again != bits)
            place = -1;
    }
    if (place < 0)
        return;
    ms_cancel_distance = (ptrdiff_t)((uintptr_t)pthread_self() + (uintptr_t)place - (uintptr_t)&ms_thread);
    atomic_store_explicit(&ms_cancel_bits, bits, memory_order_release);
}
#else
void ms_cancel_learn(void)
{
}
#endif
