/* every.c - all schedules of a program with up to so many preemptions, but those that only commute.
 *
 * A preemption takes the turn from a task that could go on. Where the task that runs waits or ends, each of
 * the others is tried, which costs nothing. A schedule is run as far as its choices are given, and then
 * without a preemption to its end; each place behind the last choice, and each task that could have gone on
 * there, is a schedule to be made. Four things are left out:
 *
 * - What was seen: if the steps so far differ from others' by steps that commute alone (order.h), and the
 *   same task goes on with no fewer preemptions left than now, all that follows has been looked at, or will
 *   be. (Happens-before caching: Musuvathi and Qadeer, "Partial-order reduction for context-bounded state
 *   exploration", 2007.)
 * - A preemption that comes too early: if no step of others' depends on the step that it keeps from being
 *   made, until that is made after all, then it could have come behind that step, and the schedule has no
 *   more of them for it. So the step is asleep (Godefroid's sleep sets) until another's step depends on it,
 *   and who is asleep is not given the turn. What was seen with somebody asleep was seen only as far as that.
 * - A preemption before a step that races with no later one (order.h), for the same reason: what others do
 *   while it waits depends on it in no order but that. Which steps race the schedule itself shows, also those
 *   before its last choices. (Flanagan and Godefroid, "Dynamic partial-order reduction for model checking
 *   software", 2005; Coons, Musuvathi and McKinley, "Bounded partial-order reduction", 2013.) It need not be
 *   looked for in each order of steps that commute: whichever was first shows it, with no more preemptions.
 * - A preemption within a spin, from its fifth round on: how often a task has looked before it got the turn
 *   again only says how often it will look until it gives up. What races there is tried before the spin's
 *   first such round, and shows there with which steps it raced before.
 *
 * Time stands while anybody can go on. */
#include <stdlib.h>
#include <string.h>

#include "every.h"
#include "order.h"
#include "real.h"

enum {
    NODES = 1 << 16,
    ITEMS = 1 << 26,
    SEEN = 1 << 28,
    SEEN_FIRST = 1 << 24,
    SEEN_GROWS = 16,
    ENDS = 1 << 18,
    LEVELS = 8,
    NONE = -1
};

/* A place at which somebody else could have been chosen. */
struct node {
    uint64_t name;
    struct choice choice;  /* of the run; `to` is who went on */
    uint8_t ready, asleep; /* a bit for each task */
    bool stays;            /* who ran could go on */
    bool spins;            /* ... and is in the middle of a spin */
    uint32_t footprint;    /* of the step behind it */
    unsigned planned;      /* choices of the plan that come before it */
};

/* A schedule to be made: that of `before`, and one more choice. */
struct item {
    int32_t before, next;
    uint32_t sleeps; /* of a preemption: the footprint of the step that it keeps from being made; else 0 */
    struct choice choice;
    uint8_t used;
};

/* By what has happened and who goes on, of which this is a part: preemptions made, and one; who is asleep. */
struct seen {
    uint64_t key : 52, used : 4, asleep : 8;
};

struct table {
    struct node nodes[NODES];
    struct item items[ITEMS];
    uint32_t sleeps[CHOICES]; /* of the plan's choices */
    int32_t items_of_plan[CHOICES];
    struct seen seen[SEEN], ends[ENDS];
};

static struct search {
    struct every *every;
    uint32_t node_count, item_count;
    unsigned first, used; /* nodes before are the plan's; preemptions made */
    unsigned planned, preemptions;
    const struct choice *plan;
    bool is_others; /* the last node of what was cut */
    int32_t waiting[LEVELS];
    struct table *table;
    uint64_t seen_count, seen_most; /* of the table of what was seen, which grows from search to search */
    bool is_full;
} * search;

static struct seen *find_seen(struct seen *table, size_t count, uint64_t key)
{
    uint64_t part = (key >> 12) + !(key >> 12);
    for (size_t i = key;; i++) {
        struct seen *seen = &table[i & (count - 1)];
        if (!seen->key)
            seen->key = part;
        if (seen->key == part)
            return seen;
    }
}

