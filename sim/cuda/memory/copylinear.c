/*
 * The one-dimensional copies: between host, device, peers and arrays, with and without waiting, each with its
 * twins.
 */
#include "sim/cuda/sim.h"

enum { TO_HOST = 1, FROM_HOST = 2, ANY = TO_HOST | FROM_HOST, WAIT = 4 };

static bool on_host(const struct sim_side *side)
{
    sim_memory_read_lock();
    struct sim_block *block = sim_block_at(side->address);
    bool host = !block || block->device == SIM_HOST;
    sim_memory_unlock();
    return host;
}

/* The flags say which side may be memory that the driver does not know. */
static CUresult linear(CUdeviceptr to, CUdeviceptr from, size_t bytes, unsigned flags, CUstream stream,
                       bool per_thread)
{
    struct sim_copy copy = {.width = bytes, .height = 1, .depth = 1};
    CUresult status = sim_stream_check(stream, per_thread);

    if (status != CUDA_SUCCESS || !bytes)
        return status;
    if (!sim_copy_side(&copy.to, to, bytes, bytes, &copy, true) ||
        !sim_copy_side(&copy.from, from, bytes, bytes, &copy, false))
        return CUDA_ERROR_INVALID_VALUE;
    if ((copy.to.pageable && !(flags & TO_HOST)) || (copy.from.pageable && !(flags & FROM_HOST)))
        return CUDA_ERROR_INVALID_VALUE;
    /* between devices even the waiting forms do not wait */
    bool wait = (flags & WAIT) && (on_host(&copy.to) || on_host(&copy.from));
    return sim_copy_submit(stream, per_thread, &copy,
                           wait           ? SIM_COPY_WAITS
                           : flags & WAIT ? SIM_COPY_STREAMLESS
                                          : SIM_COPY_ASYNC);
}

static CUdeviceptr ptr(const void *host)
{
    return (CUdeviceptr)(uintptr_t)host;
}

SIM_PAIR(cuMemcpy, ptds, (CUdeviceptr to, CUdeviceptr from, size_t n),
         linear(to, from, n, ANY | WAIT, NULL, per_thread))
SIM_PAIR(cuMemcpyAsync, ptsz, (CUdeviceptr to, CUdeviceptr from, size_t n, CUstream stream),
         linear(to, from, n, ANY, stream, per_thread))
SIM_PAIR(cuMemcpyHtoD_v2, ptds, (CUdeviceptr to, const void *from, size_t n),
         linear(to, ptr(from), n, FROM_HOST | WAIT, NULL, per_thread))
SIM_PAIR(cuMemcpyHtoDAsync_v2, ptsz, (CUdeviceptr to, const void *from, size_t n, CUstream stream),
         linear(to, ptr(from), n, FROM_HOST, stream, per_thread))
SIM_PAIR(cuMemcpyDtoH_v2, ptds, (void *to, CUdeviceptr from, size_t n),
         linear(ptr(to), from, n, TO_HOST | WAIT, NULL, per_thread))
SIM_PAIR(cuMemcpyDtoHAsync_v2, ptsz, (void *to, CUdeviceptr from, size_t n, CUstream stream),
         linear(ptr(to), from, n, TO_HOST, stream, per_thread))
SIM_PAIR(cuMemcpyDtoD_v2, ptds, (CUdeviceptr to, CUdeviceptr from, size_t n),
         linear(to, from, n, WAIT, NULL, per_thread))
SIM_PAIR(cuMemcpyDtoDAsync_v2, ptsz, (CUdeviceptr to, CUdeviceptr from, size_t n, CUstream stream),
         linear(to, from, n, 0, stream, per_thread))

/* Between contexts each side is reached from its own device. */
/* A copy between devices without a stream comes behind all that either has to do, and before all that it gets
 * later (CUDA driver API, cuMemcpyPeer). */
static CUresult submit_between(const struct sim_copy *copy, struct CUctx_st *const between[2],
                               bool per_thread)
{
    struct sim_op *behind = sim_op_new(sizeof *behind, NULL);
    struct sim_queue *queue;
    CUresult status = behind ? sim_stream_queue(NULL, per_thread, &queue) : CUDA_ERROR_OUT_OF_MEMORY;

    if (status != CUDA_SUCCESS) {
        sim_op_drop(behind);
        return status;
    }
    for (unsigned i = 0; i < 2; i++) {
        struct sim_ticket *tickets;
        size_t count = sim_queue_tickets(between[i], &tickets);
        for (size_t j = 0; j < count; j++)
            sim_op_after(behind, tickets[j].queue, tickets[j].seq);
        sim_ticket_free(tickets, count);
    }
    if (atomic_load(&queue->captured)) /* which the copy will be refused for */
        sim_op_drop(behind);
    else
        sim_queue_push(queue, behind);
    status = sim_copy_submit(NULL, per_thread, copy, SIM_COPY_STREAMLESS);
    struct sim_ticket made = {queue, sim_queue_position(queue)};
    for (unsigned i = 0; i < 2 && status == CUDA_SUCCESS; i++) {
        sim_queue_gate_prune(between[i], false);
        if (!sim_queue_gate(between[i], &made, 1))
            status = CUDA_ERROR_OUT_OF_MEMORY;
    }
    sim_queue_put(queue);
    return status;
}

