/* graph_memory.c - see graph_memory.h.
 *
 * Runs in the program's threads. Owns the nodes, by address and in a list by age (bounded: programs make
 * nodes again and again, mostly at the same addresses), under one lock (MS_RANK_OBJECT), under which nobody
 * is called; and what is recorded for each device, which one thread at a time changes: another that comes
 * meanwhile leaves it to the next. */
#include "hooks/follow/graph_memory.h"

#include <stdatomic.h>
#include <string.h>

#include "base/keyed.h"
#include "base/lock.h"
#include "vendor/context_scope.h"
#include "hooks/follow/graph_execs.h"
#include "hooks/follow/no_memory.h"
#include "hooks/init.h"
#include "hooks/serve/limit.h"
#include "hooks/serve/serve.h"

#define MOST          65536
#define PIECES        64
#define LEGACY_STREAM 1u

enum node_state {
    IDLE, /* as far as is known there is no memory behind it */
    KEPT, /* it has a piece of what the driver keeps */
    LIVE, /* it was launched, and the program has to free it: a block */
};

struct node {
    struct ms_keyed by; /* its address */
    struct node *newer, *older;
    uint64_t bytes;
    ms_stack_id stack;
    unsigned thread;
    int16_t device;
    uint16_t api;
    uint8_t state;
    bool was_block; /* the record knows its address */
};

struct piece {
    uint64_t bytes;
    struct node *node; /* NULL: nobody's that is known */
};

/* Memory that the driver keeps for graphs, and that is no block, as it grew: the latest goes back first. */
struct kept {
    const struct ms_gpu *gpu; /* NULL: no node was seen */
    uint64_t bytes;
    struct piece pieces[PIECES];
    unsigned count;
};

_Atomic bool ms_graph_memory_any;
static struct ms_lock lock = MS_LOCK_INIT(MS_RANK_OBJECT);
static struct ms_keyed_table nodes = MS_KEYED_TABLE(struct node, 64, 1024);
static struct node *newest, *oldest;
static uint64_t live_bytes[MS_DEVICES_MAX];
static struct kept kept[MS_DEVICES_MAX];
static const struct ms_gpu *_Atomic asked[MS_DEVICES_MAX];
static atomic_flag looking = ATOMIC_FLAG_INIT;

/* --- nodes ---------------------------------------------------------------------------------------------- */

static void leave_list_locked(struct node *node)
{
    *(node->newer ? &node->newer->older : &newest) = node->older;
    *(node->older ? &node->older->newer : &oldest) = node->newer;
}

static void be_newest_locked(struct node *node)
{
    node->newer = NULL;
    node->older = newest;
    *(newest ? &newest->newer : &oldest) = node;
    newest = node;
}

static struct node *make_locked(uint64_t address)
{
    struct node *node = nodes.count < MOST ? ms_keyed_add(&nodes, address) : NULL;

    if (node)
        *node = (struct node){.by = node->by};
    return node;
}

/* A state changes, and the sums with it. */
static void set_state_locked(struct node *node, enum node_state state)
{
    if (node->device >= 0) {
        live_bytes[node->device] -= node->state == LIVE ? node->bytes : 0;
        live_bytes[node->device] += state == LIVE ? node->bytes : 0;
    }
    node->state = (uint8_t)state;
}

/* One that is made again at an address is another; a block that lies there stays what it was. */
static void graph_memory_remember(const struct node *what)
{
    struct node *node;

    ms_lock(&lock);
    if ((node = *ms_keyed_find(&nodes, what->by.key)) != NULL)
        leave_list_locked(node);
    else
        node = make_locked(what->by.key);
    if (node) {
        if (node->state == IDLE || node->state == KEPT) {
            node->bytes = what->bytes;
            node->stack = what->stack;
            node->thread = what->thread;
            node->api = what->api;
            node->device = what->device;
        }
        be_newest_locked(node);
    }
    ms_unlock(&lock);
}

bool ms_graph_memory_is_node(uint64_t address)
{
    bool found;

    if (MS_LIKELY(!atomic_load_explicit(&ms_graph_memory_any, memory_order_relaxed)))
        return false;
    ms_lock(&lock);
    found = *ms_keyed_find(&nodes, address) != NULL;
    ms_unlock(&lock);
    return found;
}

bool ms_graph_memory_is_unknown(uint64_t address)
{
    bool unknown = false;
    struct node *node;

    if (MS_LIKELY(!atomic_load_explicit(&ms_graph_memory_any, memory_order_relaxed)))
        return false;
    ms_lock(&lock);
    if ((node = *ms_keyed_find(&nodes, address)) != NULL)
        unknown = !node->was_block;
    ms_unlock(&lock);
    return unknown;
}