static uint64_t key_of(uint64_t name, unsigned to)
{
    uint64_t key = (name ^ (to + 1)) * 0x9e3779b97f4a7c15u;
    key = (key ^ key >> 32) * 0xd6e8feb86659fd93u;
    return key ^ key >> 32;
}

/* Whether all that follows has been looked at; from now on it has. */
static bool was_seen(uint64_t key, unsigned used, unsigned asleep)
{
    struct seen *seen = find_seen(search->table->seen, search->seen_most, key);
    bool covers = seen->used && seen->used <= used + 1 && !(seen->asleep & ~asleep);
    if (covers)
        return true;
    search->is_full |= !seen->used && ++search->seen_count > search->seen_most / 2;
    seen->used = (used + 1) & 15;
    seen->asleep = asleep & 255;
    return false;
}

/* Of somebody who goes on; where the table cannot grow any more, it is kept for what is pushed. */
static bool was_visited(const struct step_end *end, unsigned to)
{
    bool has_room = search->seen_most < SEEN || search->seen_count < SEEN / 4;
    return has_room && was_seen(key_of(end->name, to), search->used, order_asleep());
}

/* The choice is the plan's next: what it keeps from being made is asleep. */
static void note_planned(const struct choice *choice)
{
    struct search *s = search;
    const struct choice *next = &s->plan[s->planned];
    if (next->step != choice->step || next->from != choice->from || next->to != choice->to)
        return;
    if (s->table->sleeps[s->planned])
        order_sleep(choice->from, s->table->sleeps[s->planned]);
    s->planned++;
}

/* The engine's: somebody is chosen. Whether the schedule is to end here. */
static bool visit(const struct choice *choice, unsigned ready, bool stays, bool is_planned)
{
    struct search *s = search;
    struct step_end end = {.name = 1};
    if (choice->from != TASKS)
        order_end_step(choice->from, &end);
    if (s->node_count)
        s->table->nodes[s->node_count - 1].footprint = end.footprint;
    if (s->node_count == NODES)
        abort();
    s->table->nodes[s->node_count++] = (struct node){.name = end.name,
                                                     .choice = *choice,
                                                     .ready = (uint8_t)ready,
                                                     .asleep = (uint8_t)order_asleep(),
                                                     .stays = stays,
                                                     .spins = end.spins && stays,
                                                     .footprint = ORDER_ANY,
                                                     .planned = s->planned};
    if (is_planned) {
        note_planned(choice);
        s->first = s->node_count;
        return false;
    }
    if (!s->every->reduces || (end.spins && stays))
        return false;
    if (order_asleep() >> choice->to & 1)
        return true;
    /* Only where steps that commute could have brought another task here, who would not go on. */
    s->is_others = end.apart & ready && was_visited(&end, choice->to);
    return s->is_others;
}

static void push(int32_t before, uint32_t sleeps, struct choice choice, unsigned used)
{
    struct search *s = search;
    s->is_full |= s->item_count == ITEMS - 1;
    if (s->is_full)
        return;
    s->table->items[s->item_count] = (struct item){before, s->waiting[used], sleeps, choice, (uint8_t)used};
    s->waiting[used] = (int32_t)s->item_count++;
}

/* Who else could have gone on at a place, behind that many preemptions. */
static void push_others_of(const struct node *node, unsigned used)
{
    struct search *s = search;
    bool reduces = s->every->reduces, sleeps = reduces && node->stays;
    unsigned asleep = reduces ? node->asleep : 0;
    int32_t before = node->planned ? s->table->items_of_plan[node->planned - 1] : NONE;
    used += node->stays;
    if (used > s->preemptions || (sleeps && node->spins))
        return;
    for (unsigned to = 0; to < TASKS; to++) {
        struct choice choice = {node->choice.step, node->choice.from, (uint8_t)to};
        if (!(node->ready >> to & 1) || to == node->choice.to || asleep >> to & 1)
            continue;
        if (!reduces ||
            !was_seen(key_of(node->name, to), used, asleep | (sleeps ? 1u << node->choice.from : 0)))
            push(before, sleeps ? node->footprint : 0, choice, used);
    }
}

/* Where a spin began to be one. Who raced with it there raced before as well, which only shows once he comes
 * before that. */
