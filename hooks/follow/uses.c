/* uses.c - what each call of hooks/table/cuda_uses.def uses: see uses.h.
 *
 * Floor 3. Runs in the program's threads, in a hook scope of memshim's own; takes no lock. Whatever looks
 * like the address of a live block counts as one: a number that happens to be one makes a use too many, and
 * never one too few. */
#include "hooks/follow/uses.h"

#include <string.h>

#include "vendor/gpu.h"
#include "vendor/context_scope.h"
#include "hooks/dispatch.h"
#include "hooks/follow/graph_execs.h"
#include "hooks/init.h"
#include "hooks/lookup/resolve.h"
#include "hooks/hook_scope.h"
#include "hooks/serve/serve.h"
#include "pool/api/pool.h"
#include "pool/stream/stream.h"

/* Copies to the device are looked through for addresses up to this: tables of pointers and structures of
 * pointers are small. */
enum { CONTENTS_MAX = 64 << 10 };
#define WHOLE UINT64_MAX

/* One call. */
struct telling {
    const struct ms_gpu *gpu;
    uint64_t number;
    uint32_t flags; /* of what it uses */
    bool read;
    const struct ms_use_call *call; /* NULL: who used it is not known */
    uint64_t exec;                  /* of no call: this graph is given it */
};

static void uses_count(const struct telling *telling, const struct ms_invalid_free *invalid_free)
{
    struct ms_call *outer = ms_call_around(telling->call->frame);

    ms_ledger_invalid_free(invalid_free, outer ? outer->row : (uint16_t)telling->call->row,
                           outer ? ms_stack_capture(outer->frame, outer->caller)
                                 : ms_stack_capture(telling->call->frame, telling->call->caller));
}

/* No block lies there: memory of the pool's that was freed before the call began? What goes into a graph is
 * used when that is launched. */
static MS_NOINLINE void look_at_freed(const struct telling *telling, uint64_t address,
                                      enum ms_invalid_free_rule rule)
{
    struct ms_pool_block block;
    struct ms_invalid_free invalid_free;

    if ((telling->flags & MS_LIFETIME_GRAPH) || !(ms_pool_owns(address) || ms_stream_owns(address)) ||
        ms_pool_find(address, &block) || !ms_uses_after(address, telling->call->begun, &invalid_free))
        return;
    invalid_free.rule = rule;
    uses_count(telling, &invalid_free);
}

static void uses_note(const struct telling *telling, uint64_t address, uint64_t bytes)
{
    if (telling->exec)
        ms_graph_uses_add(telling->exec, address, MS_INVALID_FREE_USED);
    else if (address && !ms_uses_note(telling->number, address, bytes, telling->flags) && telling->call)
        look_at_freed(telling, address, MS_INVALID_FREE_USED);
}

/* A number that is no address may look like one of freed memory; but hardly ever. */
static void note_word(const struct telling *telling, uint64_t word)
{
    if (telling->exec)
        ms_graph_uses_add(telling->exec, word, MS_INVALID_FREE_GIVEN);
    else if (word && !ms_uses_note(telling->number, word, WHOLE, telling->flags) && telling->call)
        look_at_freed(telling, word, MS_INVALID_FREE_GIVEN);
}

/* Each word of it may be an address. */
static void note_words(void *arg, const void *memory, size_t bytes)
{
    uint64_t word;

    for (size_t at = 0; at + sizeof word <= bytes; at += sizeof word) {
        memcpy(&word, (const char *)memory + at, sizeof word);
        note_word(arg, word);
    }
}

/* Any kernel may follow an address that lies in the device's memory from now on. */
static void mark_words(const void *memory, size_t bytes)
{
    uint64_t word;

    for (size_t at = 0; bytes <= CONTENTS_MAX && at + sizeof word <= bytes; at += sizeof word) {
        memcpy(&word, (const char *)memory + at, sizeof word);
        ms_uses_mark(word, MS_LIFETIME_HELD);
    }
}

/* Arguments in a buffer: its address and its size are in a list of pairs. */
static void note_buffer(struct telling *telling, void *const *extra)
{
    const void *buffer = NULL;
    size_t bytes = 0;

    for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
        if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
            buffer = extra[1];
        else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE)
            bytes = extra[1] ? *(const size_t *)extra[1] : 0;
    }
    if (buffer)
        note_words(telling, buffer, bytes);
}

