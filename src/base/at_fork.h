/* at_fork.h - what begins anew in a child of fork, told by each file that keeps something.
 *
 * Floor 0. The parent's threads do not exist in a child, so its locks are nobody's, and records that they
 * were writing are half written: each file says in one place how it begins anew, and when that is its turn.
 * The linker gathers these lines, so no list names them. They run in a child before it is recorded, and, rank
 * by rank, where another record takes the place of this one (ms_ledger_reset, ms_pool_reset). */
#ifndef MS_BASE_AT_FORK_H
#define MS_BASE_AT_FORK_H

/** In this order; what has the same rank knows nothing of each other. */
enum ms_fork_rank {
    MS_FORK_STORE, /* the tables of the record: no row may be read behind this */
    MS_FORK_BASE,  /* log, memory, auxiliary stacks, loaded objects */
    MS_FORK_STACK,
    MS_FORK_HOOKS,
    MS_FORK_RECORD,
    MS_FORK_BIAS, /* threads as owners of locks, behind what was locked */
    MS_FORK_OWN,  /* what a thread has for itself */
    MS_FORK_POOL,
    MS_FORK_SERVICE, /* what hooks keep of a pool */
    MS_FORK_RANKS
};

struct ms_at_fork {
    void (*begin_anew)(void);
    enum ms_fork_rank rank;
};

/** Has `function` called in its turn: it allocates nothing, takes no lock and calls nobody else's. */
#define MS_AT_FORK(turn, function)                                                                           \
    static const struct ms_at_fork at_fork_##function                                                        \
        __attribute__((used, section("ms_at_fork"))) = {.begin_anew = function, .rank = turn}

/** Calls those of one rank. */
void ms_at_fork_run(enum ms_fork_rank rank);

#endif