bool ms_graph_memory_captured(const struct ms_call *call)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    uint64_t stream = call->args.stream;

    if (stream <= LEGACY_STREAM || !call->gpu->stream_is_capturing)
        return false;
    if (call->gpu->stream_is_capturing((CUstream)(uintptr_t)stream, &status) != CUDA_SUCCESS)
        return ms_captures_may_be_open(); /* the driver does not say: a block that is none would be a leak */
    return status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

bool ms_graph_memory_freed_by_node(const struct ms_call *call)
{
    return ms_rows[call->row]->class == MS_CLASS_FREE_ASYNC && ms_graph_memory_is_node(call->args.key) &&
           ms_graph_memory_captured(call);
}

void ms_graph_memory_freed(uint64_t address)
{
    struct node *node;

    if (MS_LIKELY(!atomic_load_explicit(&ms_graph_memory_any, memory_order_relaxed)))
        return;
    ms_lock(&lock);
    if ((node = *ms_keyed_find(&nodes, address)) != NULL && node->state == LIVE)
        set_state_locked(node, IDLE);
    ms_unlock(&lock);
}

void ms_graph_memory_node(const struct ms_call *call, uint64_t address, int device)
{
    const struct ms_gpu *gpu = call->gpu;
    const struct ms_call *outer = ms_thread.outermost ? ms_thread.outermost : call;
    bool is_known = device >= 0 && device < MS_DEVICES_MAX;

    graph_memory_remember(
        &(struct node){.by.key = address,
                       .bytes = call->args.bytes,
                       .stack = outer->stack ? outer->stack : ms_stack_capture(outer->frame, outer->caller),
                       .thread = ms_thread_id(),
                       .device = is_known ? (int16_t)device : (int16_t)-1,
                       .api = outer->row});
    ms_call_describe_device(gpu, device); /* a launch, behind which the vendor is not to be asked, needs it */
    if (!gpu->device_graph_memory || !is_known)
        ms_ledger_blind_spot(
            "memory of graph allocation nodes: the driver takes it when the graph is launched");
    else
        atomic_store_explicit(&asked[device], gpu, memory_order_relaxed);
    atomic_store_explicit(&ms_graph_memory_any, true, memory_order_release);
}

/* --- blocks: what was launched, and is the program's to free -------------------------------------------- */

/* Whose calls that nobody saw have made a piece. */
static uint16_t unseen_maker(const struct ms_gpu *gpu)
{
    return ms_gpu_maker(gpu) == MS_MAKER_HIP ? MS_ROW_hipGraphAddMemAllocNode : MS_ROW_cuGraphAddMemAllocNode;
}

static void graph_memory_record(const struct ms_gpu *gpu, const struct node *node, enum ms_space space,
                                uint64_t key, uint64_t bytes, int device)
{
    struct ms_block block = {.key = key,
                             .space = (uint8_t)space,
                             .bytes = bytes,
                             .requested = bytes,
                             .thread = node ? node->thread : ms_thread_id(),
                             .kind = MS_KIND_GRAPH,
                             .device = (int16_t)device,
                             .outlives_context = true,
                             .api = node ? node->api : unseen_maker(gpu),
                             .stack = node ? node->stack : 0};

    ms_call_describe_device(gpu, device);
    ms_ledger_alloc(&block);
}

/* A launch turns a node into a block by allocating it, or a block into a node again by freeing it. False if
 * nothing has changed: it is so already, or nobody saw the node. */
static bool turn(uint64_t address, bool is_free, struct node *node_p)
{
    struct node *node;
    bool turns;

    ms_lock(&lock);
    node = *ms_keyed_find(&nodes, address);
    turns = node && node->device >= 0 && (node->state == LIVE) == is_free;
    if (turns) {
        set_state_locked(node, is_free ? IDLE : LIVE);
        node->was_block = true;
        *node_p = *node;
    }
    ms_unlock(&lock);
    return turns;
}

static void make_block(const struct node *node)
{
    const struct ms_gpu *gpu = atomic_load_explicit(&asked[node->device], memory_order_relaxed);

    if (gpu)
        graph_memory_record(gpu, node, MS_SPACE_ADDRESS, node->by.key, node->bytes, node->device);
}

static void graph_memory_end_block(const struct node *node)
{
    struct ms_block block;

    ms_ledger_free_begin(MS_SPACE_ADDRESS, node->by.key, &block);
}

/* The oldest of a device's blocks, where they are more than all that it keeps: it was reset. */
static bool next_gone(int device, uint64_t reserved, struct node *node_p)
{
    struct node *node = NULL;

    ms_lock(&lock);
    if (live_bytes[device] > reserved)
        node = oldest;
    while (node && (node->device != device || node->state != LIVE))
        node = node->newer;
    if (node) {
        set_state_locked(node, IDLE);
        *node_p = *node;
    }
    ms_unlock(&lock);
    return node != NULL;
}

