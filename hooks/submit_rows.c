/* submit_rows.c - the wrappers of what submits work: every row of submit.def.
 *
 * A parameter is a register or a word of the stack whatever its type, by the calling conventions of x86-64
 * and aarch64 (System V ABI; AAPCS64, Linux): each is handed on as it came. No function of the driver's that
 * submits takes a floating-point number, or a structure of more than eight bytes by value. */
#include "hooks/submit.h"

#include <string.h>

/* Where the stream is. */
#define DEFAULT (-1)
#define CONFIG  (-2)

#define WORD(i) uintptr_t a##i
#define P1  WORD(0)
#define P2  P1, WORD(1)
#define P3  P2, WORD(2)
#define P4  P3, WORD(3)
#define P5  P4, WORD(4)
#define P6  P5, WORD(5)
#define P7  P6, WORD(6)
#define P8  P7, WORD(7)
#define P9  P8, WORD(8)
#define P10 P9, WORD(9)
#define P11 P10, WORD(10)
#define A1  a0
#define A2  A1, a1
#define A3  A2, a2
#define A4  A3, a3
#define A5  A4, a4
#define A6  A5, a5
#define A7  A6, a6
#define A8  A7, a7
#define A9  A8, a8
#define A10 A9, a9
#define A11 A10, a10

/* CUlaunchConfig begins with six extents and the bytes of shared memory, four bytes each; the stream is the
 * next word (cuda.h). */
#define CONFIG_STREAM 32

static uint64_t stream_of(const uintptr_t *words, int where)
{
    uint64_t stream = 0;

    if (where == CONFIG && words[0])
        memcpy(&stream, (const char *)words[0] + CONFIG_STREAM, sizeof(stream));
    return where >= 0 ? words[where] : stream;
}

#define WRAPPER(fn, count, where, slot)                                                                     \
    static int wrapper##slot##_##fn(P##count)                                                               \
    {                                                                                                       \
        const struct ms_submit_slot *real = &ms_submit_slots[MS_SUBMIT_##fn][slot];                         \
        const uintptr_t words[] = {A##count, 0};                                                            \
        struct ms_submit submit;                                                                            \
        ms_submit_begin(&submit, MS_SUBMIT_##fn, real->gpu, stream_of(words, where), words[0], words[1]);   \
        int status = ((int (*)(P##count))real->real)(A##count);                                             \
        ms_submit_end(&submit);                                                                             \
        return status;                                                                                      \
    }
#define WRAPPER_OFF(fn, count, slot)                                                                        \
    static int wrapper##slot##_##fn(P##count)                                                               \
    {                                                                                                       \
        ms_submit_off(MS_SUBMIT_##fn);                                                                      \
        return ((int (*)(P##count))ms_submit_slots[MS_SUBMIT_##fn][slot].real)(A##count);                   \
    }

#define MS_SUBMIT(fn, count, where, reach, look) WRAPPER(fn, count, where, 0) WRAPPER(fn, count, where, 1)
#define MS_SUBMIT_OFF(fn, count, why, look) WRAPPER_OFF(fn, count, 0) WRAPPER_OFF(fn, count, 1)
#define MS_MARK(fn)
#define MS_STILL(fn)
#include "hooks/submit.def"
#undef MS_SUBMIT
#undef MS_SUBMIT_OFF
#undef MS_MARK
#undef MS_STILL

struct ms_submit_slot ms_submit_slots[MS_SUBMIT_COUNT][MS_SUBMIT_SLOTS];

#define NAME(name, version, per_thread) name
#define VERSION(name, version, per_thread) version
#define PER_THREAD(name, version, per_thread) per_thread
#define FACTS(fn, why, bound, look)                                                                         \
    [MS_SUBMIT_##fn] = {.symbol = #fn, .lookup = NAME look, .off = why, .version = VERSION look,            \
                        .per_thread = PER_THREAD look, .reach = bound,                                      \
                        .wrappers = {(void *)wrapper0_##fn, (void *)wrapper1_##fn}},

const struct ms_submit_info ms_submit_rows[MS_SUBMIT_COUNT] = {
#define MS_SUBMIT(fn, count, where, reach, look) FACTS(fn, NULL, MS_REACH_##reach, look)
#define MS_SUBMIT_OFF(fn, count, why, look) FACTS(fn, why, MS_REACH_OWN, look)
#define MS_MARK(fn)
#define MS_STILL(fn)
#include "hooks/submit.def"
#undef MS_SUBMIT
#undef MS_SUBMIT_OFF
#undef MS_MARK
#undef MS_STILL
};

bool ms_submit_knows(const char *symbol)
{
    static const char *const names[] = {
#define MS_SUBMIT(fn, ...) #fn,
#define MS_SUBMIT_OFF(fn, ...) #fn,
#define MS_MARK(fn) #fn,
#define MS_STILL(fn) #fn,
#include "hooks/submit.def"
#undef MS_SUBMIT
#undef MS_SUBMIT_OFF
#undef MS_MARK
#undef MS_STILL
    };

    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(names[i], symbol) == 0)
            return true;
    }
    return false;
}