static CUresult submit_peer(struct sim_copy *copy, CUdeviceptr to, CUdeviceptr from,
                            struct CUctx_st *const between[2], enum sim_copy_kind kind, CUstream stream,
                            bool per_thread)
{
    size_t bytes = copy->width;

    if (!bytes)
        return CUDA_SUCCESS;
    if (!sim_copy_side(&copy->to, to, bytes, bytes, copy, true) || copy->to.pageable ||
        !sim_copy_side(&copy->from, from, bytes, bytes, copy, false) || copy->from.pageable)
        return CUDA_ERROR_INVALID_VALUE;
    copy->to.devices = 1U << between[0]->device->ordinal;
    copy->from.devices = 1U << between[1]->device->ordinal;
    return kind == SIM_COPY_STREAMLESS ? submit_between(copy, between, per_thread)
                                       : sim_copy_submit(stream, per_thread, copy, kind);
}

static CUresult peer(CUdeviceptr to, CUcontext to_handle, CUdeviceptr from, CUcontext from_handle,
                     size_t bytes, enum sim_copy_kind kind, CUstream stream, bool per_thread)
{
    struct sim_copy copy = {.width = bytes, .height = 1, .depth = 1};
    CUresult status = sim_stream_check(stream, per_thread);

    if (status != CUDA_SUCCESS)
        return status;
    struct CUctx_st *const between[2] = {sim_object_get(to_handle, SIM_CONTEXT),
                                         sim_object_get(from_handle, SIM_CONTEXT)};
    status = between[0] && between[1] ? submit_peer(&copy, to, from, between, kind, stream, per_thread)
                                      : CUDA_ERROR_INVALID_CONTEXT;
    for (unsigned i = 0; i < 2; i++)
        if (between[i])
            sim_object_put(between[i]);
    return status;
}

SIM_PAIR(cuMemcpyPeer, ptds,
         (CUdeviceptr to, CUcontext to_ctx, CUdeviceptr from, CUcontext from_ctx, size_t n),
         peer(to, to_ctx, from, from_ctx, n, SIM_COPY_STREAMLESS, NULL, per_thread))
SIM_PAIR(cuMemcpyPeerAsync, ptsz,
         (CUdeviceptr to, CUcontext to_ctx, CUdeviceptr from, CUcontext from_ctx, size_t n, CUstream stream),
         peer(to, to_ctx, from, from_ctx, n, SIM_COPY_ASYNC, stream, per_thread))

/* Offsets into arrays are checked here; an array is one row of bytes for these functions. */
static CUresult in_array(CUarray handle, size_t offset, size_t bytes, CUdeviceptr *address_p)
{
    size_t array_bytes;
    CUresult status = sim_array_memory(handle, address_p, &array_bytes);

    if (status != CUDA_SUCCESS)
        return status;
    if (offset > array_bytes || bytes > array_bytes - offset)
        return CUDA_ERROR_INVALID_VALUE;
    *address_p += offset;
    return CUDA_SUCCESS;
}

static CUresult to_array(CUarray array, size_t offset, CUdeviceptr from, size_t n, unsigned flags,
                         CUstream stream, bool per_thread)
{
    CUdeviceptr to;
    CUresult status = in_array(array, offset, n, &to);

    return status == CUDA_SUCCESS ? linear(to, from, n, flags, stream, per_thread) : status;
}

static CUresult from_array(CUdeviceptr to, CUarray array, size_t offset, size_t n, unsigned flags,
                           CUstream stream, bool per_thread)
{
    CUdeviceptr from;
    CUresult status = in_array(array, offset, n, &from);

    return status == CUDA_SUCCESS ? linear(to, from, n, flags, stream, per_thread) : status;
}

static CUresult between_arrays(CUarray to, size_t to_offset, CUarray from, size_t from_offset, size_t n,
                               bool per_thread)
{
    CUdeviceptr address;
    CUresult status = in_array(to, to_offset, n, &address);

    return status == CUDA_SUCCESS ? from_array(address, from, from_offset, n, WAIT, NULL, per_thread)
                                  : status;
}

