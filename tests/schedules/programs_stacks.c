/* programs_stacks.c - the tree of stacks: who interns the same gets the same, and reads back what was put in.
 */
#include <stddef.h>

#include "engine.h"
#include "base/objects/objects.h"
#include "programs.h"
#include "unwind/stack.h"

enum { TASKS_MOST = 3, STACKS = 4, DEPTH = 4, NODES_BEFORE = 2044 };

static ms_stack_id ids[TASKS_MOST][STACKS];

/* Stack `i` differs from others in its innermost frames, the more the larger it is. */
static unsigned frames_of(unsigned i, uintptr_t *frames)
{
    for (unsigned k = 0; k < DEPTH; k++)
        frames[k] = 0x40000000u + k * 0x1000u + (k <= i ? i : 0);
    return DEPTH;
}

static void expect_stack(ms_stack_id id, unsigned i)
{
    uintptr_t frames[DEPTH], frame = 0;
    uint32_t generation = 0;
    unsigned count = frames_of(i, frames);
    for (unsigned k = 0; k < count; k++) {
        if (ms_stack_node(id, &id, &frame, &generation) != 0 || frame != frames[k]) {
            engine_fail("stack %u reads back as another", i);
            return;
        }
    }
    if (id)
        engine_fail("stack %u is longer than it was", i);
}

/* At once, or from a stack that was met before on. */
static void intern(void *arg)
{
    size_t me = (size_t)arg;
    for (unsigned k = 0; k < STACKS; k++) {
        unsigned i = (k + (unsigned)me) % STACKS;
        uintptr_t frames[DEPTH];
        ms_stack_id parts[DEPTH];
        unsigned count = frames_of(i, frames);
        if (me == 1) {
            ms_stack_id outer = ms_stack_intern(frames + 2, count - 2);
            ids[me][i] = ms_stack_intern_below(outer, frames, 2, parts);
            if (parts[0] != ids[me][i])
                engine_fail("stack %u is not where it was said to be", i);
        } else {
            ids[me][i] = ms_stack_intern(frames, count);
        }
        expect_stack(ids[me][i], i);
    }
}

static void start(void)
{
    for (size_t i = 0; i < TASKS_MOST; i++)
        engine_task(intern, (void *)i);
}

/* The paths of the tree: all share the outermost frames, as far as they are the same. */
static unsigned nodes_in_all(void)
{
    unsigned count = 0;
    for (unsigned i = 0; i < STACKS; i++) {
        uintptr_t mine[DEPTH], others[DEPTH];
        frames_of(i, mine);
        for (unsigned k = 0; k < DEPTH; k++) {
            bool known = false;
            for (unsigned j = 0; j < i && !known; j++) {
                known = true;
                frames_of(j, others);
                for (unsigned f = k; f < DEPTH; f++)
                    known &= mine[f] == others[f];
            }
            count += !known;
        }
    }
    return count;
}

static unsigned before;

static void check(void)
{
    for (unsigned i = 0; i < STACKS; i++) {
        if (ids[0][i] != ids[1][i] || ids[0][i] != ids[2][i])
            engine_fail("stack %u has more than one number", i);
        expect_stack(ids[0][i], i);
    }
    if (ms_stack_count() != before + nodes_in_all() || ms_stack_dropped())
        engine_fail("there are %u nodes for %u", ms_stack_count() - before, nodes_in_all());
}

static void prepare(void)
{
    ms_objects_refresh();
    before = ms_stack_count();
}

/* The index of nodes is to be half full, and the table at the end of its memory, in the middle of it. */
static void prepare_grown(void)
{
    ms_objects_refresh();
    for (uintptr_t i = 0; i < NODES_BEFORE; i++) {
        uintptr_t frame = 0x50000000u + i;
        ms_stack_intern(&frame, 1);
    }
    before = ms_stack_count();
}

static void nothing(void)
{
}

/* What is loaded is listed while another task reads as far as the list says that it goes, with no lock. */
static void list_objects(void *arg)
{
    (void)arg;
    ms_objects_refresh();
}

static void read_objects(void *arg)
{
    (void)arg;
    for (unsigned look = 0; look < 3; look++) {
        for (uint32_t i = 0; i < ms_object_count(); i++) {
            const struct ms_object *object = ms_object(i);
            if (!object || object->start >= object->end || object->generation)
                engine_fail("object %u of %u is not there yet", i, ms_object_count());
        }
    }
}

static void start_objects(void)
{
    engine_task(list_objects, NULL);
    engine_task(read_objects, NULL);
}

static void check_objects(void)
{
    if (!ms_object_count() || ms_objects_dropped())
        engine_fail("there are %u objects, %u found no room", ms_object_count(), ms_objects_dropped());
}

const struct program stacks_programs[] = {
    {"objects", "one lists what is loaded, one reads the list", nothing, start_objects, check_objects, RIGHT},
    {"stacks", "three intern the same stacks, whole and in parts", prepare, start, check, RIGHT},
    {"stacks-grow", "likewise while the index and the table grow", prepare_grown, start, check, RIGHT},
    {NULL, NULL, NULL, NULL, NULL, RIGHT},
};
