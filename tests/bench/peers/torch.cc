/*
 * PyTorch's own caching allocator, out of libc10_cuda.so: native as it comes, and with expandable segments.
 * It is called as PyTorch calls it for memory that is not a tensor: through CUDACachingAllocator::get().
 * Built by scripts/bench --peers.
 */
#include <array>
#include <cstdio>
#include <cstdlib>

#include <c10/cuda/CUDAAllocatorConfig.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/PeerToPeerAccess.h>
#include <cuda_runtime_api.h>

#include "tests/bench/alloc/alloc.h"

namespace allocator = c10::cuda::CUDACachingAllocator;

namespace
{

std::array<cudaStream_t, BENCH_STREAMS_MAX> streams;

int start(const char *configuration)
{
    setenv("PYTORCH_ALLOC_CONF", configuration, 1); /* read when the allocator is first used */
    if (cudaSetDevice(0) != cudaSuccess) {
        std::fprintf(stderr, "torch: the GPU does not answer\n");
        return -1;
    }
    /* What it falls back to on most machines; to find out about the other kind it asks a library for
     * monitoring. */
    allocator::CUDAAllocatorConfig::set_expandable_segments_handle_type(
        allocator::Expandable_Segments_Handle_Type::POSIX_FD);
    c10::cuda::detail::init_p2p_access_cache(1); /* PyTorch does both when it opens the device */
    allocator::init(1);
    return 0;
}

int start_native()
{
    return start("expandable_segments:False");
}

int start_expandable()
{
    return start("expandable_segments:True");
}

void start_thread()
{
    if (cudaSetDevice(0) != cudaSuccess)
        bench_die("a thread cannot use the device");
}

cudaStream_t stream_of(unsigned number)
{
    if (number && !streams[number] &&
        cudaStreamCreateWithFlags(&streams[number], cudaStreamNonBlocking) != cudaSuccess)
        bench_die("no more streams");
    return streams[number];
}

void *take(size_t bytes, unsigned stream)
{
    try {
        return allocator::raw_alloc_with_stream(bytes, stream_of(stream));
    } catch (const c10::OutOfMemoryError &) {
        return nullptr;
    }
}

void give(void *block, size_t, unsigned)
{
    allocator::raw_delete(block);
}

} // namespace

const struct bench_allocator bench_allocators[] = {
    {"torch-native", start_native, start_thread, take, give},
    {"torch-expandable", start_expandable, start_thread, take, give},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