/* Returns how much of what the driver keeps is blocks. */
static uint64_t settle_blocks(int device, uint64_t reserved)
{
    struct node node;
    uint64_t live;

    while (next_gone(device, reserved, &node))
        graph_memory_end_block(&node);
    ms_lock(&lock);
    live = live_bytes[device];
    ms_unlock(&lock);
    return live;
}

/* --- pieces: what the driver keeps beside -------------------------------------------------------------- */

/* Nobody's address. */
static uint64_t graph_memory_key_of(int device, unsigned piece)
{
    return UINT64_C(1) << 63 | (uint64_t)device << 32 | piece;
}

/* The newest node that has no memory yet, and how much of `bytes` is for it; the rest is for others. */
static struct node *taker_locked(int device, uint64_t *bytes)
{
    for (struct node *node = newest; node; node = node->older)
        if (node->device == device && node->state == IDLE && node->bytes) {
            *bytes = node->bytes < *bytes ? node->bytes : *bytes;
            set_state_locked(node, KEPT);
            return node;
        }
    return NULL;
}

static void graph_memory_grow(struct kept *mine, int device, uint64_t bytes)
{
    struct piece *piece = &mine->pieces[mine->count];
    struct node node;
    uint64_t part = bytes;

    ms_lock(&lock);
    piece->node = taker_locked(device, &part);
    if (mine->count == PIECES - 1) /* the last one has all the rest */
        part = bytes;
    if (!piece->node && mine->count) /* rounded up: for whom the rest is */
        piece->node = mine->pieces[mine->count - 1].node;
    if (piece->node)
        node = *piece->node;
    ms_unlock(&lock);
    piece->bytes = part;
    graph_memory_record(mine->gpu, piece->node ? &node : NULL, MS_SPACE_HANDLE,
                        graph_memory_key_of(device, mine->count), part, device);
    mine->count++;
    mine->bytes += part;
}

static void shrink(struct kept *mine, int device)
{
    struct piece *piece = &mine->pieces[--mine->count];
    struct ms_block block;

    mine->bytes -= piece->bytes;
    ms_ledger_free_begin(MS_SPACE_HANDLE, graph_memory_key_of(device, mine->count), &block);
    ms_lock(&lock);
    if (piece->node && piece->node->state == KEPT)
        set_state_locked(piece->node, IDLE);
    ms_unlock(&lock);
}

static void settle_pieces(struct kept *mine, int device, uint64_t bytes)
{
    while (mine->bytes > bytes)
        shrink(mine, device);
    if (mine->bytes < bytes && mine->count == PIECES)
        shrink(mine, device);
    while (mine->bytes < bytes && mine->count < PIECES)
        graph_memory_grow(mine, device, bytes - mine->bytes);
}

/* --- looks ---------------------------------------------------------------------------------------------- */

static bool graph_memory_query(const struct ms_gpu *gpu, int device, CUgraphMem_attribute what,
                               uint64_t *bytes_p)
{
    struct ms_context_scope visit;
    cuuint64_t bytes = 0;
    bool known;

    ms_context_scope_begin(&visit, gpu, 0);
    known = gpu->device_graph_memory(ms_device_index(device), what, &bytes) == CUDA_SUCCESS;
    ms_context_scope_end(&visit);
    *bytes_p = bytes;
    return known;
}

void ms_graph_memory_query(void)
{
    uint64_t reserved, blocks;

    if (MS_LIKELY(!atomic_load_explicit(&ms_graph_memory_any, memory_order_acquire)) ||
        atomic_flag_test_and_set(&looking))
        return;
    for (int device = 0; device < MS_DEVICES_MAX; device++) {
        const struct ms_gpu *gpu = atomic_load_explicit(&asked[device], memory_order_relaxed);
        if (!gpu || !graph_memory_query(gpu, device, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &reserved))
            continue;
        kept[device].gpu = gpu;
        blocks = settle_blocks(device, reserved);
        settle_pieces(&kept[device], device, reserved > blocks ? reserved - blocks : 0);
    }
    atomic_flag_clear(&looking);
}

/* A block lies in what the driver keeps, and counts once. */
static void graph_memory_make_room(const struct node *node)
{
    struct kept *mine = &kept[node->device];

    if (atomic_flag_test_and_set(&looking))
        return;
    settle_pieces(mine, node->device, mine->bytes > node->bytes ? mine->bytes - node->bytes : 0);
    atomic_flag_clear(&looking);
}

