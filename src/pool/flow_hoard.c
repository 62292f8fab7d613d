/* flow_hoard.c - what a stream keeps idle while others of its pool are given more of the driver's memory.
 *
 * Freed memory of a stream that is still at work is nobody's but its own. Looked at where a flow grows, which
 * asks the driver anyway; only figures come of it. */
#include "config.h"

#include "pool/flow.h"

/* Of a pool with more streams, the latest. */
enum { LOOKED_AT = 64 };

static uint64_t idle_of(struct ms_flow *flow)
{
    struct ms_pool_figures figures;
    ms_figures_of_heap(flow->heap, &figures);
    uint64_t used = figures.parts.requested + figures.parts.rounding;
    return figures.reserved_bytes > used ? figures.reserved_bytes - used : 0;
}

static void note(struct ms_flow *flow, uint64_t bytes)
{
    uint64_t idle = idle_of(flow);
    if (idle < bytes)
        return;
    uint64_t grown = atomic_fetch_add_explicit(&flow->grown_beside, bytes, memory_order_relaxed) + bytes;
    ms_raise(&flow->hoarded, grown < idle ? grown : idle);
}

void ms_flow_note_hoards(const struct ms_flow *asking, uint64_t bytes)
{
    const struct ms_mempool *pool = asking->pool;
    struct ms_flow *flow = ms_mempool_flows(pool);
    for (int i = 0; flow && i < LOOKED_AT; i++, flow = flow->next_of_pool) {
        if (flow != asking)
            note(flow, bytes);
    }
}
