"""Mistakes that tests/schedules must find when they are put into the sources: one line each.

(name, file, what is there, what is put there, program)
"""
MUTANTS = (
    ("leaving", "src/pool/flow.c", " || atomic_load(&flow->leaving)", "", "pool-gone"),  # 1beca02 taken back
    ("empty-chunk", "src/pool/ladder.c", "    ms_run_close(heap, segment);\n    return slot;", "    return slot;", "freed-across"),
    ("bias-no-wait", "src/base/bias.c", "if (!wait_until_left(bias, owner, kind, deadline_ns))", "if (0)", "bias"),
    ("bias-no-recheck", "src/base/bias.h", "if (MS_LIKELY(atomic_load_explicit(&bias->owner, memory_order_acquire) == me))", "if (1)", "bias"),
    ("lock-no-exchange", "src/base/lock.h", "if (MS_UNLIKELY(!atomic_compare_exchange_strong_explicit(&lock->state, &free_state, 1,\n"
     "                                                             memory_order_acquire, memory_order_relaxed)))",
     "if (atomic_load(&lock->state) != free_state || (atomic_store(&lock->state, 1), 0))", "lock"),
)