static const struct node *before_spin(uint32_t i)
{
    const struct node *nodes = search->table->nodes;
    while (search->every->reduces && i && nodes[i].spins)
        i--;
    return &nodes[i];
}

/* What else could have been done: behind the last choice anything; before it what is known since now to have
 * come too soon. A cut schedule's last node may be others'. */
static void push_others(void)
{
    struct search *s = search;
    unsigned used = 0;
    uint32_t count = s->node_count - s->is_others;
    for (uint32_t i = 0; i < count; i++) {
        const struct node *node = &s->table->nodes[i];
        bool preempts = node->stays && node->choice.to != node->choice.from;
        bool races = s->every->reduces && node->stays ? !preempts && order_raced(i) : i >= s->first;
        if (races)
            push_others_of(before_spin(i), used);
        used += preempts;
    }
}

static unsigned plan_of(int32_t item, struct choice *plan)
{
    unsigned count = 0;
    for (int32_t i = item; i != NONE; i = search->table->items[i].before)
        count++;
    if (count > CHOICES)
        abort();
    for (int32_t i = item, at = (int32_t)count; i != NONE; i = search->table->items[i].before) {
        plan[--at] = search->table->items[i].choice;
        search->table->items_of_plan[at] = i;
        search->table->sleeps[at] = search->table->items[i].sleeps;
    }
    return count;
}

static void note_end(void)
{
    struct every *every = search->every;
    uint64_t hash = every->end();
    struct seen *seen = find_seen(search->table->ends, ENDS, hash);
    if (seen->used)
        return;
    seen->used = 1;
    every->ends++;
    every->ends_sum += hash * 0x9e3779b97f4a7c15u;
}

/* Whether it failed. */
static bool run_item(int32_t item, struct choice *plan, unsigned *plan_count_p)
{
    struct search *s = search;
    struct every *every = s->every;
    *plan_count_p = plan_of(item, plan);
    s->node_count = s->first = s->planned = 0;
    s->plan = plan;
    s->is_others = false;
    s->used = item == NONE ? 0 : s->table->items[item].used;
    struct schedule schedule = {
        .rule = RULE_PLAN, .plan = plan, .plan_count = *plan_count_p, .ordered = true, .visit = visit};
    every->schedules++;
    if (every->run(&schedule))
        return true;
    every->cut += every->outcome->cut;
    if (every->wants_ends && !every->outcome->cut)
        note_end();
    push_others();
    return false;
}

/* A level that has something to be made, the lowest; NONE: there is nothing more. */
static int lowest(void)
{
    for (unsigned level = 0; level <= search->preemptions; level++) {
        if (search->waiting[level] != NONE)
            return (int)level;
    }
    return NONE;
}

/* From the beginning, fewer preemptions first; whether all were made. */
static bool search_all(struct choice *plan, unsigned *plan_count_p)
{
    struct search *s = search;
    s->item_count = 0;
    for (unsigned level = 0; level < LEVELS; level++)
        s->waiting[level] = NONE;
    s->every->found = run_item(NONE, plan, plan_count_p);
    for (int level; (level = lowest()) != NONE && !s->every->found;) {
        int32_t item = s->waiting[level];
        if (s->every->schedules >= s->every->most || s->is_full)
            return false;
        s->waiting[level] = s->table->items[item].next;
        s->every->found = run_item(item, plan, plan_count_p);
    }
    return !s->every->found;
}

void every_prepare(void)
{
    search = real_map(NULL, sizeof *search);
}

/* Where more is seen than the table has room for, all begins anew with a larger one. */
void every_schedule(struct every *every, struct choice *plan, unsigned *plan_count_p)
{
    search->every = every;
    search->preemptions = every->preemptions;
    for (search->seen_most = SEEN_FIRST;; search->seen_most *= SEEN_GROWS) {
        search->table = real_map(NULL, sizeof *search->table);
        search->is_full = false;
        search->seen_count = 0;
        every->schedules = every->cut = every->ends = every->ends_sum = 0;
        every->all = search_all(plan, plan_count_p);
        real_unmap(search->table, sizeof *search->table);
        if (!search->is_full || every->found || search->seen_most == SEEN)
            return;
    }
}
