"""Mistakes of the ledger, its store and the stacks, one line each: as mutants.py has them.

SCHEDULES are looked for by who goes on when; CRASHES by what a process leaves that is killed after a store (`crash`). Each is
(name, file, what is there, what is put there, program). Those of NONE are no mistakes, though they look like some; each says why.
"""
ACCOUNTS, BLOCKS, EVENTS, LANES, TOTALS = "src/record/live/accounts.c", "src/record/live/blocks.c", "src/record/live/events.c", "src/record/live/shards.c", "src/record/live/totals.h"
INNER = "src/record/live/inner.c"
TRACED = "src/record/file/trace_events.c"
STORE, TREE = "src/base/store/store.c", "src/unwind/tree.c"
SCHEDULES = (
    ("block-found-unlocked", BLOCKS, "    ms_lock(&stripe->lock);\n    uint32_t place = stripe->index ? probe(stripe, h, space, key) : 0;\n"
     "    if (stripe->index && stripe->index[place].row) {\n        blocks_end_block",
     "    uint32_t place = stripe->index ? probe(stripe, h, space, key) : 0;\n    ms_lock(&stripe->lock);\n"
     "    if (stripe->index && stripe->index[place].row) {\n        blocks_end_block", "one-shard"),
    ("fork-finds-lane-2e90f2f", LANES, "            if (!(commons[i].open >> number & 1) && !was_locked(shard))", "            if (!(commons[i].open >> number & 1))", "forked-ledger"),
    ("fork-finds-loader-d703164", "src/base/objects/objects.c", "    ms_lock_reset(&merge_lock);\n    ms_lock_reset(&loader_lock);", "    ms_lock_reset(&merge_lock);", "small-forked-listing"),
    ("another-context-dies", ACCOUNTS, "\n           (!context || block_row->context == context)", "\n           context != UINT64_MAX", "row-again"),
    ("file-opened-twice", "src/record/file/journal.c", "if (!atomic_load_explicit(&opened, memory_order_relaxed)) {", "if (true) {",
     "file-opens"),
    ("ring-number-unlocked", EVENTS, "    ms_lock(&list_lock);\n    uint64_t number = atomic_load_explicit(&process->oom_count, memory_order_relaxed);",
     "    uint64_t number = atomic_load_explicit(&process->oom_count, memory_order_relaxed);\n    ms_lock(&list_lock);", "events"),
    ("export-row-unlocked", "src/record/ipc/ipc_exports.c", "    ms_lock(&lock);\n    bool good = take_row_locked(&row);",
     "    bool good = take_row_locked(&row);\n    ms_lock(&lock);", "exports"),
    ("node-no-recheck", "src/unwind/tree.c", "ms_stack_id id = tree_find(index, wanted);\n    if (!id && index)", "ms_stack_id id = 0;\n    if (!id && index)",
     "stacks"),
    ("node-found-first", "src/unwind/tree.c", "            ms_table_publish(MS_TABLE_NODES, (uint64_t)id + 1);\n            tree_put(index, wanted, id);",
     "            tree_put(index, wanted, id);\n            ms_table_publish(MS_TABLE_NODES, (uint64_t)id + 1);", "stacks"),
    ("node-counted-unlocked", "src/unwind/tree.c", "    ms_lock(&add_lock);\n    struct index *index = roomy_index();",
     "    struct index *index = roomy_index();\n    ms_lock(&add_lock);", "stacks-grow"),
    ("lane-not-locked", LANES, "commons[account].open | (uint32_t)is_new << number);", "commons[account].open);", "lane-opens"),
    ("lane-open-first", LANES, "    lock_shards(account, commons[account].open | (uint32_t)is_new << number);\n    if (is_new)\n        open_another(number, account);\n",
     "    if (is_new)\n        open_another(number, account);\n    lock_shards(account, commons[account].open);\n", "lanes lanes-same"),
    ("peak-unlocked", ACCOUNTS, "    if (is_peak)\n        ms_shards_set_peak(account, arrival->now_ns);\n    ms_shards_unlock(account);\n",
     "    ms_shards_unlock(account);\n    if (is_peak)\n        ms_shards_set_peak(account, arrival->now_ns);\n", "lanes lanes-owned"),
    ("rows-taken-twice", STORE, "    } while (!atomic_compare_exchange_weak(&ms_table_states[table].rows, &first, first + count));\n",
     "    } while (0);\n    atomic_store(&ms_table_states[table].rows, first + count);\n", "lanes file-grows"),
    ("index-relaxed", TREE, "    atomic_store_explicit(&index->ids[slot], id, memory_order_release);", "    atomic_store_explicit(&index->ids[slot], id, memory_order_relaxed);", "stacks"),
    ("index-grown-relaxed", TREE, "    atomic_store_explicit(&current_index, larger, memory_order_release);", "    atomic_store_explicit(&current_index, larger, memory_order_relaxed);", "stacks-grow"),
    ("traced-place-unlocked", TRACED, "    if (MS_UNLIKELY(!ms_lock_if_free(&lines))) {\n        put_alloc_waiting(number, now_ns);\n        return;\n    }\n"
     "    MS_KEEP(shape);\n    unsigned char *record = easy_place(), *at;\n",
     "    unsigned char *record = easy_place(), *at;\n    if (MS_UNLIKELY(!ms_lock_if_free(&lines))) {\n        put_alloc_waiting(number, now_ns);\n        return;\n    }\n"
     "    MS_KEEP(shape);\n", "traced-by-two"),
    ("traced-free-unlocked", TRACED, "        put_free_waiting(number, thread, now_ns);\n        return;\n    }\n    unsigned char *record = easy_place();\n",
     "        put_free_somehow(number, thread, now_ns);\n        return;\n    }\n    unsigned char *record = easy_place();\n", "traced-by-two"),
    ("piece-granule-forgotten", INNER, "first = (begin + GRANULE - 1) >> GRANULE_BITS, past = end >> GRANULE_BITS;", "first = begin >> GRANULE_BITS, past = first + 1;", "arenas"),
    ("piece-granule-plain", INNER, "        atomic_fetch_or_explicit(word, bit, memory_order_relaxed);",
     "        atomic_store_explicit(word, atomic_load_explicit(word, memory_order_relaxed) | bit, memory_order_relaxed);", "arenas"),
    ("pieces-of-others-end", INNER, "key >= begin &&\n            key < end)", "key >= begin)", "arenas"),
    ("pieces-outlive-served", ACCOUNTS, "    return ms_slow_path(MS_SLOW_PATH_INNER) ?", "    return false ?", "arenas"),
    ("pieces-outlive-vendors", BLOCKS, "    return space == MS_SPACE_ADDRESS && ms_slow_path(MS_SLOW_PATH_INNER)\n", "    return false\n", "arenas"),
    ("heap-no-recheck", INNER, "    ms_lock(&heap_lock);\n    heap = heap_find(name, device, api);\n    if (!heap)\n", "    ms_lock(&heap_lock);\n", "heaps"),
    ("heap-unlocked", INNER, "    ms_lock(&heap_lock);\n    heap = heap_find(name, device, api);", "    ms_lock(&heap_lock);\n    ms_unlock(&heap_lock);\n    heap = heap_find(name, device, api);", "heaps"),
    ("heap-peak-plain", INNER, "    while (bytes > most && !atomic_compare_exchange_weak_explicit(&row->peak_reserved_bytes, &most, bytes,\n"
     "                                                                  memory_order_relaxed, memory_order_relaxed))\n        ;\n",
     "    if (bytes > most)\n        atomic_store_explicit(&row->peak_reserved_bytes, bytes, memory_order_relaxed);\n", "heaps"),
    ("inner-counted-outer", "src/record/live/rows.h", "    return MS_LAYER_ACCOUNTS + ms_account_number(ms_device_plain(device));", "    return ms_account_number(ms_device_plain(device));", "inner"),
    ("published-relaxed", STORE, "    atomic_store_explicit(&ms_table_states[table].rows, rows, memory_order_release);",
     "    atomic_store_explicit(&ms_table_states[table].rows, rows, memory_order_relaxed);", "objects reported stacks events"),
)
CRASHES = (
    ("traced-written-first", "src/record/file/trace_file.c", "    int error = ms_trace_file_ring(fd, from, end);\n",
     "    atomic_store_explicit(&process->trace_written, end, memory_order_release);\n    int error = ms_trace_file_ring(fd, from, end);\n", "run-traced"),
    ("live-first", TOTALS, "    uint32_t state = fill_row(block_row, number, shard, arrival);\n", "    ms_block_row_set(block_row, MS_BLOCK_ROW_LIVE);\n    uint32_t state = fill_row(block_row, number, shard, arrival);\n",
     "served-across"),
    ("live-before-site", TOTALS, "    if (MS_LIKELY(site))\n        raise_site(site, arrival);\n    raise_account(shard->row, arrival);\n"
     "    ms_block_row_set_from(block_row, state, MS_BLOCK_ROW_LIVE);\n",
     "    ms_block_row_set_from(block_row, state, MS_BLOCK_ROW_LIVE);\n    if (MS_LIKELY(site))\n        raise_site(site, arrival);\n"
     "    raise_account(shard->row, arrival);\n", "run-long"),
    ("free-last", TOTALS, "    ms_block_row_set(block_row, MS_BLOCK_ROW_FREE);\n    if (MS_LIKELY(site))\n        lower_site(site, block_row, end, now_ns);\n"
     "    lower_account(shard->row, kind, block_row->bytes, now_ns);\n    block_row->freed_ns = now_ns;\n    block_row->next = shard->free_list;\n",
     "    if (MS_LIKELY(site))\n        lower_site(site, block_row, end, now_ns);\n"
     "    lower_account(shard->row, kind, block_row->bytes, now_ns);\n    block_row->freed_ns = now_ns;\n    block_row->next = shard->free_list;\n"
     "    ms_block_row_set(block_row, MS_BLOCK_ROW_FREE);\n", "served-across"),
    ("line-published-first", EVENTS, "        memcpy(MS_ROWS(BLIND_SPOTS, blind_spot)[count], text, sizeof text);\n"
     "        ms_table_publish(MS_TABLE_BLIND_SPOTS, count + 1);\n",
     "        ms_table_publish(MS_TABLE_BLIND_SPOTS, count + 1);\n"
     "        memcpy(MS_ROWS(BLIND_SPOTS, blind_spot)[count], text, sizeof text);\n", "events"),
    ("heap-known-first", INNER, "    row->device = (int16_t)device;\n    row->api = api;\n", "    atomic_store_explicit(&row->state, 1, memory_order_release);\n    row->device = (int16_t)device;\n    row->api = api;\n", "heaps"),
    ("device-known-first", EVENTS, "        row->info = *info;\n", "        atomic_store(&row->known, 1);\n        row->info = *info;\n", "events"),
    ("oom-numbered-first", EVENTS, "        atomic_store_explicit(&row->number, 0, memory_order_relaxed);\n        atomic_thread_fence(memory_order_release);\n"
     "        memcpy((char *)row + sizeof row->number, (char *)&oom",
     "        atomic_store_explicit(&row->number, number + 1, memory_order_relaxed);\n"
     "        atomic_store_explicit(&process->oom_count, number + 1, memory_order_release);\n"
     "        memcpy((char *)row + sizeof row->number, (char *)&oom", "events"),
    ("segment-there-first", "src/record/footprint/pools.c", "        row->record = *segment;\n",
     "        atomic_store(&row->state, MS_SEGMENT_THERE);\n        row->record = *segment;\n", "events"),
)
NONE = (
    ("hit-heap-not-parted", "src/pool/api/heap.c", "        ms_bias_revoke_owner(&heap->cache.tcaches[i].lock);\n", "        (void)0;\n",
     "hit-context-ends", "a context's end takes the locks of all its tcaches away before anything of it is cleared; what is parted before is that no more is served"),
    ("both-enter-relaxed", "src/base/thread/bias.h", "atomic_load_explicit(&me->lost, memory_order_acquire)", "atomic_load_explicit(&me->lost, memory_order_relaxed)", "hits-taken",
     "a thread that finds its two its own has found them so behind a fence, and nobody was inside since"),
    ("near-relaxed", "src/pool/space/address_cache.c", "atomic_store_explicit(&ms_address_cache, sets | (64 - bits), memory_order_release)", "atomic_store_explicit(&ms_address_cache, sets | (64 - bits), memory_order_relaxed)", "first",
     "the kernel has mapped the new table before, and it holds zeroes that nobody wrote; how far a hash is shifted is in the same word"),
    ("misfree-counted-first", "src/record/live/invalid_frees.c", "    if (!count)\n", "    atomic_store(&row->count, count + 1);\n    if (!count)\n", "events",
     "its rule is written last, and a row whose rule nobody knows is none"),
    ("lane-no-recheck", ACCOUNTS, "if (MS_UNLIKELY(only && !shard->is_alone)) {", "if (0) {", "lanes",
     "who frees a block has it from who made it, after its lane was opened"),
    ("node-published-first", "src/unwind/tree.c", "            *ms_stack_node_at(id) = *wanted;\n            ms_table_publish(MS_TABLE_NODES, (uint64_t)id + 1);",
     "            ms_table_publish(MS_TABLE_NODES, (uint64_t)id + 1);\n            *ms_stack_node_at(id) = *wanted;", "run-long",
     "no row of the file names a stack before its interning has returned"),
    ("extent-first", "src/base/store/store.c", "    head->extents[count] = (struct ms_store_extent){table, 0, table_offset, file_offset, bytes};\n",
     "    atomic_store_explicit(&head->extent_count, count + 1, memory_order_release);\n"
     "    head->extents[count] = (struct ms_store_extent){table, 0, table_offset, file_offset, bytes};\n", "file-grows",
     "until its bytes are written an extent has none, and nothing lies in it yet"),
    ("shard-kept-by-fork", BLOCKS, "        ms_lock_reset(&stripes[i].lock);\n", "", "forked-ledger",
     "all of the stripe, its lock too, was filled with zeroes before; the call is for builds that check the locks' order"),
    ("committed-relaxed", STORE, "    atomic_store_explicit(&ms_table_states[table].committed, have + bytes, memory_order_release);",
     "    atomic_store_explicit(&ms_table_states[table].committed, have + bytes, memory_order_relaxed);", "file-grows",
     "the kernel has mapped it before, and it holds zeroes that nobody wrote; what is written there is published by other words"),
    ("store-relaxed", STORE, "    atomic_store_explicit(&ms_store_base, range, memory_order_release);", "    atomic_store_explicit(&ms_store_base, range, memory_order_relaxed);", "file-opens",
     "no load of it acquires: who comes to the record has seen that it is settled, and the store's lock guards the rest"),
)
