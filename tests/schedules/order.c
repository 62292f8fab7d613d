/* order.c - see order.h. A place is a word of eight bytes: fields beside each other depend on each other. */
#include <stdlib.h>
#include <string.h>

#include "engine.h"
#include "order.h"
#include "real.h"

/* PLACES: what the longest programs touch, several times. TOUCHED: words of one step. SPINS: looks at one or
 * two places by turns, after which it is a spin. ROUNDS: so often two rounds by the clock. */
enum { PLACES = 1 << 18, TOUCHED = 1 << 16, WORD = 8, LOOKS = 256, SPINS = 8, ROUNDS = 2 };
enum { STEPS_KEPT = 1 << 10, ROUND_MOST = STEPS_KEPT / 2 };
enum { FOOTPRINTS = 1 << 20, FOOTPRINT_PLACES = 1 << 24, STEPS = 1 << 16 };
#define FIRST 0x2545f4914f6cdd1du
#define WORLD ((uintptr_t)WORD) /* no memory lies there */
#define TIME  ((uintptr_t)WORD * 2)

struct place {
    uintptr_t at;
    uint32_t run;  /* the one that the hashes are of */
    uint32_t step; /* the one that has it in its list */
    uint8_t tasks; /* a bit for each that ever touched it */
    bool is_written, is_shared;
    bool writes;                   /* in that step */
    uint8_t asleep, asleep_writes; /* a bit for each task whose next step touches it, or writes */
    uint64_t write, reads;
    uint32_t made[TASKS], read[TASKS]; /* each task's latest step that wrote it, or read it: one more than its
                                        * number, 0 for none */
};

/* Which steps of each task come before one whatever happens: all up to the latest, as one more than its
 * number. */
struct past {
    uint32_t upto[TASKS];
};

/* Of it the places are listed, as a number and whether it writes. */
struct footprint {
    uint64_t hash;
    uint32_t first, count;
};

/* What a task did in its latest steps, one after the other: 0 if it wrote. */
struct looks {
    uint64_t latest[2];
    uint32_t same;
};

/* What a task's latest steps touched, and which were the last two that asked for the time: a round is from
 * the one before those on, so that there may be two in it. */
struct rounds {
    uint64_t touched[STEPS_KEPT];
    uint32_t step, asked[2], length, same; /* `same`: steps that touched what those a round before did */
};

static struct order {
    uint32_t run, step, count;
    bool depends_on_all;
    bool overflowed; /* a step touched more than is kept: whatever is touched counts as shared */
    uint64_t name, task_steps[TASKS];
    unsigned asleep;
    uint32_t sleeps[TASKS]; /* with which footprint */
    int latest;             /* who made the latest step */
    struct looks looks[TASKS];
    struct rounds rounds[TASKS];
    int tasks; /* that made a step, at most: all numbers are smaller */
    uint32_t
        step_count; /* of the run, and behind it what came before each, and which raced with later ones */
    struct past of_tasks[TASKS], pasts[STEPS];
    bool raced[STEPS], raced_all;
    uint32_t footprint_count, footprint_places;
    struct footprint footprints[FOOTPRINTS];
    uint32_t listed[FOOTPRINT_PLACES];
    struct place *touched[TOUCHED];
    struct place places[PLACES];
} * order;

bool order_is_on;

void order_prepare(void)
{
    order = real_map(NULL, sizeof *order);
}

static void wake(int task)
{
    const struct footprint *footprint = &order->footprints[order->sleeps[task]];
    uint8_t others = (uint8_t) ~(1u << task);
    for (uint32_t i = footprint->first; i < footprint->first + footprint->count; i++) {
        order->places[order->listed[i] / 2].asleep &= others;
        order->places[order->listed[i] / 2].asleep_writes &= others;
    }
    order->asleep &= others;
}