SIM_PAIR(cuMemcpyDtoA_v2, ptds, (CUarray array, size_t offset, CUdeviceptr from, size_t n),
         to_array(array, offset, from, n, WAIT, NULL, per_thread))
SIM_PAIR(cuMemcpyAtoD_v2, ptds, (CUdeviceptr to, CUarray array, size_t offset, size_t n),
         from_array(to, array, offset, n, WAIT, NULL, per_thread))
SIM_PAIR(cuMemcpyHtoA_v2, ptds, (CUarray array, size_t offset, const void *from, size_t n),
         to_array(array, offset, ptr(from), n, FROM_HOST | WAIT, NULL, per_thread))
SIM_PAIR(cuMemcpyAtoH_v2, ptds, (void *to, CUarray array, size_t offset, size_t n),
         from_array(ptr(to), array, offset, n, TO_HOST | WAIT, NULL, per_thread))
SIM_PAIR(cuMemcpyAtoA_v2, ptds, (CUarray to, size_t to_offset, CUarray from, size_t from_offset, size_t n),
         between_arrays(to, to_offset, from, from_offset, n, per_thread))
SIM_PAIR(cuMemcpyHtoAAsync_v2, ptsz,
         (CUarray array, size_t offset, const void *from, size_t n, CUstream stream),
         to_array(array, offset, ptr(from), n, FROM_HOST, stream, per_thread))
SIM_PAIR(cuMemcpyAtoHAsync_v2, ptsz, (void *to, CUarray array, size_t offset, size_t n, CUstream stream),
         from_array(ptr(to), array, offset, n, TO_HOST, stream, per_thread))

/* --- the 32-bit interface: the same, with addresses that cannot be ours --------------------------------- */

#define SIM_NARROW(fn, params, answer)                                                                       \
    SIM_API(fn) params                                                                                       \
    {                                                                                                        \
        const bool per_thread = false;                                                                       \
        SIM_ENTER(fn);                                                                                       \
        return answer;                                                                                       \
    }

SIM_NARROW(cuMemcpyHtoD, (CUdeviceptr_v1 to, const void *from, unsigned n),
           linear(to, ptr(from), n, FROM_HOST | WAIT, NULL, per_thread))
SIM_NARROW(cuMemcpyDtoH, (void *to, CUdeviceptr_v1 from, unsigned n),
           linear(ptr(to), from, n, TO_HOST | WAIT, NULL, per_thread))
SIM_NARROW(cuMemcpyDtoD, (CUdeviceptr_v1 to, CUdeviceptr_v1 from, unsigned n),
           linear(to, from, n, WAIT, NULL, per_thread))
SIM_NARROW(cuMemcpyDtoA, (CUarray array, unsigned offset, CUdeviceptr_v1 from, unsigned n),
           to_array(array, offset, from, n, WAIT, NULL, per_thread))
SIM_NARROW(cuMemcpyAtoD, (CUdeviceptr_v1 to, CUarray array, unsigned offset, unsigned n),
           from_array(to, array, offset, n, WAIT, NULL, per_thread))
SIM_NARROW(cuMemcpyHtoA, (CUarray array, unsigned offset, const void *from, unsigned n),
           to_array(array, offset, ptr(from), n, FROM_HOST | WAIT, NULL, per_thread))
SIM_NARROW(cuMemcpyAtoH, (void *to, CUarray array, unsigned offset, unsigned n),
           from_array(ptr(to), array, offset, n, TO_HOST | WAIT, NULL, per_thread))
SIM_NARROW(cuMemcpyAtoA, (CUarray to, unsigned to_offset, CUarray from, unsigned from_offset, unsigned n),
           between_arrays(to, to_offset, from, from_offset, n, per_thread))
SIM_NARROW(cuMemcpyHtoAAsync, (CUarray array, unsigned offset, const void *from, unsigned n, CUstream stream),
           to_array(array, offset, ptr(from), n, FROM_HOST, stream, per_thread))
SIM_NARROW(cuMemcpyAtoHAsync, (void *to, CUarray array, unsigned offset, unsigned n, CUstream stream),
           from_array(ptr(to), array, offset, n, TO_HOST, stream, per_thread))
SIM_NARROW(cuMemcpyHtoDAsync, (CUdeviceptr_v1 to, const void *from, unsigned n, CUstream stream),
           linear(to, ptr(from), n, FROM_HOST, stream, per_thread))
SIM_NARROW(cuMemcpyDtoHAsync, (void *to, CUdeviceptr_v1 from, unsigned n, CUstream stream),
           linear(ptr(to), from, n, TO_HOST, stream, per_thread))
SIM_NARROW(cuMemcpyDtoDAsync, (CUdeviceptr_v1 to, CUdeviceptr_v1 from, unsigned n, CUstream stream),
           linear(to, from, n, 0, stream, per_thread))
