/* graph_memory.c - see graph_memory.h.
 *
 * Runs in the program's threads. Owns a hash table of addresses, in chunks of the arena (bounded: programs
 * make nodes again and again, mostly at the same addresses), under one lock (MS_RANK_OBJECT), under which
 * nobody is called; and what is recorded for each device, which one thread at a time changes: another that
 * comes meanwhile leaves it to the next. */
#include "hooks/graph_memory.h"

#include <stdatomic.h>
#include <string.h>

#include "base/arena.h"
#include "base/lock.h"
#include "gpu/visit.h"
#include "hooks/init.h"

#define BUCKETS       1024
#define CHUNK         256
#define MOST          65536
#define PIECES        64
#define LEGACY_STREAM 1u

struct node {
    struct node *next;
    uint64_t address;
};

/* What the driver keeps, as it grew: the latest is given back first. */
struct kept {
    const struct ms_gpu *gpu; /* NULL: no node was seen */
    uint64_t bytes, pieces[PIECES];
    unsigned count;
};

_Atomic bool ms_graph_memory_any;
static struct ms_lock lock = MS_LOCK_INIT(MS_RANK_OBJECT);
static struct node *nodes[BUCKETS], *fresh;
static unsigned fresh_left, node_count;
static struct kept kept[MS_DEVICES_MAX];
static const struct ms_gpu *_Atomic asked[MS_DEVICES_MAX];
static atomic_flag looking = ATOMIC_FLAG_INIT;

/* --- addresses --- */

static struct node **bucket_of(uint64_t address)
{
    return &nodes[(address >> 9) * 0x9e3779b97f4a7c15u >> 54];
}

static struct node *find_locked(uint64_t address)
{
    struct node *node = *bucket_of(address);

    while (node && node->address != address)
        node = node->next;
    return node;
}

static void remember(uint64_t address)
{
    ms_lock(&lock);
    if (!find_locked(address)) {
        if (!fresh_left && node_count < MOST && (fresh = ms_arena_alloc(CHUNK * sizeof(*fresh))) != NULL)
            fresh_left = CHUNK;
        if (fresh_left) {
            *fresh = (struct node){.next = *bucket_of(address), .address = address};
            *bucket_of(address) = fresh++;
            fresh_left--;
            node_count++;
        }
    }
    ms_unlock(&lock);
}

bool ms_graph_memory_is_node(uint64_t address)
{
    bool found;

    if (MS_LIKELY(!atomic_load_explicit(&ms_graph_memory_any, memory_order_relaxed)))
        return false;
    ms_lock(&lock);
    found = find_locked(address) != NULL;
    ms_unlock(&lock);
    return found;
}

bool ms_graph_memory_captured(const struct ms_call *call)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    uint64_t stream = call->args.stream;

    return stream > LEGACY_STREAM && call->gpu->stream_is_capturing &&
           call->gpu->stream_is_capturing((CUstream)(uintptr_t)stream, &status) == CUDA_SUCCESS &&
           status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

void ms_graph_memory_node(const struct ms_gpu *gpu, uint64_t address, int device)
{
    remember(address);
    if (!gpu->device_graph_memory || device < 0 || device >= MS_DEVICES_MAX)
        ms_ledger_blind_spot(
            "memory of graph allocation nodes: the driver takes it when the graph is launched");
    else
        atomic_store_explicit(&asked[device], gpu, memory_order_relaxed);
    atomic_store_explicit(&ms_graph_memory_any, true, memory_order_release);
}

/* --- bytes --- */

/* Nobody's address. */
static uint64_t key_of(int device, unsigned piece)
{
    return UINT64_C(1) << 63 | (uint64_t)device << 32 | piece;
}

static void grow(struct kept *mine, int device, uint64_t bytes)
{
    struct ms_block block = {.key = key_of(device, mine->count),
                             .space = MS_SPACE_HANDLE,
                             .bytes = bytes,
                             .requested = bytes,
                             .thread = ms_thread_id(),
                             .kind = MS_KIND_GRAPH,
                             .device = (int16_t)device,
                             .outlives_context = true,
                             .api = MS_ROW_cuGraphAddMemAllocNode};

    ms_call_describe_device(mine->gpu, device);
    ms_ledger_alloc(&block);
    mine->pieces[mine->count++] = bytes;
    mine->bytes += bytes;
}

static void shrink(struct kept *mine, int device)
{
    struct ms_block block;

    mine->bytes -= mine->pieces[--mine->count];
    ms_ledger_free_begin(MS_SPACE_HANDLE, key_of(device, mine->count), &block);
}

static void settle(struct kept *mine, int device, uint64_t bytes)
{
    while (mine->bytes > bytes)
        shrink(mine, device);
    if (mine->bytes < bytes && mine->count == PIECES)
        shrink(mine, device);
    if (mine->bytes < bytes)
        grow(mine, device, bytes - mine->bytes);
}

static bool ask(const struct ms_gpu *gpu, int device, uint64_t *bytes_p)
{
    struct ms_visit visit;
    cuuint64_t bytes = 0;
    bool known;

    ms_visit_begin(&visit, gpu, 0);
    known = gpu->device_graph_memory(ms_device_index(device), CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT,
                                     &bytes) == CUDA_SUCCESS;
    ms_visit_end(&visit);
    *bytes_p = bytes;
    return known;
}

void ms_graph_memory_look(void)
{
    uint64_t bytes;

    if (MS_LIKELY(!atomic_load_explicit(&ms_graph_memory_any, memory_order_acquire)) ||
        atomic_flag_test_and_set(&looking))
        return;
    for (int device = 0; device < MS_DEVICES_MAX; device++) {
        const struct ms_gpu *gpu = atomic_load_explicit(&asked[device], memory_order_relaxed);
        if (!gpu || !ask(gpu, device, &bytes))
            continue;
        kept[device].gpu = gpu;
        settle(&kept[device], device, bytes);
    }
    atomic_flag_clear(&looking);
}

void ms_graph_memory_moment(int status)
{
    struct ms_section section;

    if (MS_LIKELY(!atomic_load_explicit(&ms_graph_memory_any, memory_order_relaxed)) || status != 0 ||
        ms_thread.depth > 0 || !ms_init_active())
        return;
    ms_section_enter(&section);
    if (ms_init_owner())
        ms_graph_memory_look();
    ms_section_leave(&section);
}

void ms_graph_memory_reset(void)
{
    ms_lock_reset(&lock);
    memset(nodes, 0, sizeof(nodes));
    fresh_left = node_count = 0;
    memset(kept, 0, sizeof(kept));
    memset((void *)asked, 0, sizeof(asked));
    atomic_flag_clear(&looking);
    atomic_store_explicit(&ms_graph_memory_any, false, memory_order_relaxed);
}
