/*
 * rmm_statistics.cc - RMM's resources out of its headers: the statistics of its adaptor over plain, managed
 * and stream-ordered memory, and the size of its pool, against what is live.
 */
#include <cuda.h> /* first: what RMM asks of its pools depends on it */

#include <algorithm>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>

#include <rmm/cuda_device.hpp>
#include <rmm/cuda_stream_view.hpp>
#include <rmm/mr/cuda_async_memory_resource.hpp>
#include <rmm/mr/cuda_memory_resource.hpp>
#include <rmm/mr/managed_memory_resource.hpp>
#include <rmm/mr/pool_memory_resource.hpp>
#include <rmm/mr/statistics_resource_adaptor.hpp>

#include "mark.h"

/* librmm.so would ask a runtime of its own, the vendor's static one, which does not run on the simulated
 * driver: the program answers for it. */
namespace rmm
{

cuda_device_id get_current_cuda_device()
{
    int device = 0;

    cudaGetDevice(&device);
    return cuda_device_id{device};
}

int get_num_cuda_devices()
{
    int count = 0;

    cudaGetDeviceCount(&count);
    return count;
}

std::pair<std::size_t, std::size_t> available_device_memory()
{
    std::size_t free_bytes = 0, total_bytes = 0;

    cudaMemGetInfo(&free_bytes, &total_bytes);
    return {free_bytes, total_bytes};
}

void cuda_stream_view::synchronize() const
{
    cudaStreamSynchronize(value());
}

} // namespace rmm

namespace
{

constexpr std::size_t MIB = std::size_t{1} << 20;

/* Random blocks from an adaptor of statistics over this resource; its counters are what is live, at most and
 * altogether. */
template <class Resource> void count(const char *name, Resource &resource, rmm::cuda_stream_view stream)
{
    rmm::mr::statistics_resource_adaptor<Resource> counted{&resource};
    std::mt19937 random{7};
    std::vector<std::pair<void *, std::size_t>> blocks;
    const int begin = mark_here();

    for (int step = 0; step < 400; step++) {
        if (blocks.empty() || random() % 100 < 60) {
            const std::size_t bytes = 1 + random() % (step % 8 ? 40000 : 3 * MIB);
            blocks.emplace_back(counted.allocate(stream, bytes, 256), bytes);
        } else {
            std::swap(blocks[random() % blocks.size()], blocks.back());
            counted.deallocate(stream, blocks.back().first, blocks.back().second, 256);
            blocks.pop_back();
        }
        if (step % 100 == 99)
            mark_claim("live", name, counted.get_bytes_counter().value, begin);
    }
    mark_claim("peak", name, counted.get_bytes_counter().peak, begin);
    mark_claim("total", name, counted.get_bytes_counter().total, begin);
    mark_claim("count", name, counted.get_allocations_counter().total, begin);
    std::printf("%s %lld %lld %lld\n", name, (long long)counted.get_bytes_counter().value,
                (long long)counted.get_bytes_counter().peak,
                (long long)counted.get_allocations_counter().total);
    for (auto &[address, bytes] : blocks)
        counted.deallocate(stream, address, bytes, 256);
    mark_claim("live", "afterwards", counted.get_bytes_counter().value, begin);
}

/* RMM's own pool over plain memory: its size is what is live. */
void pool(rmm::mr::cuda_memory_resource &upstream, rmm::cuda_stream_view stream)
{
    const int begin = mark_here();

    {
        rmm::mr::pool_memory_resource<rmm::mr::cuda_memory_resource> pooled{&upstream, 16 * MIB, 512 * MIB};
        std::vector<std::pair<void *, std::size_t>> blocks;

        mark_claim("live", "pool_size", (long long)pooled.pool_size(), begin);
        for (std::size_t number = 1; number <= 20; number++)
            blocks.emplace_back(pooled.allocate(stream, number * MIB, 256), number * MIB);
        mark_claim("live", "pool_size", (long long)pooled.pool_size(), begin);
        for (auto &[address, bytes] : blocks)
            pooled.deallocate(stream, address, bytes, 256);
        stream.synchronize();
        mark_claim("live", "pool_size", (long long)pooled.pool_size(), begin);
        std::printf("pool %zu\n", pooled.pool_size());
    }
    mark_claim("live", "pool_gone", 0, begin);
}

/* Each of its resources that asks for each block by itself. */
void direct(rmm::mr::cuda_memory_resource &plain, rmm::cuda_stream_view stream)
{
    rmm::mr::managed_memory_resource managed;

    count("cuda", plain, stream);
    count("managed", managed, stream);
    {
        rmm::mr::cuda_async_memory_resource async;
        count("async", async, stream);
        stream.synchronize();
    }
}

} // namespace

/* Both, or the one that is named: direct, pool. */
int main(int argc, char **argv)
{
    const std::string only = argc > 1 ? argv[1] : "";
    rmm::mr::cuda_memory_resource plain;
    cudaStream_t handle = nullptr;

    if (cudaSetDevice(0) != cudaSuccess || cudaStreamCreate(&handle) != cudaSuccess)
        return 1;
    const rmm::cuda_stream_view stream{handle};
    if (only != "pool")
        direct(plain, stream);
    if (only != "direct")
        pool(plain, stream);
    cudaStreamDestroy(handle);
    return 0;
}
