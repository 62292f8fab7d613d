/* order.c - see order.h. A place is a word of eight bytes: fields beside each other depend on each other. */
#include <string.h>

#include "engine.h"
#include "order.h"
#include "real.h"

/* PLACES: what the longest programs touch, several times. TOUCHED: words of one step. */
enum { PLACES = 1 << 18, TOUCHED = 1 << 16, WORD = 8, LOOKS = 256 };
#define FIRST 0x2545f4914f6cdd1du
#define WORLD ((uintptr_t)WORD) /* no memory lies there */

struct place {
    uintptr_t at;
    uint32_t run;  /* the one that the hashes are of */
    uint32_t step; /* the one that has it in its list */
    uint8_t tasks; /* a bit for each that ever touched it */
    bool is_written, is_shared;
    bool writes; /* in that step */
    uint64_t write, reads;
};

static struct order {
    uint32_t run, step, count;
    bool learned, depends_on_all;
    bool overflowed; /* a step touched more than is kept: whatever is touched counts as shared */
    uint64_t name, task_steps[TASKS];
    struct place *touched[TOUCHED];
    struct place places[PLACES];
} * order;

bool order_is_on;

void order_prepare(void)
{
    order = real_map(NULL, sizeof *order);
}

void order_begin(bool on)
{
    order_is_on = on;
    if (!on)
        return;
    order->run++;
    order->step++;
    order->count = 0;
    order->name = 0;
    order->depends_on_all = false;
    memset(order->task_steps, 0, sizeof order->task_steps);
}

static uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29;
}

static struct place *place_of(uintptr_t at)
{
    size_t i = (size_t)(mix(0, at) >> 20);
    for (unsigned looks = 0; looks < LOOKS; looks++, i++) {
        struct place *place = &order->places[i & (PLACES - 1)];
        if (place->at && place->at != at)
            continue;
        place->at = at;
        return place;
    }
    return NULL;
}

/* Of a step that touches more than is kept nothing is known: it depends on all steps before and behind. */
static void overflow(void)
{
    order->learned |= !order->overflowed;
    order->overflowed = order->depends_on_all = true;
}

static void touch(uintptr_t at, bool writes)
{
    struct place *place = place_of(at);
    if (!place || (place->step != order->step && order->count == TOUCHED)) {
        overflow();
        return;
    }
    if (place->step == order->step) {
        place->writes |= writes;
        return;
    }
    place->step = order->step;
    place->writes = writes;
    order->touched[order->count++] = place;
}

void order_note_access(const volatile void *p, size_t bytes, bool writes)
{
    struct span tls = freeze_tls();
    uintptr_t at = (uintptr_t)p;
    if (engine_current() < 0 || at - (uintptr_t)tls.at < tls.bytes)
        return;
    for (uintptr_t word = at & ~(uintptr_t)(WORD - 1); word < at + bytes; word += WORD)
        touch(word, writes);
}

void order_note_world(void)
{
    if (engine_current() >= 0)
        touch(WORLD, true);
}

void order_all(void)
{
    order->depends_on_all = true;
}

/* Who touches a place, over all schedules: it is shared once two do, of whom one writes. */
static void learn(struct place *place, int task)
{
    place->tasks |= (uint8_t)(1u << task);
    place->is_written |= place->writes;
    if (place->is_shared || !place->is_written || !(place->tasks & (place->tasks - 1)))
        return;
    place->is_shared = true;
    order->learned = true;
}

static uint64_t name_of_step(int task)
{
    uint64_t hash = mix(mix(FIRST, (uint64_t)task), ++order->task_steps[task]);
    if (order->depends_on_all)
        hash = mix(hash, order->name);
    for (uint32_t i = 0; i < order->count; i++) {
        struct place *place = order->touched[i];
        if (place->run != order->run)
            place->write = place->reads = 0;
        place->run = order->run;
        if (place->is_shared)
            hash = mix(mix(mix(hash, place->at + place->writes), place->write),
                       place->writes ? place->reads : 0);
    }
    return hash;
}

uint64_t order_end_step(int task, bool *touched_shared_p)
{
    bool shared = order->depends_on_all || order->overflowed;
    for (uint32_t i = 0; i < order->count; i++)
        learn(order->touched[i], task);
    uint64_t hash = name_of_step(task);
    for (uint32_t i = 0; i < order->count; i++) {
        struct place *place = order->touched[i];
        shared |= place->is_shared;
        if (place->writes)
            place->write = hash, place->reads = 0;
        else
            place->reads += hash;
    }
    order->step++;
    order->count = 0;
    order->depends_on_all = false;
    order->name += hash; /* steps that commute come in any order */
    *touched_shared_p = shared;
    return order->name;
}

bool order_learned(void)
{
    bool learned = order->learned;
    order->learned = false;
    return learned;
}
