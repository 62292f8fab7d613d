/*
 * RMM's resources over cudaMalloc, set up as RMM's own benchmarks do: a pool that begins with half of what is
 * free, an arena, and bins from 256 KiB to 4 MiB over such a pool. Built by scripts/bench --peers.
 *
 * RMM's library brings a CUDA runtime of its own, which needs the vendor's driver. The resources are
 * templates and use the shared one, here; the few functions of the library that would call its own are
 * replaced below.
 */
#include <array>
#include <cstdio>
#include <memory>
#include <optional>

#include <cuda_runtime_api.h>

#include <rmm/cuda_device.hpp>
#include <rmm/cuda_stream_view.hpp>
#include <rmm/mr/arena_memory_resource.hpp>
#include <rmm/mr/binning_memory_resource.hpp>
#include <rmm/mr/cuda_memory_resource.hpp>
#include <rmm/mr/pool_memory_resource.hpp>

#include "tests/bench/alloc/alloc.h"

namespace
{

using cuda_resource = rmm::mr::cuda_memory_resource;
using pool_resource = rmm::mr::pool_memory_resource<cuda_resource>;
using arena_resource = rmm::mr::arena_memory_resource<cuda_resource>;
using binning_resource = rmm::mr::binning_memory_resource<pool_resource>;

/* Never destroyed: the program ends with blocks in them. */
cuda_resource *vendor;
rmm::mr::device_memory_resource *chosen;
std::array<cudaStream_t, BENCH_STREAMS_MAX> streams;

int open_device()
{
    if (cudaSetDevice(0) != cudaSuccess) {
        std::fprintf(stderr, "rmm: the GPU does not answer\n");
        return -1;
    }
    vendor = new cuda_resource;
    return 0;
}

pool_resource *new_pool()
{
    return new pool_resource(vendor, rmm::percent_of_free_device_memory(50));
}

int start_pool()
{
    if (open_device() != 0)
        return -1;
    chosen = new_pool();
    return 0;
}

int start_arena()
{
    if (open_device() != 0)
        return -1;
    chosen = new arena_resource(vendor);
    return 0;
}

int start_binning()
{
    if (open_device() != 0)
        return -1;
    chosen = new binning_resource(new_pool(), 18, 22);
    return 0;
}

void start_thread()
{
    if (cudaSetDevice(0) != cudaSuccess)
        bench_die("a thread cannot use the device");
}

rmm::cuda_stream_view stream_of(unsigned number)
{
    if (number && !streams[number] &&
        cudaStreamCreateWithFlags(&streams[number], cudaStreamNonBlocking) != cudaSuccess)
        bench_die("no more streams");
    return rmm::cuda_stream_view{streams[number]};
}

void *take(size_t bytes, unsigned stream)
{
    try {
        return chosen->allocate(stream_of(stream), bytes);
    } catch (const std::bad_alloc &) {
        return nullptr;
    }
}

void give(void *block, size_t bytes, unsigned stream)
{
    chosen->deallocate(stream_of(stream), block, bytes);
}

} // namespace

namespace rmm
{

cuda_device_id get_current_cuda_device()
{
    int device = -1;

    if (cudaGetDevice(&device) != cudaSuccess)
        bench_die("no current device");
    return cuda_device_id{device};
}

int get_num_cuda_devices()
{
    int count = 0;

    if (cudaGetDeviceCount(&count) != cudaSuccess)
        bench_die("no devices");
    return count;
}

std::pair<std::size_t, std::size_t> available_device_memory()
{
    std::size_t free_bytes = 0, total_bytes = 0;

    if (cudaMemGetInfo(&free_bytes, &total_bytes) != cudaSuccess)
        bench_die("no memory information");
    return {free_bytes, total_bytes};
}

std::size_t percent_of_free_device_memory(int percent)
{
    return available_device_memory().first / 100 * static_cast<std::size_t>(percent) & ~std::size_t{255};
}

void cuda_stream_view::synchronize() const
{
    if (cudaStreamSynchronize(value()) != cudaSuccess)
        bench_die("a stream cannot be synchronized");
}

} // namespace rmm

const struct bench_allocator bench_allocators[] = {
    {"rmm-pool", start_pool, start_thread, take, give},
    {"rmm-arena", start_arena, start_thread, take, give},
    {"rmm-binning", start_binning, start_thread, take, give},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
