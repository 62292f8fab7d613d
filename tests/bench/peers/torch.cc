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
#include <c10/cuda/CUDAStream.h>
#include <c10/cuda/PeerToPeerAccess.h>
#include <cuda_runtime_api.h>

#include "tests/bench/alloc/alloc.h"

namespace allocator = c10::cuda::CUDACachingAllocator;

/* Exported, and in no header. The part of PyTorch that is not here calls it when it is loaded. */
namespace c10::cuda::_internal
{
void setHasPrimaryContext(bool (*function)(c10::DeviceIndex));
}

namespace
{

std::array<cudaStream_t, BENCH_STREAMS_MAX> streams;

cudaStream_t stream_of(unsigned number)
{
    if (number && !streams[number] &&
        cudaStreamCreateWithFlags(&streams[number], cudaStreamNonBlocking) != cudaSuccess)
        bench_die("no more streams");
    return streams[number];
}

int start(const char *configuration)
{
    /* Read when the allocator is first used; whoever tries other settings has set it. */
    setenv("PYTORCH_ALLOC_CONF", configuration, 0);
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
    c10::cuda::_internal::setHasPrimaryContext([](c10::DeviceIndex) { return true; });
    for (unsigned i = 1; i < BENCH_STREAMS_MAX; i++)
        stream_of(i);
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

void *stream_handle(unsigned stream)
{
    return stream_of(stream);
}

/* What a tensor's record_stream() does. */
void used_on(void *block, unsigned stream)
{
    c10::DataPtr pointer(block, block, allocator::get()->raw_deleter(), c10::Device(c10::DeviceType::CUDA, 0));
    allocator::recordStream(pointer, c10::cuda::getStreamFromExternal(stream_of(stream), 0));
    pointer.release_context();
}

} // namespace

const struct bench_allocator bench_allocators[] = {
    {"torch-native", start_native, start_thread, take, give, used_on, stream_handle},
    {"torch-expandable", start_expandable, start_thread, take, give, used_on, stream_handle},
    {nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr},
};
