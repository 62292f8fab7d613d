/* test_at_fork.c - what files say of a child of fork is called rank by rank, each once. */
#include "base/at_fork.h"

#include "tests/tap.h"

static char order[8];
static unsigned called;

static void note(char name)
{
    order[called++] = name;
}

static void service(void)
{
    note('c');
}
MS_AT_FORK(MS_FORK_SERVICE, service);

static void store(void)
{
    note('a');
}
MS_AT_FORK(MS_FORK_STORE, store);

static void hooks(void)
{
    note('b');
}
MS_AT_FORK(MS_FORK_HOOKS, hooks);

int main(void)
{
    plan(0);
    ms_at_fork_run(MS_FORK_HOOKS);
    ok(called == 1 && order[0] == 'b', "one rank alone");
    called = 0;
    for (enum ms_fork_rank rank = 0; rank < MS_FORK_RANKS; rank++)
        ms_at_fork_run(rank);
    ok(called == 3 && order[0] == 'a' && order[1] == 'b' && order[2] == 'c',
       "all in the order of their ranks: %s", order);
    return done();
}
