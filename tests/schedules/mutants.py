"""Mistakes that tests/schedules must find when they are put into the sources: one line each, mostly.

(name, file, what is there, what is put there, programs, which are tried one after the other, kind). Of kind `history` are
those that take back what a commit mended, by which the name ends; `weak` show in no sequentially consistent memory.
"""
BIAS_C, BIAS_H, LOCK_H = "src/base/thread/bias.c", "src/base/thread/bias.h", "src/base/lock.h"
POOL, EPOCHS, TCACHE = "src/pool/api/pool.c", "src/pool/clock/epochs.h", "src/pool/cache/tcache.c"
FENCE, PENDING, FAST_ALLOC, FAST_FREE = "src/pool/fence/fence.c", "src/pool/fence/pending.c", "src/fastpath/alloc.c", "src/fastpath/free.c"
MUTANTS = (
    ("leaving-1beca02", "src/pool/stream/stream_arena.c", " || atomic_load(&arena->leaving)", "", "pool-gone", "history"),
    ("moved-ef9ebe4", "src/pool/stream/arena_share.c",
     "    move_segment(from->heap, to->heap, segment);",
     "    move_segment(from->heap, to->heap, segment);\n    ms_wait_note_growth(to, segment->address, segment->bytes);", "moves", "history"),
    ("set-aside-eedf356", "src/pool/space/dedicated.c",
     "    extents->rules->opened(segment);\n    atomic_store_explicit(&segment->use, MS_SEGMENT_NONE, memory_order_release);",
     "    extents->rules->opened(segment);", "small-behind-users", "history"),
    ("peers-add85bf", "src/pool/mapped/mapped_calls.c", "__atomic_store_n(&b->peers[device], (uint8_t)after, __ATOMIC_RELAXED)",
     "b->peers[device] = (uint8_t)after", "peers", "history"),
    ("on-its-way-0a36434", "src/pool/blocks/fallback.c", "        ms_slot_set(slot, MS_SLOT_READY);\n    ms_tcache_unlock(tcache);\n    return slot;",
     "        ;\n    ms_tcache_unlock(tcache);\n    return slot;", "on-its-way", "history"),
    ("while-stopped-aeea646", "src/pool/api/stop.c", "ms_pool_is_stopped ? heap->stopped_done : ms_fence_done(&heap->fence)", "ms_fence_done(&heap->fence)", "limbo-stopped", "history"),
    ("two-tags-c90623a", EPOCHS,
     "    while (MS_UNLIKELY(freed < open) &&\n           !atomic_compare_exchange_weak_explicit(&fence->freed, &freed, open, memory_order_relaxed,\n"
     "                                                  memory_order_relaxed)) {\n    }",
     "    if (freed < open)\n        atomic_store_explicit(&fence->freed, open, memory_order_relaxed);", "limbo epochs", "history"),
    ("ending-076c2cf", POOL, "        return after_the_end(address);", "        return segment;", "context-ends", "history"),
    ("record-3f0df33", POOL, "    return segment && ms_segment_covers(segment, address) ? segment : NULL;",
     "    return segment && address - segment->address < segment->bytes ? segment : NULL;", "context-ends", "history"),
    ("found-3f0df33", POOL, "slot ? atomic_load_explicit(&slot->state_word, memory_order_acquire) : MS_SLOT_FREE",
     "slot ? atomic_load_explicit(&slot->state_word, memory_order_relaxed) : MS_SLOT_FREE", "grown", "history"),
    ("empty-chunk-5d70ed0", "src/pool/blocks/grow.c", "    ms_extent_close(&heap->extents, segment);\n    return slot;", "    return slot;", "freed-across", "history"),

    ("bias-no-wait", BIAS_C, "if (!wait_until_left(bias, owner, kind, deadline_ns))", "if (0)", "bias", "plain"),
    ("bias-no-recheck", BIAS_H, "if (MS_LIKELY(atomic_load_explicit(&bias->owner, memory_order_acquire) == me))", "if (1)", "bias", "plain"),
    ("bias-try-no-recheck", BIAS_H, "    if (MS_LIKELY(!atomic_load_explicit(&bias->owner, memory_order_relaxed)))\n        return true;", "    return true;", "bias-tries", "plain"),
    ("both-no-recheck", BIAS_H, "    if (MS_LIKELY(!atomic_load_explicit(&me->lost, memory_order_acquire)))", "    if (1)", "hit-and-trim hits-own", "plain"),
    ("both-lease-not-asked", BIAS_C, "    bool own = atomic_load_explicit(&tcache->owner, memory_order_acquire) == me &&\n", "    bool own =\n", "bias-pair-asked", "plain"),
    ("both-lane-not-asked", BIAS_C, "               atomic_load_explicit(&shard->owner, memory_order_acquire) == me;\n", "               true;\n", "bias-pair", "plain"),
    ("both-not-raised", BIAS_C, "    ms_bias_revoke(owner);\n    if (owner", "    if (owner", "bias-pair", "plain"),
    ("both-raised-late", BIAS_C, "    ms_bias_revoke(owner);\n    if (owner != ms_bias_me) {\n        fence_all();\n", "    if (owner != ms_bias_me) {\n        fence_all();\n        ms_bias_revoke(owner);\n", "bias-pair", "plain"),
    ("both-not-waited", BIAS_C, "           (atomic_load_explicit(&thread->both, memory_order_acquire) &&", "           (0 &&", "bias-pair", "plain"),
    ("both-lowered-late", BIAS_C, "               atomic_load_explicit(&shard->owner, memory_order_acquire) == me;\n", "               atomic_load_explicit(&shard->owner, memory_order_acquire) == me;\n    atomic_store_explicit(&me->lost, 0, memory_order_relaxed);\n", "bias-pair-asked", "plain"),
    ("both-others-not-void", BIAS_C, "        *others_are_void_p = true;", "        ;", "bias-two-pairs", "plain"),
    ("both-not-chosen", BIAS_H, "    atomic_store_explicit(&me->pair[MS_BIAS_TCACHE], tcache, memory_order_release);\n", "", "bias-two-pairs", "plain"),
    ("hit-alloc-left-first", FAST_ALLOC, "        return 0;\n    uint32_t record_id = fast_take(", "        return 0;\n    fast_leave(me);\n    uint32_t record_id = fast_take(", "hit-and-trim hit-and-stop hits-own", "plain"),
    ("hit-run-left-first", FAST_ALLOC, "        return 0;\n    uint32_t record_id = record_site(", "        return 0;\n    fast_leave(me);\n    uint32_t record_id = record_site(", "hit-run-and-trim hit-run-and-lane hits-runs", "plain"),
    ("hit-free-left-first", FAST_FREE, "    if (!fast_enter(me))\n        return false;\n", "    if (!fast_enter(me))\n        return false;\n    fast_leave(me);\n", "hit-and-trim hit-and-stop hits-own", "plain"),
    ("hit-no-exchange", FAST_FREE, "    if (MS_UNLIKELY(!atomic_compare_exchange_strong_explicit(", "    if (MS_UNLIKELY(false && atomic_compare_exchange_strong_explicit(", "hit-freed-twice", "plain"),
    ("hit-pins-not-asked", FAST_FREE, "    return MS_UNLIKELY(atomic_load_explicit(&ms_pin_count, memory_order_relaxed) |\n                       (uint32_t)",
     "    return MS_UNLIKELY((uint32_t)", "hit-and-pin", "plain"),
    ("returns-not-waited", "src/pool/clock/fence_timeline.c", "        time->gpu->event_synchronize(mark->event);", "        (void)0;", "small-returns", "plain"),
    ("returns-unlocked", "src/pool/stream/driver_frees.c", "    ms_lock(&ms_streams_lock);\n    for (struct ms_stream *stream = first, *next; stream; stream = next) {\n        next = stream->next_returning;\n"
     "        if (stream->returns_to == device)\n            settled += driver_frees_settle(stream);\n    }\n    ms_unlock(&ms_streams_lock);\n",
     "    for (struct ms_stream *stream = first, *next; stream; stream = next) {\n        next = stream->next_returning;\n"
     "        if (stream->returns_to == device)\n            settled += driver_frees_settle(stream);\n    }\n", "small-returns small-returns-twice", "plain"),
    ("stream-named-first", "src/pool/stream/stream.c", "    atomic_store_explicit(&stream->id, id, memory_order_relaxed);\n    stream->device = device;\n",
     "    atomic_store_explicit(&stream->id, id, memory_order_relaxed);\n    atomic_store_explicit(&stream->handle, handle, memory_order_release);\n    stream->device = device;\n", "small-legacy-met", "plain"),
    ("room-not-fenced", "src/pool/policy/keep.c", "    ms_fence_close(heap);\n    ms_fence_poll(heap);\n    ms_tcache_flush(&heap->cache);", "    ms_fence_poll(heap);\n    ms_tcache_flush(&heap->cache);", "small-room-elsewhere", "plain"),
    ("room-missed-under-way", "src/pool/blocks/fallback.c", " || ms_driver_frees_since(c->heap->device, c->ended)", "", "room-waits-and-goes-back", "plain"),
    ("room-missed-ended", "src/pool/blocks/fallback.c", " && !ended)\n        return NULL;", ")\n        return NULL;", "room-waits-and-goes-back", "plain"),
    ("room-seen-behind-request", "src/pool/blocks/fallback.c", "    c->ended = ms_driver_frees_ended(c->heap->device);\n    return ms_grow(c->heap, c->request, &c->status);",
     "    struct ms_slot *slot = ms_grow(c->heap, c->request, &c->status);\n    c->ended = ms_driver_frees_ended(c->heap->device);\n    return slot;", "room-waits-and-goes-back", "plain"),
    ("room-missed-otherwise", "src/pool/blocks/fallback.c", " || ms_driver_frees_since(device, room->ended)) &&", ") &&", "small-room-goes-otherwise", "plain"),
    ("room-missed-otherwise-ended", "src/pool/blocks/fallback.c", "ms_keep_make_room(device, UINT64_MAX) || ended;", "ms_keep_make_room(device, UINT64_MAX);", "small-room-goes-otherwise", "plain"),
    ("flow-leaves-unseen", "src/pool/stream/arena_source.c", "    if (all)\n        ms_driver_frees_begin(heap->device);\n", "", "small-flow-goes-back", "plain"),
    ("pages-leave-unseen", "src/pool/mapped/mapped.c", "        if (growth.source_count)\n            ms_driver_frees_begin(heap->device);\n", "", "small-pages-go-back", "plain"),
    ("pages-unmapped-in-part", "src/pool/mapped/mapped_calls.c", "handle_unmap(h.address, h.bytes);\n        if (status", "handle_unmap(h.address, b->page_bytes);\n        if (status", "mapped-long", "plain"),
    ("buffer-leaves-unseen", "src/pool/external/external.c", "        ms_driver_frees_begin(device);\n", "", "small-buffer-goes-back", "plain"),
    ("whole-leaves-unseen", "hooks/serve/serve_handles.c", "    ms_driver_frees_begin(device);\n", "", "small-whole-goes-back", "plain"),
    ("whole-leaves-first", "hooks/serve/serve_handles.c", "    ms_driver_frees_begin(device);\n    bool found = ms_recycled_evict(device, &whole);\n",
     "    bool found = ms_recycled_evict(device, &whole);\n    ms_driver_frees_begin(device);\n", "small-whole-goes-back", "plain"),
    ("borrowed-looked-first", "src/pool/blocks/fallback.c", "    struct ms_slot *slot = ms_fallback_from_heap(other->heap, c->request);\n    if (!slot)\n        return NULL;\n"
     "    uint64_t begin = ms_slot_address(slot);\n    ms_lock(&ms_streams_lock);\n"
     "    bool idle =\n        ms_wait_is_over(other, begin, begin + slot->extent->slot_bytes) || ms_stream_arena_is_idle(other);\n    ms_unlock(&ms_streams_lock);\n",
     "    ms_lock(&ms_streams_lock);\n    bool idle = ms_stream_arena_is_idle(other);\n    ms_unlock(&ms_streams_lock);\n"
     "    struct ms_slot *slot = ms_fallback_from_heap(other->heap, c->request);\n    if (!slot)\n        return NULL;\n", "small-lent", "plain"),
    ("fence-end-not-marked", "src/pool/fence/fence_streams.c", "             ms_fence_mark(heap, stream, 0) != CUDA_SUCCESS)", "             false)", "small-fence-stream-ends", "plain"),
    ("fence-default-first", "src/pool/fence/fence_streams.c", "    while (status == CUDA_SUCCESS && (stream = ms_stream_next_in(heap->context, stream)) != NULL)\n",
     "    status = status == CUDA_SUCCESS ? ms_fence_mark(heap, DEFAULT_STREAM, upto) : status;\n"
     "    while (status == CUDA_SUCCESS && (stream = ms_stream_next_in(heap->context, stream)) != NULL)\n", "small-fence-stream-ends", "plain"),
    ("fence-orphans-forgotten", "src/pool/fence/fence_streams.c", "fence->orphaned > ms_fence_timeline_covered(&fence->time) || ", "", "small-fence-turns", "plain"),
    ("returning-not-counted", "src/pool/blocks/fallback.c", "        bool returning = atomic_load_explicit(&heap->returning, memory_order_acquire) > 0;", "        bool returning = false;", "returning", "plain"),
    ("returning-counted-late", "src/pool/blocks/segment.c", "    atomic_fetch_add_explicit(&heap->returning, 1, memory_order_relaxed);\n    if (stream)\n        done = free_async(heap, stream, segments, count);\n",
     "    if (stream)\n        done = free_async(heap, stream, segments, count);\n    atomic_fetch_add_explicit(&heap->returning, 1, memory_order_relaxed);\n", "returning", "plain"),
    ("lock-no-exchange", LOCK_H, "if (MS_UNLIKELY(!atomic_compare_exchange_strong_explicit(&lock->state, &free_state, 1,\n"
     "                                                             memory_order_acquire, memory_order_relaxed)))",
     "if (atomic_load(&lock->state) != free_state || (atomic_store(&lock->state, 1), 0))", "lock", "plain"),
    ("epoch-first", PENDING, "    uint64_t freed = atomic_load_explicit(&pending->freed_bytes, memory_order_acquire);\n"
     "    uint64_t epoch = atomic_fetch_add_explicit(&heap->fence.time.now, 1, memory_order_seq_cst);",
     "    uint64_t epoch = atomic_load(&heap->fence.time.now), freed = atomic_load_explicit(&pending->freed_bytes, memory_order_acquire);\n"
     "    atomic_store(&heap->fence.time.now, epoch + 1);", "limbo epochs", "plain"),
    ("epoch-after-record", FENCE, "    uint64_t epoch = ms_pending_next_epoch(heap);\n    *said = fence_mark(heap, epoch);",
     "    *said = fence_mark(heap, atomic_load(&heap->fence.time.now));\n    uint64_t epoch = ms_pending_next_epoch(heap);", "covered", "plain"),
    ("tag-of-next", "src/pool/cache/tcache.h", "    batch->epoch = epoch;\n    batch->items[batch->count++] = slot;\n}", "    batch->epoch = epoch - 1;\n    batch->items[batch->count++] = slot;\n}", "limbo epochs", "plain"),
    ("die-no-exchange", POOL, "                   atomic_compare_exchange_strong_explicit(&slot->state_word, &state_word, retiring,\n"
     "                                                           memory_order_seq_cst, memory_order_relaxed)\n",
     "                   (atomic_store(&slot->state_word, retiring), true)\n", "twice", "plain"),
    ("still-not-asked", POOL, "return MS_LIKELY(atomic_load_explicit(&slot->state_word, memory_order_relaxed) == retiring);", "return retiring != 0;", "freed-late", "plain"),
    ("visitors-not-awaited", "src/pool/api/heap.c", "    while (atomic_load(&heap->visitors))\n        ms_clock_sleep(MS_HEAP_REF_SLEEP_NS);", "", "visited context-ends", "plain"),
    ("capture-not-asked", FENCE, "    if (ms_fence_captured(heap) ||\n        atomic_load_explicit(&heap->state, memory_order_relaxed) != MS_HEAP_SERVING)\n        return false;",
     "    if (atomic_load_explicit(&heap->state, memory_order_relaxed) != MS_HEAP_SERVING)\n        return false;", "captures", "plain"),
    ("pins-unlocked", "src/pool/api/pins.c", "    ms_lock(&lock);\n    struct pin *pin = pins_find(block.address);", "    struct pin *pin = pins_find(block.address);\n    ms_lock(&lock);", "pins", "plain"),
    ("released-unlocked", TCACHE, "    ms_lock(cache->lock);\n    ms_pending_retire(cache);\n    ms_unlock(cache->lock);\n}", "    ms_pending_retire(cache);\n}", "retired returned", "plain"),
    ("find-unlocked", POOL, "    ms_lock(&heap->lock);\n    bool is_there = pool_segment_of(address) == segment && ms_segment_heap(segment) == heap;\n"
     "    struct ms_slot *slot = is_there ? slot_at(segment, address) : NULL;\n    /* Blocks",
     "    bool is_there = pool_segment_of(address) == segment && ms_segment_heap(segment) == heap;\n"
     "    struct ms_slot *slot = is_there ? slot_at(segment, address) : NULL;\n    ms_lock(&heap->lock);\n    /* Blocks", "grown context-ends returned", "plain"),
    ("tables-unlocked", "src/pool/cache/batch.c", "    ms_lock(&lock);\n    struct ms_batch *batch = ms_records_take(&batches);", "    struct ms_batch *batch = ms_records_take(&batches);\n    ms_lock(&lock);", "hits limbo returned", "plain"),
    ("end-not-emptied", PENDING, "    atomic_store_explicit(&end->epoch, 0, memory_order_relaxed);\n", "", "epoch-ends", "plain"),
    ("cross-unlocked", "src/pool/stream/cross_free.c", "    leave_pending(slot);\n    ms_slot_set(slot, MS_SLOT_READY);\n    ms_tcache_unlock(tcache);", "    leave_pending(slot);\n    ms_tcache_unlock(tcache);\n    ms_slot_set(slot, MS_SLOT_READY);", "taken-home", "plain"),

    ("page-relaxed", "src/pool/space/pagemap.c", "atomic_store_explicit(entry_of(page), segment, memory_order_release)",
     "atomic_store_explicit(entry_of(page), segment, memory_order_relaxed)", "grown", "weak"),
    ("page-read-relaxed", "src/pool/space/pagemap.h", "atomic_load_explicit(&leaf->pages[page & ((1 << MS_PAGE_LEAF_BITS) - 1)], memory_order_acquire)",
     "atomic_load_explicit(&leaf->pages[page & ((1 << MS_PAGE_LEAF_BITS) - 1)], memory_order_relaxed)", "grown", "weak"),
    ("unlock-relaxed", LOCK_H, "atomic_store_explicit(&lock->state, 0, memory_order_release)", "atomic_store_explicit(&lock->state, 0, memory_order_relaxed)", "lock", "weak"),
    ("lock-relaxed", LOCK_H, "    if (MS_UNLIKELY(!atomic_compare_exchange_strong_explicit(&lock->state, &free_state, 1,\n"
     "                                                             memory_order_acquire, memory_order_relaxed)))",
     "    if (MS_UNLIKELY(!atomic_compare_exchange_strong_explicit(&lock->state, &free_state, 1,\n"
     "                                                             memory_order_relaxed, memory_order_relaxed)))", "lock", "weak"),
    ("pins-read-late", "src/pool/api/pins.c", "    ms_unlock(&lock);\n    return held;", "    ms_unlock(&lock);\n    return held && slot->extent->slot_bytes;", "pins", "weak"),
    ("lock-wait-relaxed", "src/base/lock.c", "&expected, HELD, memory_order_acquire,", "&expected, HELD, memory_order_relaxed,", "lock", "weak"),
    ("bias-leave-relaxed", BIAS_H, "        atomic_store_explicit(&me->inside[kind], NULL, memory_order_release);\n    else\n        ms_bias_unlock_slowly(bias);",
     "        atomic_store_explicit(&me->inside[kind], NULL, memory_order_relaxed);\n    else\n        ms_bias_unlock_slowly(bias);", "bias", "weak"),
    ("bias-wait-relaxed", BIAS_C, "atomic_load_explicit(&thread->inside[kind], memory_order_acquire) == bias", "atomic_load_explicit(&thread->inside[kind], memory_order_relaxed) == bias", "bias", "weak"),
    ("both-leave-relaxed", BIAS_H, "    atomic_store_explicit(&me->both, 0, memory_order_release);", "    atomic_store_explicit(&me->both, 0, memory_order_relaxed);", "bias-pair", "weak"),
    ("both-wait-relaxed", BIAS_C, "atomic_load_explicit(&thread->both, memory_order_acquire)", "atomic_load_explicit(&thread->both, memory_order_relaxed)", "bias-pair", "weak"),
    ("both-no-fence", BIAS_C, "    atomic_thread_fence(memory_order_seq_cst);\n    bool own", "    bool own", "bias-pair-asked", "weak"),
    ("stream-named-relaxed", "src/pool/stream/stream.c", "    atomic_store_explicit(&stream->handle, handle, memory_order_release);\n    return stream;", "    atomic_store_explicit(&stream->handle, handle, memory_order_relaxed);\n    return stream;", "small-legacy-met", "weak"),
    ("bias-no-fence", BIAS_C, "        fence_all();\n", "", "bias", "weak"),
    ("born-relaxed", "src/pool/cache/tcache.h", "    atomic_store_explicit(&slot->state_word, tcache->serial++ << MS_STATE_BITS | MS_SLOT_LIVE,\n                          memory_order_release);",
     "    atomic_store_explicit(&slot->state_word, tcache->serial++ << MS_STATE_BITS | MS_SLOT_LIVE,\n                          memory_order_relaxed);", "grown", "weak"),
    ("heap-relaxed", "src/pool/api/heap.c", "        atomic_store_explicit(&heap->state, MS_HEAP_SERVING, memory_order_release);", "        atomic_store_explicit(&heap->state, MS_HEAP_SERVING, memory_order_relaxed);", "first", "weak"),
    ("flows-relaxed", "src/pool/stream/stream_arena.c", "atomic_store_explicit(&pool->arenas, arena, memory_order_release)", "atomic_store_explicit(&pool->arenas, arena, memory_order_relaxed)", "streams-first", "weak"),
    ("done-relaxed", "src/pool/clock/fence_timeline.c", "atomic_store_explicit(&time->reached, number, memory_order_release)", "atomic_store_explicit(&time->reached, number, memory_order_relaxed)", "host-function", "weak"),
)
# Schedules that showed a mistake once: (program, rule, seed, the mistake). The test makes them of the sources as they are, and
# `scripts/schedules --mutants` with the mistake put in, where each must fail; and so with the seeds of the tables of mutants.md.
KEPT = (
    ("pins", "weak", "1949", "pins-read-late"),
    ("forked-ledger", "pct", "7678", "fork-finds-lane-2e90f2f"),
    ("small-forked-listing", "random", "67", "fork-finds-loader-d703164"),
    ("row-again", "pct", "1010", "another-context-dies"),
    ("small-room-goes-otherwise", "random", "7", "room-missed-otherwise"),
    ("small-room-goes-otherwise", "random", "7", "room-missed-otherwise-ended"),
    ("small-pages-go-back", "pct", "84", "pages-leave-unseen"),
    ("small-flow-goes-back", "pct", "400", "flow-leaves-unseen"),
    ("small-buffer-goes-back", "random", "9", "buffer-leaves-unseen"),
    ("small-whole-goes-back", "random", "5", "whole-leaves-unseen"),
)
