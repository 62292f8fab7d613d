/*
 * rmm_async.cc - RMM's resources over cudaMallocAsync, out of its headers: a pool of its own, one that can be shared by descriptor, a view
 * of the device's, and RMM's pool, limits and statistics over it; blocks on several streams and threads, buffers that grow in the order of a stream.
 *
 * Prints "what value" lines for peers.py, which wants the same natively and under memshim.
 */
#include <cuda.h> /* first: what RMM asks of its pools depends on it */

#include <array>
#include <cstdio>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include <cuda_runtime_api.h>

#include <rmm/cuda_device.hpp>
#include <rmm/cuda_stream_view.hpp>
#include <rmm/mr/aligned_resource_adaptor.hpp>
#include <rmm/mr/cuda_async_memory_resource.hpp>
#include <rmm/mr/cuda_async_view_memory_resource.hpp>
#include <rmm/mr/limiting_resource_adaptor.hpp>
#include <rmm/mr/pool_memory_resource.hpp>
#include <rmm/mr/statistics_resource_adaptor.hpp>

namespace
{

constexpr std::size_t MIB = std::size_t{1} << 20;
std::array<cudaStream_t, 6> streams;
long failures;

void need(cudaError_t status)
{
    failures += status != cudaSuccess;
}

bool holds(const unsigned char *address, std::size_t bytes, unsigned char value, cudaStream_t stream)
{
    unsigned char first = 0, last = 0;

    need(cudaMemcpyAsync(&first, address, 1, cudaMemcpyDeviceToHost, stream));
    need(cudaMemcpyAsync(&last, address + bytes - 1, 1, cudaMemcpyDeviceToHost, stream));
    need(cudaStreamSynchronize(stream));
    return first == value && last == value;
}

struct block {
    unsigned char *address;
    std::size_t bytes;
    unsigned stream;
    unsigned char value;
};

/* Allocated on one stream, and freed on it, or behind an event on another. */
template <class Resource> long walk(Resource *resource, unsigned seed, int steps, unsigned first, unsigned count)
{
    std::mt19937 random(seed);
    std::vector<block> live;
    long wrong = 0;

    for (int i = 0; i < steps; i++) {
        if (live.size() < 30 && random() % 100 < 55) {
            unsigned stream = first + random() % count;
            std::size_t bytes = 1 + random() % (random() % 8 ? 70000 : 6 * MIB);
            auto value = static_cast<unsigned char>(random());
            auto *address = static_cast<unsigned char *>(resource->allocate(rmm::cuda_stream_view{streams[stream]}, bytes));
            need(cudaMemsetAsync(address, value, bytes, streams[stream]));
            live.push_back({address, bytes, stream, value});
        } else if (!live.empty()) {
            std::size_t which = random() % live.size();
            block b = live[which];
            unsigned stream = b.stream;
            live[which] = live.back();
            live.pop_back();
            if (random() % 3 == 0) {
                cudaEvent_t event;
                stream = first + random() % count;
                need(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
                need(cudaEventRecord(event, streams[b.stream]));
                need(cudaStreamWaitEvent(streams[stream], event, 0));
                need(cudaEventDestroy(event));
            }
            if (random() % 3 == 0)
                wrong += !holds(b.address, b.bytes, b.value, streams[stream]);
            resource->deallocate(rmm::cuda_stream_view{streams[stream]}, b.address, b.bytes);
        }
    }
    for (const block &b : live) {
        wrong += !holds(b.address, b.bytes, b.value, streams[b.stream]);
        resource->deallocate(rmm::cuda_stream_view{streams[b.stream]}, b.address, b.bytes);
    }
    return wrong;
}

cuuint64_t attribute(cudaMemPool_t pool, cudaMemPoolAttr which)
{
    cuuint64_t value = 0;

    need(cudaMemPoolGetAttribute(pool, which, &value));
    return value;
}

/* When the device has done all that was asked of it: some frees count only then. */
void used(const char *when, cudaMemPool_t pool)
{
    need(cudaDeviceSynchronize());
    std::printf("%s.used %llu\n", when, static_cast<unsigned long long>(attribute(pool, cudaMemPoolAttrUsedMemCurrent)));
    std::printf("%s.threshold %llu\n", when, static_cast<unsigned long long>(attribute(pool, cudaMemPoolAttrReleaseThreshold)));
    std::printf("%s.reserved_holds_it %d\n", when,
                attribute(pool, cudaMemPoolAttrReservedMemCurrent) >= attribute(pool, cudaMemPoolAttrUsedMemCurrent));
}

template <class Resource> void threads(const char *name, Resource *resource)
{
    std::vector<std::thread> all;
    std::array<long, 3> wrong{};

    for (unsigned i = 0; i < wrong.size(); i++)
        all.emplace_back([i, &wrong, resource] {
            need(cudaSetDevice(0));
            wrong[i] = walk(resource, 50 + i, 1500, 2 * i, 2);
        });
    for (std::thread &thread : all)
        thread.join();
    std::printf("%s.threads_wrong %ld\n", name, wrong[0] + wrong[1] + wrong[2]);
}

void own_pool()
{
    rmm::mr::cuda_async_memory_resource resource;

    used("own.new", resource.pool_handle());
    std::printf("own.wrong %ld\n", walk(&resource, 1, 4000, 0, streams.size()));
    need(cudaDeviceSynchronize());
    used("own.walked", resource.pool_handle());
    threads("own", &resource);
    need(cudaDeviceSynchronize());
    need(cudaMemPoolTrimTo(resource.pool_handle(), 0));
    used("own.trimmed", resource.pool_handle());
    std::printf("own.trimmed.reserved %llu\n",
                static_cast<unsigned long long>(attribute(resource.pool_handle(), cudaMemPoolAttrReservedMemCurrent)));
    void *block = resource.allocate(rmm::cuda_stream_view{streams[0]}, 12345);
    used("own.one", resource.pool_handle());
    resource.deallocate(rmm::cuda_stream_view{streams[0]}, block, 12345);
}

/* It begins with so much, and gives back what is beyond. */
void primed_pool()
{
    rmm::mr::cuda_async_memory_resource resource(64 * MIB, 32 * MIB);

    used("primed.new", resource.pool_handle());
    std::printf("primed.wrong %ld\n", walk(&resource, 2, 2000, 0, streams.size()));
    try {
        resource.allocate(rmm::cuda_stream_view{streams[0]}, std::size_t{1} << 45);
    } catch (const rmm::out_of_memory &) {
        std::printf("primed.refused 1\n");
    }
    need(cudaDeviceSynchronize());
    used("primed.walked", resource.pool_handle());
}

void shareable_pool()
{
    using kind = rmm::mr::cuda_async_memory_resource::allocation_handle_type;
    rmm::mr::cuda_async_memory_resource resource({}, {}, kind::posix_file_descriptor);
    int descriptor = -1;

    std::printf("shareable.export %d\n", cudaMemPoolExportToShareableHandle(&descriptor, resource.pool_handle(),
                                                                           cudaMemHandleTypePosixFileDescriptor, 0));
    std::printf("shareable.wrong %ld\n", walk(&resource, 3, 1000, 0, streams.size()));
    used("shareable", resource.pool_handle());
}

void view()
{
    cudaMemPool_t pool = nullptr;

    need(cudaDeviceGetDefaultMemPool(&pool, 0));
    rmm::mr::cuda_async_view_memory_resource resource(pool);
    std::printf("view.wrong %ld\n", walk(&resource, 4, 3000, 0, streams.size()));
    threads("view", &resource);
    need(cudaDeviceSynchronize());
    used("view", pool);
}

void layered()
{
    rmm::mr::cuda_async_memory_resource upstream;
    rmm::mr::pool_memory_resource<rmm::mr::cuda_async_memory_resource> pool(&upstream, 32 * MIB, 256 * MIB);
    rmm::mr::limiting_resource_adaptor<rmm::mr::cuda_async_memory_resource> limited(&upstream, 16 * MIB);
    rmm::mr::statistics_resource_adaptor<rmm::mr::cuda_async_memory_resource> counted(&upstream);
    rmm::mr::aligned_resource_adaptor<rmm::mr::cuda_async_memory_resource> aligned(&upstream, 4096, 0);

    std::printf("layered.pool_wrong %ld\n", walk(&pool, 5, 3000, 0, streams.size()));
    std::printf("layered.pool_size %zu\n", pool.pool_size());
    try {
        limited.allocate(rmm::cuda_stream_view{streams[1]}, 17 * MIB);
    } catch (const rmm::out_of_memory &) {
        std::printf("layered.limit_refuses 1\n");
    }
    std::printf("layered.counted_wrong %ld\n", walk(&counted, 6, 1000, 0, streams.size()));
    std::printf("layered.counted %lld %lld\n", static_cast<long long>(counted.get_bytes_counter().value),
                static_cast<long long>(counted.get_bytes_counter().peak));
    std::printf("layered.aligned_wrong %ld\n", walk(&aligned, 7, 1000, 0, streams.size()));
    used("layered", upstream.pool_handle());
}

} // namespace

namespace rmm
{

/* RMM's library brings a CUDA runtime of its own, which needs the vendor's driver: what would call that one calls the shared one. */
cuda_device_id get_current_cuda_device()
{
    int device = -1;

    need(cudaGetDevice(&device));
    return cuda_device_id{device};
}

int get_num_cuda_devices()
{
    int count = 0;

    need(cudaGetDeviceCount(&count));
    return count;
}

std::pair<std::size_t, std::size_t> available_device_memory()
{
    std::size_t free_bytes = 0, total_bytes = 0;

    need(cudaMemGetInfo(&free_bytes, &total_bytes));
    return {free_bytes, total_bytes};
}

void cuda_stream_view::synchronize() const
{
    need(cudaStreamSynchronize(value()));
}

} // namespace rmm

int main()
{
    need(cudaSetDevice(0));
    for (unsigned i = 1; i < streams.size(); i++)
        need(cudaStreamCreateWithFlags(&streams[i], i % 2 ? cudaStreamNonBlocking : cudaStreamDefault));
    streams[5] = cudaStreamPerThread;
    own_pool();
    primed_pool();
    shareable_pool();
    view();
    layered();
    std::printf("synchronize %d\n", cudaDeviceSynchronize());
    std::printf("failures %ld\n", failures);
    return 0;
}