static void forget_rounds(struct rounds *rounds)
{
    rounds->step = rounds->asked[0] = rounds->asked[1] = rounds->length = rounds->same = 0;
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
    while (order->asleep)
        wake(__builtin_ctz(order->asleep));
    order->latest = -1;
    memset(order->looks, 0, sizeof order->looks);
    for (int task = 0; task < TASKS; task++)
        forget_rounds(&order->rounds[task]);
    memset(order->task_steps, 0, sizeof order->task_steps);
    memset(order->of_tasks, 0, sizeof order->of_tasks);
    memset(order->raced, 0, order->step_count * sizeof *order->raced);
    order->step_count = 0;
    order->raced_all = false;
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

void order_note_world(bool changes)
{
    if (engine_current() >= 0)
        touch(WORLD, changes);
}

void order_note_time(bool goes)
{
    if (engine_current() >= 0)
        touch(TIME, goes);
}

void order_all(void)
{
    order->depends_on_all = true;
}

/* Nothing of other runs' is known of it. */
static void begin_run(struct place *place)
{
    if (place->run == order->run)
        return;
    place->run = order->run;
    place->write = place->reads = 0;
    memset(place->made, 0, sizeof place->made);
    memset(place->read, 0, sizeof place->read);
}

/* Who touches a place, over all schedules: it is shared once two do, of whom one writes. Before, who touched
 * it says nothing of the order in which tasks made their steps. */
static void learn(struct place *place, int task)
{
    place->tasks |= (uint8_t)(1u << task);
    place->is_written |= place->writes;
    place->is_shared |= place->is_written && place->tasks & (place->tasks - 1);
}

/* What others did before to a place, on which this step depends: the latest of each. */
static void find_others(struct place *place, int task, struct past *latest)
{
    for (int other = 0; other < order->tasks; other++) {
        uint32_t made = place->made[other], read = place->writes ? place->read[other] : 0;
        uint32_t step = made > read ? made : read;
        if (other != task && step > latest->upto[other])
            latest->upto[other] = step;
    }
}

static void join(struct past *past, const struct past *with)
{
    for (int task = 0; task < order->tasks; task++) {
        if (past->upto[task] < with->upto[task])
            past->upto[task] = with->upto[task];
    }
}

/* The step depends on these; it races with those of which no other one, and no step of its own task's, says
 * that they came before. */
static void note_races(struct past *past, const struct past *latest)
{
    struct past before = *past;
    for (int other = 0; other < order->tasks; other++) {
        struct past by_others = before;
        for (int third = 0; third < order->tasks; third++) {
            if (third != other && latest->upto[third])
                join(&by_others, &order->pasts[latest->upto[third] - 1]);
        }
        if (latest->upto[other] > by_others.upto[other])
            order->raced[latest->upto[other] - 1] = true;
        if (latest->upto[other])
            join(past, &order->pasts[latest->upto[other] - 1]);
    }
    join(past, latest);
}

static void find_races(int task)
{
    struct past latest = {{0}}, *past = &order->of_tasks[task];
    if (task >= order->tasks)
        order->tasks = task + 1;
    for (uint32_t i = 0; i < order->count; i++) {
        if (order->touched[i]->tasks & ~(1u << task))
            find_others(order->touched[i], task, &latest);
    }
    if (order->step_count == STEPS)
        abort();
    note_races(past, &latest);
    order->raced_all |= order->depends_on_all || order->overflowed;
    order->pasts[order->step_count++] = *past;
    past->upto[task] = order->step_count;
    for (uint32_t i = 0; i < order->count; i++) {
        struct place *place = order->touched[i];
        *(place->writes ? &place->made[task] : &place->read[task]) = order->step_count;
    }
}

bool order_raced(uint32_t step)
{
    return order->raced_all || order->raced[step];
}

static uint64_t name_of_step(int task)
{
    uint64_t hash = mix(mix(FIRST, (uint64_t)task), ++order->task_steps[task]);
    if (order->depends_on_all)
        hash = mix(hash, order->name);
    for (uint32_t i = 0; i < order->count; i++) {
        struct place *place = order->touched[i];
        if (place->is_shared)
            hash = mix(mix(mix(hash, place->at + place->writes), place->write),
                       place->writes ? place->reads : 0);
    }
    return hash;
}

/* The number of what the step has touched. Those that differ in nothing share one. */
static uint32_t footprint_of_step(void)
{
    uint64_t hash = FIRST;
    uint32_t first = order->footprint_places;
    if (order->depends_on_all || order->overflowed || order->count > FOOTPRINT_PLACES - first)
        return ORDER_ANY;
    for (uint32_t i = 0; i < order->count; i++) {
        const struct place *place = order->touched[i];
        order->listed[order->footprint_places++] = (uint32_t)(place - order->places) * 2 + place->writes;
        hash += mix(place->at, place->writes);
    }
    for (size_t i = hash >> 20;; i++) {
        struct footprint *footprint = &order->footprints[i & (FOOTPRINTS - 1)];
        uint32_t number = (uint32_t)(footprint - order->footprints);
        if (number <= ORDER_ANY || (footprint->hash && footprint->hash != hash))
            continue;
        if (footprint->hash || order->footprint_count == FOOTPRINTS / 2) {
            order->footprint_places = first;
            return footprint->hash ? number : ORDER_ANY;
        }
        order->footprint_count++;
        *footprint = (struct footprint){hash, first, order->footprint_places - first};
        return number;
    }
}

void order_sleep(int task, uint32_t footprint)
{
    const struct footprint *f = &order->footprints[footprint];
    order->sleeps[task] = footprint;
    order->asleep |= 1u << task;
    for (uint32_t i = f->first; i < f->first + f->count; i++) {
        struct place *place = &order->places[order->listed[i] / 2];
        place->asleep |= (uint8_t)(1u << task);
        place->asleep_writes |= (uint8_t)((order->listed[i] & 1) << task);
    }
}

unsigned order_asleep(void)
{
    return order->asleep;
}

/* Whoever is asleep and depends on this step. */
static void wake_others(int task)
{
    unsigned woken = order->depends_on_all ? ~0u : 0;
    for (uint32_t i = 0; i < order->count; i++) {
        const struct place *place = order->touched[i];
        woken |= place->writes ? place->asleep : place->asleep_writes;
    }
    for (unsigned i = 0; i < TASKS; i++)
        woken |= (unsigned)(order->sleeps[i] == ORDER_ANY) << i;
    for (woken &= order->asleep & ~(1u << task); woken; woken &= woken - 1)
        wake(__builtin_ctz(woken));
}

/* Whether the task has only looked at the same for a while, and nobody else has made a step. */
static bool note_look(int task)
{
    struct looks *looks = &order->looks[task];
    uint64_t look = FIRST;
    for (uint32_t i = 0; i < order->count; i++)
        look = order->touched[i]->writes ? 0 : look ? look + mix(0, order->touched[i]->at) : 0;
    if (order->latest != task || order->depends_on_all || !look || look != looks->latest[1])
        looks->same = 0;
    else
        looks->same++;
    looks->latest[1] = order->latest == task ? looks->latest[0] : 0;
    looks->latest[0] = look;
    order->latest = task;
    return looks->same > SPINS;
}

/* Whether the task goes through the same steps for a while, from one look at the clock to the next, and
 * nobody else has made one: so it waits for a time, or for another task. */
static bool note_round(int task)
{
    struct rounds *rounds = &order->rounds[task];
    uint64_t touched = FIRST;
    bool asks = false;
    for (uint32_t i = 0; i < order->count; i++) {
        const struct place *place = order->touched[i];
        asks |= place->at == TIME;
        touched = mix(touched, place->at + (place->writes && place->at != TIME));
    }
    if (order->latest != task || order->depends_on_all)
        forget_rounds(rounds);
    bool is_same = rounds->length && touched == rounds->touched[(rounds->step - rounds->length) % STEPS_KEPT];
    rounds->same = is_same ? rounds->same + 1 : 0;
    rounds->touched[rounds->step++ % STEPS_KEPT] = touched;
    if (asks) {
        uint32_t length = rounds->asked[1] ? rounds->step - rounds->asked[1] : 0;
        rounds->same = length == rounds->length ? rounds->same : 0;
        rounds->length = length < ROUND_MOST ? length : 0;
        rounds->asked[1] = rounds->asked[0];
        rounds->asked[0] = rounds->step;
    }
    return rounds->length && rounds->same > ROUNDS * 2 * rounds->length;
}

/* Of the step that is the task's latest. */
static unsigned apart_from(int task)
{
    unsigned apart = 0;
    for (int other = 0; other < order->tasks; other++) {
        bool is_past = order->of_tasks[task].upto[other] >= order->of_tasks[other].upto[other];
        apart |= (unsigned)!is_past << other;
    }
    return apart;
}

void order_end_step(int task, struct step_end *end_p)
{
    for (uint32_t i = 0; i < order->count; i++) {
        begin_run(order->touched[i]);
        learn(order->touched[i], task);
    }
    find_races(task);
    uint64_t hash = name_of_step(task);
    for (uint32_t i = 0; i < order->count; i++) {
        struct place *place = order->touched[i];
        if (place->writes)
            place->write = hash, place->reads = 0;
        else
            place->reads += hash;
    }
    order->name += hash; /* steps that commute come in any order */
    bool is_in_round = note_round(task);
    *end_p =
        (struct step_end){order->name, apart_from(task), note_look(task) || is_in_round, footprint_of_step()};
    wake_others(task);
    order->step++;
    order->count = 0;
    order->depends_on_all = false;
}
