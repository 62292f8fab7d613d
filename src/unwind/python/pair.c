/* pair.c - which native frame runs which Python frames; see pair.h.
 *
 * Floor 1. From 3.11 on the evaluation loop keeps a record of each of its runs on the C stack: the native
 * frame that it lies in is the run's, whatever its code is called. Up to 3.10 each Python frame has a call of
 * the loop of its own: they are counted. A pairing is whole or there is none. */
#include "unwind/frame.h"
#include "unwind/python/pair.h"

struct output {
    const struct ms_pairing *pairing;
    uintptr_t *merged;
    unsigned count, native; /* frames so far; native ones that are done */
};

static void put_native(struct output *output, unsigned until)
{
    const struct ms_pairing *pairing = output->pairing;
    for (; output->native < until; output->native++) {
        if (output->native < pairing->shown)
            output->merged[output->count++] = pairing->frames[output->native];
    }
}

static void put_python(struct output *output, unsigned from, unsigned until)
{
    for (unsigned i = from; i < until; i++)
        output->merged[output->count++] =
            (uintptr_t)ms_frame_python(output->pairing->python[i].code, output->pairing->python[i].offset);
}

/* The last frame of the run that begins with `first`; python_count if its end was not told. */
static unsigned end_of_run(const struct ms_pairing *pairing, unsigned first)
{
    while (first < pairing->python_count && !pairing->python[first].entry)
        first++;
    return first;
}

/* The native frame that `address` lies in, from `first` on: `count` if it is further out than all of them, or
 * may be; UINT32_MAX if it lies nowhere in them. */
static unsigned frame_with(const struct ms_pairing *pairing, unsigned first, uintptr_t address)
{
    uintptr_t begin = first < pairing->count ? pairing->sps[first] : pairing->end;
    if (address < begin)
        return UINT32_MAX;
    for (unsigned i = first; i + 1 < pairing->count; i++) {
        if (address < pairing->sps[i + 1])
            return i;
    }
    if (pairing->end && address < pairing->end)
        return pairing->count - 1;
    /* Another stack's, unless it is known to lie on this one. */
    return pairing->stack_end && address < pairing->stack_end ? pairing->count : UINT32_MAX;
}

static bool pair_by_address(struct output *output)
{
    const struct ms_pairing *pairing = output->pairing;
    for (unsigned first = 0; first < pairing->python_count;) {
        unsigned last = end_of_run(pairing, first);
        if (last == pairing->python_count)
            return false;
        unsigned native = frame_with(pairing, output->native, pairing->python[last].entry);
        if (native == UINT32_MAX)
            return false;
        if (native == pairing->count || native >= pairing->shown) {
            put_native(output, pairing->count);
            put_python(output, first, pairing->python_count);
            return true;
        }
        put_native(output, native);
        put_python(output, first, last + 1);
        put_native(output, native + 1);
        first = last + 1;
    }
    put_native(output, pairing->count);
    return true;
}

static bool pair_by_count(struct output *output)
{
    const struct ms_pairing *pairing = output->pairing;
    unsigned python = 0;
    if (!pairing->loop)
        return false;
    for (unsigned i = 0; i < pairing->count; i++) {
        /* A return address: the call lies before it. */
        if (pairing->frames[i] - 1 - pairing->loop < pairing->loop_end - pairing->loop) {
            if (python == pairing->python_count)
                return false;
            put_native(output, i);
            put_python(output, python, python + 1);
            python++;
        }
        put_native(output, i + 1);
    }
    if (python < pairing->python_count && !pairing->is_cut)
        return false;
    put_python(output, python, pairing->python_count);
    return true;
}

unsigned ms_pair_frames(const struct ms_pairing *pairing, uintptr_t *merged)
{
    struct output output = {.pairing = pairing, .merged = merged};
    if (!pairing->count || !pairing->python_count)
        return 0;
    bool is_paired = pairing->python[0].entry == 1 ? pair_by_count(&output) : pair_by_address(&output);
    return is_paired ? output.count : 0;
}
