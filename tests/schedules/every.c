/* every.c - all schedules of a program with up to so many preemptions, but those that only commute.
 *
 * A preemption takes the turn from a task that could go on. Where the task that runs waits or ends, each of
 * the others is tried, which costs nothing. A schedule is run as far as its choices are given, and then
 * without a preemption to its end; each place behind the last choice, and each task that could have gone on
 * there, is a schedule to be made. Two things are left out:
 *
 * - What was seen: if the steps so far differ from others' by steps that commute alone (order.h), and the
 *   same task goes on with no fewer preemptions left than now, all that follows has been looked at, or will
 *   be. (Happens-before caching: Musuvathi and Qadeer, "Partial-order reduction for context-bounded state
 *   exploration", 2007.)
 * - A preemption before a step that touches nothing which another task touches: one behind it does the same,
 *   and costs no more. What tasks share is learned on the way; when it was more than thought, all begins
 * anew.
 *
 * Time stands while anybody can go on. */
#include <stdlib.h>
#include <string.h>

#include "every.h"
#include "order.h"
#include "real.h"

enum { NODES = 1 << 16, ITEMS = 1 << 26, SEEN = 1 << 26, ENDS = 1 << 18, LEVELS = 8, NONE = -1 };

/* A place at which somebody else could have been chosen. */
struct node {
    uint64_t name;
    struct choice choice; /* of the run; `to` is who went on */
    uint8_t ready;        /* a bit for each task */
    bool stays, shared;   /* who ran could go on; and what it did then, others see */
};

/* A schedule to be made: that of `before`, and one more choice. */
struct item {
    int32_t before, next;
    uint64_t key;
    struct choice choice;
    uint8_t used;
};

/* By what has happened and who goes on: preemptions made, and one. */
struct seen {
    uint64_t key;
    uint8_t used;
};

struct table {
    struct node nodes[NODES];
    struct item items[ITEMS];
    struct seen seen[SEEN], ends[ENDS];
};

static struct search {
    struct every *every;
    uint32_t node_count, item_count;
    unsigned first, used; /* nodes before are the plan's; preemptions made */
    int32_t waiting[LEVELS];
    struct table *table;
    uint64_t seen_count;
    bool is_full;
} * search;

static struct seen *find_seen(struct seen *table, size_t count, uint64_t key)
{
    key += !key;
    for (size_t i = key >> 7;; i++) {
        struct seen *seen = &table[i & (count - 1)];
        if (!seen->key)
            seen->key = key;
        if (seen->key == key)
            return seen;
    }
}

static uint64_t key_of(uint64_t name, unsigned to)
{
    uint64_t key = (name ^ (to + 1)) * 0x9e3779b97f4a7c15u;
    return key ^ key >> 31;
}

/* Whether all that follows has been looked at; from now on it has. */
static bool was_seen(uint64_t key, unsigned used)
{
    struct seen *seen = find_seen(search->table->seen, SEEN, key);
    if (seen->used && seen->used <= used + 1)
        return true;
    search->is_full |= !seen->used && ++search->seen_count > SEEN / 2;
    seen->used = (uint8_t)(used + 1);
    return false;
}

/* The engine's: somebody is chosen. Whether the schedule is to end here. */
static bool visit(const struct choice *choice, unsigned ready, bool stays, bool is_planned)
{
    struct search *s = search;
    bool shared = true;
    uint64_t name = choice->from == TASKS ? 1 : order_end_step(choice->from, &shared);
    if (s->node_count)
        s->table->nodes[s->node_count - 1].shared = shared;
    if (s->node_count == NODES)
        abort();
    s->table->nodes[s->node_count++] = (struct node){
        .name = name, .choice = *choice, .ready = (uint8_t)ready, .stays = stays, .shared = true};
    if (is_planned) {
        s->first = s->node_count;
        return false;
    }
    return s->every->reduces && shared && was_seen(key_of(name, choice->to), s->used);
}

static void push(int32_t before, uint64_t key, struct choice choice, unsigned used)
{
    struct search *s = search;
    s->is_full |= s->item_count == ITEMS - 1;
    if (s->is_full)
        return;
    s->table->items[s->item_count] = (struct item){before, s->waiting[used], key, choice, (uint8_t)used};
    s->waiting[used] = (int32_t)s->item_count++;
}

/* What else could have been done, behind the last choice. A cut schedule's last node is others'. */
static void push_others(int32_t item, bool is_cut)
{
    struct search *s = search;
    uint32_t count = s->node_count - is_cut;
    for (uint32_t i = s->first; i < count; i++) {
        const struct node *node = &s->table->nodes[i];
        unsigned used = s->used + node->stays;
        if (used > s->every->preemptions || (s->every->reduces && node->stays && !node->shared))
            continue;
        for (unsigned to = 0; to < TASKS; to++) {
            uint64_t key = key_of(node->name, to);
            if (!(node->ready >> to & 1) || to == node->choice.to)
                continue;
            struct choice choice = {node->choice.step, node->choice.from, (uint8_t)to};
            if (!s->every->reduces || !was_seen(key, used))
                push(item, key, choice, used);
        }
    }
}

static unsigned plan_of(int32_t item, struct choice *plan)
{
    unsigned count = 0;
    for (int32_t i = item; i != NONE; i = search->table->items[i].before)
        count++;
    if (count > CHOICES)
        abort();
    for (int32_t i = item, at = (int32_t)count; i != NONE; i = search->table->items[i].before)
        plan[--at] = search->table->items[i].choice;
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
    s->node_count = s->first = 0;
    s->used = item == NONE ? 0 : s->table->items[item].used;
    struct schedule schedule = {
        .rule = RULE_PLAN, .plan = plan, .plan_count = *plan_count_p, .ordered = true, .visit = visit};
    every->schedules++;
    if (every->run(&schedule))
        return true;
    every->cut += every->outcome->cut;
    if (every->wants_ends && !every->outcome->cut)
        note_end();
    push_others(item, every->outcome->cut);
    return false;
}

/* From the beginning, fewer preemptions first; whether all were made. */
static bool search_all(struct choice *plan, unsigned *plan_count_p)
{
    struct search *s = search;
    s->item_count = 0;
    for (unsigned level = 0; level < LEVELS; level++)
        s->waiting[level] = NONE;
    s->every->found = run_item(NONE, plan, plan_count_p);
    for (unsigned level = 0; level <= s->every->preemptions; level++) {
        while (s->waiting[level] != NONE && !s->every->found) {
            int32_t item = s->waiting[level];
            if (s->every->schedules >= s->every->most || s->is_full)
                return false;
            s->waiting[level] = s->table->items[item].next;
            s->every->found = run_item(item, plan, plan_count_p);
        }
    }
    return !s->every->found;
}

void every_prepare(void)
{
    search = real_map(NULL, sizeof *search);
}

void every_schedule(struct every *every, struct choice *plan, unsigned *plan_count_p)
{
    search->every = every;
    do {
        search->table = real_map(NULL, sizeof *search->table);
        search->is_full = false;
        search->seen_count = 0;
        every->cut = every->ends = every->ends_sum = 0;
        order_learned();
        every->all = search_all(plan, plan_count_p);
        real_unmap(search->table, sizeof *search->table);
    } while (every->all && order_learned());
}