static void note_arguments(struct telling *telling, CUfunction kernel, void **arguments, void **extra)
{
    if (arguments) {
        if (!telling->gpu || !telling->gpu->func_param_info)
            ms_uses_no_layouts();
        if (!telling->gpu || !ms_layout_each(telling->gpu, kernel, arguments, note_words, telling))
            telling->read = false;
    } else if (extra) {
        note_buffer(telling, extra);
    }
}

/* The address at which one side of a copy begins; 0 for an array. */
static uint64_t side(CUmemorytype type, CUdeviceptr device, const void *host)
{
    switch (type) {
    case CU_MEMORYTYPE_HOST:
        return (uintptr_t)host;
    case CU_MEMORYTYPE_DEVICE:
    case CU_MEMORYTYPE_UNIFIED:
        return device;
    default:
        return 0;
    }
}

/* One side of a copy, as far as its farthest row. */
#define NOTE_ROWS(telling, c, which, rows)                                                                   \
    uses_note(telling, side((c)->which##MemoryType, (c)->which##Device, (c)->which##Host),                   \
              ms_rows_bytes((c)->which##Pitch, rows, (c)->which##XInBytes + (c)->WidthInBytes))
#define NOTE_FLAT(telling, c, which) NOTE_ROWS(telling, c, which, (c)->which##Y + (c)->Height)
/* Slices lie behind each other, each as high as the side says. */
#define HIGHER(a, b) ((a) > (b) ? (a) : (b))
#define NOTE_DEEP(telling, c, which)                                                                         \
    NOTE_ROWS(telling, c, which,                                                                             \
              HIGHER((c)->which##Height, (c)->which##Y + (c)->Height) * ((c)->which##Z + (c)->Depth))

static void note_deep(struct telling *telling, const CUDA_MEMCPY3D *copy)
{
    NOTE_DEEP(telling, copy, src);
    NOTE_DEEP(telling, copy, dst);
}

static void note_operand(struct telling *telling, const CUmemcpy3DOperand *operand)
{
    if (operand->type == CU_MEMCPY_OPERAND_TYPE_POINTER)
        uses_note(telling, operand->op.ptr.ptr, WHOLE);
}

static void note_fill(struct telling *telling, const CUDA_MEMSET_NODE_PARAMS *fill)
{
    uses_note(telling, fill->dst, ms_rows_bytes(fill->pitch, fill->height, fill->width * fill->elementSize));
}

/* Values that a stream writes or waits for; the address has one place in all of them. */
static void note_ops(struct telling *telling, const CUstreamBatchMemOpParams *ops, size_t count)
{
    for (size_t i = 0; ops && i < count; i++)
        uses_note(telling, ops[i].waitValue.address, sizeof(uint64_t));
}

static void note_node(struct telling *telling, const CUgraphNodeParams *node)
{
    switch (node->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        note_arguments(telling, node->kernel.func ? node->kernel.func : (CUfunction)node->kernel.kern,
                       node->kernel.kernelParams, node->kernel.extra);
        break;
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        note_deep(telling, &node->memcpy.copyParams);
        break;
    case CU_GRAPH_NODE_TYPE_MEMSET:
        uses_note(telling, node->memset.dst,
                  ms_rows_bytes(node->memset.pitch, node->memset.height,
                                node->memset.width * node->memset.elementSize));
        break;
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
        note_ops(telling, node->memOp.paramArray, node->memOp.count);
        break;
    default:
        break;
    }
}

static void note_copies(struct telling *telling, const struct ms_use *use)
{
    uses_note(telling, use->to, use->bytes);
    uses_note(telling, use->from, use->bytes);
    for (size_t i = 0; use->tos && i < use->count; i++) {
        uses_note(telling, use->tos[i], use->sizes[i]);
        uses_note(telling, use->froms[i], use->sizes[i]);
    }
    for (size_t i = 0; use->deep_batch && i < use->count; i++) {
        note_operand(telling, &use->deep_batch[i].src);
        note_operand(telling, &use->deep_batch[i].dst);
    }
    if (use->flat) {
        NOTE_FLAT(telling, use->flat, src);
        NOTE_FLAT(telling, use->flat, dst);
    }
    if (use->deep)
        note_deep(telling, use->deep);
    if (use->peer) {
        NOTE_DEEP(telling, use->peer, src);
        NOTE_DEEP(telling, use->peer, dst);
    }
    if (use->fill)
        note_fill(telling, use->fill);
    note_ops(telling, use->ops, use->count);
    if (use->batch)
        note_ops(telling, use->batch->paramArray, use->batch->count);
    if (use->contents)
        mark_words(use->contents, use->bytes);
}

static void note_launches(struct telling *telling, const struct ms_use *use)
{
    if (use->kernel)
        note_arguments(telling, use->kernel, use->arguments, use->extra);
    if (use->node)
        note_arguments(telling, use->node->func, use->node->kernelParams, use->node->extra);
    if (use->node_v2)
        note_arguments(telling, use->node_v2->func ? use->node_v2->func : (CUfunction)use->node_v2->kern,
                       use->node_v2->kernelParams, use->node_v2->extra);
    if (use->any_node)
        note_node(telling, use->any_node);
}

/* Textures on linear memory: the kind of the resource, and behind it the address. */
static uint64_t address_of_resource(const void *resource)
{
    struct {
        int kind;
        uint64_t address;
    } what;
    enum { LINEAR = 2, PITCH2D = 3 };

    memcpy(&what, resource, sizeof what);
    return what.kind == LINEAR || what.kind == PITCH2D ? what.address : 0;
}

/* Memory that the graph was given, and that is freed by now, is used by this launch. */
static void look_at_graph(const struct telling *telling, uint64_t exec)
{
    enum { MOST = 8 };
    struct ms_invalid_free invalid_frees[MOST];
    unsigned found = ms_graph_uses_launched(exec, telling->call->begun, invalid_frees, MOST);

    for (unsigned i = 0; i < found; i++)
        uses_count(telling, &invalid_frees[i]);
}

/* A launch that was put into a graph is one each time that the graph is launched. */
static atomic_bool graphs_unread;

/* While a stream captures, or may, for all that is known, calls go into a graph. */
static bool goes_into_graph(const struct ms_use *use)
{
    return use->into_graph || ms_captures_may_be_open() ||
           !atomic_load_explicit(&ms_serve_on, memory_order_relaxed);
}

static void uses_tell(const struct ms_gpu *gpu, const struct ms_use *use, const struct ms_use_call *call)
{
    struct telling telling = {.gpu = gpu, .number = ms_uses_number(), .read = !use->unread, .call = call};

    if (goes_into_graph(use))
        telling.flags = MS_LIFETIME_GRAPH;
    note_copies(&telling, use);
    note_launches(&telling, use);
    if (use->held)
        ms_uses_mark(use->held, MS_LIFETIME_HELD);
    if (use->shared)
        ms_uses_mark(use->shared, MS_LIFETIME_SHARED);
    if (use->resource)
        ms_uses_mark(address_of_resource(use->resource), MS_LIFETIME_HELD);
    for (size_t i = 0; use->kernels && telling.gpu && i < use->count; i++)
        ms_layout_is_kernel(telling.gpu, use->kernels[i]);
    if (use->exec && call)
        look_at_graph(&telling, use->exec);
    if (use->change)
        ms_graph_uses_ended(use->change);
    if (telling.flags && !telling.read)
        atomic_store_explicit(&graphs_unread, true, memory_order_relaxed);
    if (use->launches_graph)
        ms_uses_launched(telling.number, true, !atomic_load_explicit(&graphs_unread, memory_order_relaxed));
    else if (use->launches || !telling.read)
        ms_uses_launched(telling.number, false, telling.read);
}

void ms_use_told(const struct ms_target *target, const struct ms_use *use, const struct ms_use_call *call)
{
    struct ms_hook_scope scope;

    ms_hook_scope_enter(&scope);
    if (ms_init_owner())
        uses_tell(target->gpu, use, call);
    ms_hook_scope_leave(&scope);
}

void ms_use_of_node(const struct ms_gpu *gpu, const CUgraphNodeParams *node)
{
    const struct ms_use use = {.into_graph = true, .any_node = node};

    if (node)
        uses_tell(gpu, &use, NULL);
}

void ms_use_of_exec(const struct ms_gpu *gpu, uint64_t exec, const CUgraphNodeParams *node)
{
    struct telling telling = {.gpu = gpu, .read = true, .exec = exec};

    note_node(&telling, node);
}
