/* programs_heap.c - memory of a context under the engine, a program for each protocol, in the words of
 * calls.h; and programs of random words (`calls:SEED`). */
#include <stddef.h>
#include <string.h>

#include "calls.h"
#include "engine.h"
#include "programs.h"

#define MIB ((uint64_t)1 << 20)

CALLS_PROGRAM(hits, 256, false, "t0 t1 t3", "g0 t0 g1 t1 g0", "t2 g2 g3 t0 g0", "t5 g5 g1 t3 g3")
CALLS_PROGRAM(tcache, 256, false, "t0 t1", "t5 g5 t5 g5 t5 g5 t5 g5 t5 g5 t5 g5 t5 g5 t5 g5 t5 g5 t5 g5",
              "q g0 t0 x g1", "")
CALLS_PROGRAM(pending, 256, false, "t0 t1 t3 t4 i", "g0 g3 t5 g5 t0", "f i g1 g4 t1", "s t2 g2 i s")
CALLS_PROGRAM(captures, 256, false, "t0 t1 t3 t4 i", "c g0 t0 e", "g3 t5 i g1 x", "t2 c g2 s e g4 t3")
CALLS_PROGRAM(scarce, 24, false, "t6 i", "t7 g7 t4 g4", "g6 t4 g4 t3", "f t3 g3 t7 g7")
CALLS_PROGRAM(pins, 256, false, "t0 t3 t6", "p3 g3 t3 u", "p3 g6 t6 u", "g3 t3 p6 g6 u t6")
CALLS_PROGRAM(stopped, 256, false, "t0 t1 t3 t4 i g3", "f t3 g0 g4 t0", "o o o", "g1 t1 s t4")
CALLS_PROGRAM(ended, 256, false, "2 t0 t1 t3", "2 k", "l0 l3 t2 g2", "t5 l1 g5 l0")
CALLS_PROGRAM(freed_late, 256, false, "2 t0 t1 t3", "2 k", "g0 g1 g3", "t6 t4 t5")
CALLS_PROGRAM(grown, 256, false, "", "t3 t6 g6", "l3 l6 t4 l3 l6", "l3 l3 l3 l6 l6 l6 l3 l6 l3 l6 l3 l6")
CALLS_PROGRAM(returned, 256, false, "t3 t6 t4 g6 g4", "x t6", "m t4 g3", "s t7 x")
CALLS_PROGRAM(mapped, 256, true, "t3 t6 t4 i g6 f", "t7 g3 x", "r t6 g4 m", "s t4 g7")
CALLS_PROGRAM(mapped_long, 4096, true, "b t3 t6 t4 i g6 f", "t7 g3 x", "r t6 g4 m", "s t4 g7")
CALLS_PROGRAM(peers_long, 4096, true, "b t3 t6 g6 f", "r t4 t7", "r g3 t6 m", "t7 s t4 x")
CALLS_PROGRAM(first, 256, false, "", "t0 g0 t3", "t1 g1 s", "s q t5")
CALLS_PROGRAM(peers, 256, true, "t3", "r t4", "r g3 t6 m", "t7 s t4")
CALLS_PROGRAM(limbo_stopped, 256, false, "t0 t1 t3 t4 i g3 g0", "f q t3 g4 t0", "o o o o", "i g1 f q t1 t4")
CALLS_PROGRAM(epochs, 256, false, "t0 t1 t3 t4 i", "g0 s g1 t0", "g3 i s g4", "t5 i g5 s t3")
CALLS_PROGRAM(twice, 256, false, "t0 t3 t6", "d0 d3 d6", "d3 d0 d6", "")
CALLS_PROGRAM(visited, 32, false, "2 t3 t6 g3 g6", "2 k", "m x t6", "t7 g7 t4")
CALLS_PROGRAM(forked, 256, false, "t0 t3 i", "g0 t5 g3 t3", "t2 F t0 g0 i t3 s", "")
CALLS_PROGRAM(forked_long, 4096, true, "b t3 t6 i", "g6 t4 g3 t3 m", "t7 F t6 g6 i t3 s", "")

/* --- random words
 * ----------------------------------------------------------------------------------------- */

static char words[CALLS_TASKS][128], words_before[128];
static bool words_mapped;

static uint64_t next(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* Takes and gives mostly. */
static void write_words(char *text, unsigned count, uint64_t *state)
{
    static const char kinds[] = "ttttttggggggggpulliifhsscexxmmqorwG";
    for (unsigned i = 0; i < count; i++) {
        char kind = kinds[next(state) % (sizeof kinds - 1)];
        *text++ = kind;
        if (strchr("tgpl", kind))
            *text++ = (char)('0' + next(state) % 8);
        *text++ = ' ';
    }
    *text = 0;
}

static void prepare_words(void)
{
    uint64_t state = program_seed * 0x9e3779b97f4a7c15u + 1;
    words_mapped = next(&state) % 4 == 0;
    write_words(words_before, 4 + (unsigned)(next(&state) % 8), &state);
    for (unsigned i = 0; i < CALLS_TASKS; i++)
        write_words(words[i], 2 + (unsigned)(next(&state) % 8), &state);
    calls_prepare(next(&state) % 2 ? 256 * MIB : 32 * MIB, words_mapped, words_before);
}

static void start_words(void)
{
    static char left[CALLS_TASKS][sizeof words[0]];
    for (unsigned i = 0; i < CALLS_TASKS; i++) {
        program_leave_out(words[i], left[i], i);
        calls_task(left[i]);
    }
}

const struct program heap_programs[] = {
    CALLS_ROW(hits, "hits", "three take and free blocks of each other"),
    CALLS_ROW(tcache, "lease", "one comes to own its lease, another wants what lies there"),
    CALLS_ROW(pending, "limbo", "blocks come out of limbo while work ends and is waited for"),
    CALLS_ROW(captures, "captures", "captures begin and end while others free and wait"),
    CALLS_ROW(scarce, "ladder", "memory runs out for three"),
    CALLS_ROW(pins, "pins", "blocks are exported while others free them"),
    CALLS_ROW(stopped, "stopped", "the pool is stopped while others use it"),
    CALLS_ROW(ended, "context-ends", "a context ends while others look up what lay in it"),
    {"freed-late", "a context ends while its memory is freed, and its records become another's",
     prepare_freed_late, start_freed_late, calls_check, READS_OLD},
    CALLS_ROW(grown, "grown", "memory comes while others look it up"),
    CALLS_ROW(returned, "returned", "several give back what is idle"),
    CALLS_ROW(mapped, "mapped", "the same where memory is mapped by handle"),
    CALLS_ROW(mapped_long, "mapped-long", "... by handles of several pages"),
    CALLS_ROW(first, "first", "a context's first memory is asked for by several"),
    CALLS_ROW(peers, "peers", "other devices are let to memory that is just mapped"),
    CALLS_ROW(peers_long, "peers-long", "... by handles of several pages"),
    CALLS_ROW(limbo_stopped, "limbo-stopped", "the pool is stopped while blocks come out of limbo"),
    CALLS_ROW(epochs, "epochs", "several free as an epoch begins"),
    CALLS_ROW(twice, "twice", "two free the same blocks"),
    CALLS_ROW(visited, "visited", "a context ends while others make room in it"),
    CALLS_ROW(forked, "forked", "one forks in the middle of what others do"),
    CALLS_ROW(forked_long, "forked-long", "... where memory is mapped by handles of several pages"),
    CALLS_ROW(words, "calls", "random calls: calls:SEED"),
    {NULL, NULL, NULL, NULL, NULL, RIGHT},
};