static void settle_launch(const struct ms_owed *owed)
{
    struct node node;

    if (!turn(owed->address, owed->is_free, &node))
        return;
    if (owed->is_free) {
        graph_memory_end_block(&node);
        return;
    }
    graph_memory_make_room(&node);
    make_block(&node);
}

static void launched(uint64_t exec)
{
    struct ms_owed owed[MS_OWED_AT_ONCE];
    unsigned from = 0, count;

    do {
        count = ms_graph_owed(exec, from, owed);
        for (unsigned i = 0; i < count; i++)
            settle_launch(&owed[i]);
        from += count;
    } while (count == MS_OWED_AT_ONCE);
}

/* --- what the program calls ----------------------------------------------------------------------------- */

/* Enters a hook scope behind a call of the program's own that succeeded; false, without one, where no node
 * was ever seen or the call is inside another. */
static bool graph_memory_enter(int status, struct ms_hook_scope *scope)
{
    if (MS_LIKELY(!atomic_load_explicit(&ms_graph_memory_any, memory_order_relaxed)) || status != 0 ||
        ms_thread.depth > 0 || !ms_init_active())
        return false;
    ms_hook_scope_enter(scope);
    if (ms_init_owner())
        return true;
    ms_hook_scope_leave(scope);
    return false;
}

void ms_graph_memory_moment(int status)
{
    struct ms_hook_scope scope;

    if (graph_memory_enter(status, &scope)) {
        ms_graph_memory_query();
        ms_hook_scope_leave(&scope);
    }
}

void ms_graph_memory_made(int status, const struct ms_gpu *gpu, uint64_t exec, uint64_t graph)
{
    struct ms_hook_scope scope;

    if (exec && graph && graph_memory_enter(status, &scope)) {
        ms_graph_owed_made(gpu, exec, graph);
        ms_hook_scope_leave(&scope);
    }
}

void ms_graph_memory_ended(int status, uint64_t exec)
{
    struct ms_hook_scope scope;

    if (graph_memory_enter(status, &scope)) {
        ms_graph_owed_ended(exec);
        ms_hook_scope_leave(&scope);
    }
}

void ms_graph_memory_launched(uint64_t exec)
{
    struct ms_hook_scope scope;

    if (graph_memory_enter(0, &scope)) {
        launched(exec);
        ms_hook_scope_leave(&scope);
    }
}

/* Of one graph's nodes some may share memory; so much none of them can share with another. */
static void find_need(const struct ms_gpu *gpu, uint64_t exec, struct ms_graph_launch *launch)
{
    uint64_t reserved = 0, largest = ms_graph_largest(exec, &launch->device), idle;

    if (!largest || launch->device < 0 || !gpu->device_graph_memory ||
        !graph_memory_query(gpu, launch->device, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &reserved))
        return;
    ms_lock(&lock);
    idle = reserved > live_bytes[launch->device] ? reserved - live_bytes[launch->device] : 0;
    ms_unlock(&lock);
    launch->bytes = largest > idle ? largest - idle : 0;
    ms_limit_learn(gpu, launch->device);
}

bool ms_graph_memory_launch_begins(unsigned row, const struct ms_gpu *gpu, uint64_t exec, const void *frame,
                                   const void *caller, struct ms_graph_launch *launch_p)
{
    struct ms_args args = {.asked = MS_ASKED_GRAPH};
    struct ms_hook_scope scope;
    struct ms_room room = {0};

    *launch_p = (struct ms_graph_launch){.device = MS_DEVICE_NONE};
    if (!gpu || !graph_memory_enter(0, &scope))
        return true;
    find_need(gpu, exec, launch_p);
    ms_hook_scope_leave(&scope);
    args.bytes = launch_p->bytes;
    while (launch_p->bytes && !ms_quota_reserve(launch_p->device, launch_p->bytes)) {
        if (ms_serve_make_room(row, gpu, &args, &room))
            continue;
        ms_no_memory(row, gpu, &args, frame, caller);
        return false;
    }
    return true;
}

void ms_graph_memory_launch_ends(int status, const struct ms_graph_launch *launch)
{
    if (!launch->bytes)
        return;
    ms_graph_memory_moment(status);
    ms_quota_settle(launch->device, launch->bytes, 0);
}

static void graph_memory_reset(void)
{
    ms_lock_reset(&lock);
    ms_keyed_reset(&nodes);
    newest = oldest = NULL;
    memset(live_bytes, 0, sizeof(live_bytes));
    memset(kept, 0, sizeof(kept));
    memset((void *)asked, 0, sizeof(asked));
    atomic_flag_clear(&looking);
    atomic_store_explicit(&ms_graph_memory_any, false, memory_order_relaxed);
}
MS_AT_FORK(MS_FORK_SERVICE, graph_memory_reset);
