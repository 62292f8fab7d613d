/*
 * Costs and faults of single functions (MEMSIM_COST, MEMSIM_FAIL), and the log of calls that are not
 * simulated. No lock; the rules never change once they were read. The tables are allocated when they are
 * read, for as long as the process lives.
 */
#include "sim/cuda/rules.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cuda/sim.h"
#include "sim/log.h"

struct fault_rule {
    unsigned long long first, last; /* calls */
    int status;
    unsigned fn;
};

#define MAX_RULES 64
#define ANY       UINT_MAX /* whichever function is called */

static const struct sim_rules *own;
static uint64_t *costs;
static atomic_ullong *calls, all_calls;
/* How often calls of a function took of a device's capacity or gave back, and how much. */
static struct {
    atomic_ullong times, bytes;
} * moves;
static _Thread_local unsigned in_call = UINT_MAX; /* the function that this thread called last */
static struct fault_rule rules[MAX_RULES];
static unsigned rule_count;
static bool has_costs;

static unsigned total(void)
{
    return own->count + SIM_RULES_WORK_COUNT;
}

static bool only_cost(unsigned fn)
{
    return fn == total() - 1;
}

int sim_rules_find(const char *name, size_t length)
{
    for (unsigned i = 0; i < total(); i++)
        if (!strncmp(own->names[i], name, length) && !own->names[i][length])
            return (int)i;
    return -1;
}

/* Names of the other simulated libraries are theirs to judge. */
static bool foreign(const char *name)
{
    for (const char *const *begin = own->foreign; *begin; begin++)
        if (!strncmp(name, *begin, strlen(*begin)))
            return true;
    return false;
}

static bool read_unsigned(const char *text, char **end_p, unsigned long long *value_p)
{
    if (!isdigit((unsigned char)*text))
        return false;
    errno = 0;
    *value_p = strtoull(text, end_p, 10);
    return !errno;
}

/* name=ns */
static bool read_cost(const char *item)
{
    const char *equals = strchr(item, '=');
    unsigned long long ns;
    char *end;

    if (!equals || !read_unsigned(equals + 1, &end, &ns) || *end)
        return false;
    int fn = sim_rules_find(item, (size_t)(equals - item));
    if (fn < 0)
        return foreign(item);
    costs[fn] = ns;
    has_costs = true;
    return true;
}

/* name@n: that call; name@n+k: and k more; name@n+: and all later ones. */
static bool read_calls(const char *text, char **end_p, struct fault_rule *rule)
{
    unsigned long long more;

    if (!read_unsigned(text, end_p, &rule->first) || !rule->first)
        return false;
    rule->last = rule->first;
    if (**end_p != '+')
        return true;
    rule->last = ULLONG_MAX;
    ++*end_p;
    if (**end_p == '=')
        return true;
    if (!read_unsigned(*end_p, end_p, &more) || more > ULLONG_MAX - rule->first)
        return false;
    rule->last = rule->first + more;
    return true;
}

/* A rule: name@calls=status. */
static bool read_rule(const char *item)
{
    const char *at = strchr(item, '@');
    struct fault_rule rule = {0};
    unsigned long long status;
    char *end;

    if (!at || !read_calls(at + 1, &end, &rule))
        return false;
    if (*end != '=' || !read_unsigned(end + 1, &end, &status) || *end || !status)
        return false;
    bool any = at - item == 3 && !strncmp(item, "any", 3);
    int fn = any ? 0 : sim_rules_find(item, (size_t)(at - item));
    if (fn < 0)
        return foreign(item);
    if (status > own->status_most || (!any && only_cost((unsigned)fn)) || rule_count == MAX_RULES)
        return false;
    rule.status = (int)status;
    rule.fn = any ? ANY : (unsigned)fn;
    rules[rule_count++] = rule;
    return true;
}

static void read_list(const char *name, bool (*read_item)(const char *item), const char *allowed)
{
    const char *text = secure_getenv(name);
    char *copy = text && *text ? strdup(text) : NULL;
    char *rest = copy, *item;

    while (rest && (item = strsep(&rest, ",")))
        if (*item && !read_item(item))
            sim_config_complain(name, item, allowed);
    free(copy);
}

void sim_rules_read(const struct sim_rules *of)
{
    char allowed[200];

    own = of;
    costs = calloc(total(), sizeof *costs);
    calls = calloc(total(), sizeof *calls);
    moves = calloc(total(), sizeof *moves);
    if (!costs || !calls || !moves)
        abort(); /* a simulated library without its rules would test nothing */
    sim_config_read();
    snprintf(allowed, sizeof allowed,
             "name=ns,... with the name of a %s function, kernel, copy, copy_kib or memset", own->owner);
    read_list("MEMSIM_COST", read_cost, allowed);
    snprintf(allowed, sizeof allowed,
             "name@n=status,..., name@n+k=status or name@n+=status with the name of a %s function, any, "
             "kernel, copy or memset",
             own->owner);
    read_list("MEMSIM_FAIL", read_rule, allowed);
}

bool sim_rules_asked(void)
{
    return rule_count || has_costs || sim_config.counts;
}

bool sim_rules_has_faults(void)
{
    return rule_count;
}

uint64_t sim_rules_cost(unsigned fn)
{
    return costs[fn];
}

int sim_rules_count(unsigned fn)
{
    in_call = fn;
    unsigned long long nth = 1 + atomic_fetch_add_explicit(&calls[fn], 1, memory_order_relaxed), of_all = 0;

    if (fn < own->count)
        of_all = 1 + atomic_fetch_add_explicit(&all_calls, 1, memory_order_relaxed);
    for (unsigned i = 0; i < rule_count; i++) {
        unsigned long long which = rules[i].fn == ANY ? of_all : rules[i].fn == fn ? nth : 0;
        if (which >= rules[i].first && which <= rules[i].last)
            return rules[i].status;
    }
    return 0;
}

void sim_rules_moved(size_t bytes)
{
    if (!sim_config.counts || in_call >= total())
        return;
    atomic_fetch_add_explicit(&moves[in_call].times, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&moves[in_call].bytes, bytes, memory_order_relaxed);
}

long long sim_rules_told(const char *name)
{
    size_t length = strcspn(name, " ");
    int fn = sim_rules_find(name, length);

    if (fn < 0)
        return -1;
    if (!name[length])
        return (long long)atomic_load_explicit(&calls[fn], memory_order_relaxed);
    if (!strcmp(name + length, " moves"))
        return (long long)atomic_load_explicit(&moves[fn].times, memory_order_relaxed);
    if (!strcmp(name + length, " bytes"))
        return (long long)atomic_load_explicit(&moves[fn].bytes, memory_order_relaxed);
    return -1;
}

void sim_rules_note_name(const char *name, unsigned long long nth)
{
    if (atomic_load_explicit(&sim_initialized, memory_order_acquire) >= 0)
        sim_log_line(sim_config.log_path, name, nth);
}

void sim_rules_note(unsigned fn, unsigned long long nth)
{
    sim_rules_note_name(own->names[fn], nth);
}
